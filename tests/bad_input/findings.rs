//! Findings that come too late, or twice, or that a case has no room for.

use concord_testkit::{Message, events, unique};
use serde_json::{Value, json};

use crate::bad_input::stage::{Stage, finding, invalid, over_capacity, text};

/// Checks an error about a finding that was recorded and not used: it is no dead letter, for the case keeps it.
fn check_set_aside(error: &Value, code: &str) {
    let report = &error["payload"];
    assert_eq!(report["error_code"], code, "{report}");
    assert!(
        text(&report["error_message"]).contains("recorded and not used"),
        "{report}"
    );
    assert!(
        !text(&report["recovery_suggestions"][0]).is_empty(),
        "{report}"
    );
}

async fn a_finding_after_the_decision(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    stage
        .send(&Message::finding(&case, "alice", finding(10), 0.9))
        .await;
    stage.decision(&case).await;
    // A second finding of alice would be a repetition, so in another case a participant gives its first too late.
    let case = stage
        .open_with(&["alice", "bob"], json!({ "finding_timeout_ms": 1 }))
        .await;
    stage.decision(&case).await;
    let sent = stage
        .send(&Message::finding(&case, "bob", finding(90), 0.9))
        .await;
    let error = stage.error_to("bob", &sent).await;
    check_set_aside(&error, "TIMEOUT");
    assert_eq!(error["case_id"], case);
    stage.settled().await;
    assert!(
        stage.is_alive(&sent).await,
        "what the case has recorded is not dead"
    );
}

/// The id of an answer can be foreseen: a participant who is the first to use it keeps nobody from being heard.
async fn a_finding_under_an_id_that_another_has_used(stage: &Stage) {
    let case = stage.open(&["alice", "mallory"]).await;
    let of = |who: &str, score: u32| {
        Message::finding(&case, who, finding(score), 0.9).with("/message_id", "c-1-7-0-alice")
    };
    stage.send(&of("mallory", 10)).await;
    // Only after the first is recorded is it surely the first.
    stage.settled().await;
    stage.send(&of("alice", 15)).await;
    let decided = stage.decision(&case).await;
    let findings = decided["findings"].as_array().expect("findings");
    let mut by: Vec<&str> = findings.iter().map(|one| text(&one["agent_id"])).collect();
    by.sort_unstable();
    assert_eq!(by, ["alice", "mallory"], "{decided}");
}

async fn a_second_finding_of_the_same_agent(stage: &Stage) {
    let case = stage.open(&["alice", "bob"]).await;
    stage
        .send(&Message::finding(&case, "alice", finding(10), 0.9))
        .await;
    // Messages that are sent together are handled together: only after the first is recorded is it surely the first.
    stage.settled().await;
    let again = Message::finding(&case, "alice", finding(90), 0.9);
    let sent = stage.send(&again).await;
    check_set_aside(&stage.error_to("alice", &sent).await, "INVALID_REQUEST");
    stage
        .send(&Message::finding(&case, "bob", finding(10), 0.9))
        .await;
    let decision = stage.decision(&case).await;
    assert_eq!(decision["outcome"]["risk_score"], 10.0, "the first counts");
    let aside = &decision["set_aside"][0];
    assert_eq!(
        (&aside["message_id"], &aside["reason"]),
        (&json!(again.id()), &json!("repeated"))
    );
    stage.settled().await;
    assert!(
        stage.is_alive(&sent).await,
        "what the case has recorded is not dead"
    );
}

async fn more_repetitions_than_a_case_records(stage: &Stage) {
    let case = stage
        .open_with(&["alice", "bob"], json!({ "set_aside_max": 2 }))
        .await;
    for _ in 0..3 {
        stage
            .send(&Message::finding(&case, "alice", finding(10), 0.9))
            .await;
    }
    stage.settled().await;
    let message = Message::finding(&case, "alice", finding(90), 0.9);
    stage.send_refused(&message, &over_capacity("")).await;
}

const NAMES: [&str; 5] = ["ann", "ben", "cyd", "dan", "eve"];

/// A finding of about so many bytes that conflicts with those of all others.
fn large(index: u32, bytes: usize) -> Value {
    json!({
        "summary": "What was found.", "risk_score": index * 25, "recommendation": format!("r{index}"),
        "evidence": [format!("{index}{}", "x".repeat(bytes))],
    })
}

async fn findings_as_large_as_messages_may_be(stage: &Stage) {
    let case = stage
        .open_with(&NAMES, json!({ "answer_timeout_ms": 200 }))
        .await;
    for (index, name) in (0_u32..).zip(NAMES) {
        let message = Message::finding(&case, name, large(index, 900_000), 0.9);
        let error = stage
            .send_refused(&message, &over_capacity("/payload"))
            .await;
        let message = text(&error["payload"]["error_message"]);
        assert!(message.contains("at most 262144 are accepted"), "{message}");
    }
    // An agent that is refused may send a shorter finding.
    for (index, name) in (0_u32..).zip(NAMES) {
        stage
            .send(&Message::finding(&case, name, large(index, 1_000), 0.9))
            .await;
    }
    assert_eq!(stage.decision(&case).await["reason"], "settled");
}

/// Every event of a case must fit into one message of the broker, and holds the texts of the agents more than once.
/// However much a case takes, it ends.
async fn findings_as_large_as_a_case_takes(stage: &Stage) {
    let policy = json!({ "finding_bytes_max": 524_288, "answer_timeout_ms": 200 });
    let case = stage.open_with(&NAMES, policy).await;
    for (index, name) in (0_u32..).zip(NAMES) {
        stage
            .send(&Message::finding(&case, name, large(index, 520_000), 0.9))
            .await;
    }
    let decision = stage.decision(&case).await;
    assert_eq!(decision["reason"], "settled");
    assert_eq!(
        decision["findings"].as_array().map(Vec::len),
        Some(NAMES.len())
    );
    assert_eq!(
        decision["conflicts"].as_array().map(Vec::len),
        Some(2),
        "about recommendation and score"
    );
    let evidence = text(&decision["conflicts"][0]["positions"][0]["evidence"][0]);
    assert!(
        evidence.ends_with("… [shortened]") && evidence.len() > 3_000,
        "{} bytes",
        evidence.len()
    );
    // The broker of the tests would take more; a usual one takes no more than this, with its headers.
    let events = events(stage.client(), ">")
        .await
        .expect("the stream can be read");
    let largest = events.iter().map(|event| event.payload.len()).max();
    assert!(
        largest.is_some_and(|bytes| bytes > 500_000 && bytes <= 768 * 1024),
        "{largest:?}"
    );
}

async fn a_finding_with_more_to_compare_than_a_case_takes(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let name = "x".repeat(257);
    let fact = |n: u32| json!({ "subject": "Term", "attribute": n.to_string(), "value": n });
    for (more, pointer) in [
        (
            json!({ "facts": (0..501).map(fact).collect::<Vec<_>>() }),
            "/payload/facts",
        ),
        (
            json!({ "affected_clauses": ["Term", name] }),
            "/payload/affected_clauses/1",
        ),
    ] {
        let mut finding = finding(50);
        for (field, value) in more.as_object().into_iter().flatten() {
            finding[field] = value.clone();
        }
        let message = Message::finding(&case, "alice", finding, 0.9);
        stage.send_refused(&message, &over_capacity(pointer)).await;
    }
    stage
        .send(&Message::finding(&case, "alice", finding(50), 0.9))
        .await;
    stage.decision(&case).await;
}

async fn a_finding_in_the_wrong_place(stage: &Stage) {
    let alice = unique("alice");
    let case = stage.open(&[&alice]).await;
    // The facilitator has no use for findings, and the coordinator none for agreement: the sender is told who has.
    let message = Message::new(&case, &alice, "debate-facilitator", "finding", finding(50));
    stage.send(&message).await;
    let message = Message::new(&case, &alice, "coordinator", "agreement", json!({}));
    stage.send(&message).await;
    let request = json!({ "action": "make_coffee" });
    for service in ["coordinator", "debate-facilitator"] {
        let message = Message::new(&case, &alice, service, "request", request.clone());
        stage
            .send_refused(&message, &invalid("/payload/action"))
            .await;
    }
    stage.settled().await;
    assert_eq!(stage.errors(&alice).await.len(), 4);
}

/// What is large comes last, for whoever looks for a dead letter reads them all.
#[tokio::test(flavor = "multi_thread")]
async fn findings_out_of_time_place_or_measure() {
    let stage = Stage::start().await;
    a_finding_after_the_decision(&stage).await;
    a_finding_under_an_id_that_another_has_used(&stage).await;
    a_second_finding_of_the_same_agent(&stage).await;
    more_repetitions_than_a_case_records(&stage).await;
    a_finding_with_more_to_compare_than_a_case_takes(&stage).await;
    a_finding_in_the_wrong_place(&stage).await;
    findings_as_large_as_messages_may_be(&stage).await;
    findings_as_large_as_a_case_takes(&stage).await;
    stage.goes_on().await;
}
