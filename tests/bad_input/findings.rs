//! Findings that come too late, or twice, or that a case has no room for.

use concord_events::topology::StreamKind;
use concord_testkit::{Message, stored};
use serde_json::{Value, json};

use crate::stage::{Stage, finding, invalid, over_capacity};

/// An error about something that was recorded and not used: it is no dead letter, for the case keeps it.
fn check_set_aside(error: &Value, code: &str) {
    let report = &error["payload"];
    assert_eq!(report["error_code"], code, "{report}");
    assert!(
        report["error_message"]
            .as_str()
            .unwrap_or_default()
            .contains("recorded and not used"),
        "{report}"
    );
    assert!(
        !report["recovery_suggestions"][0]
            .as_str()
            .unwrap_or_default()
            .is_empty(),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_after_the_decision() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    stage
        .send(&Message::finding(&case, "alice", finding(10), 0.9))
        .await;
    stage.decision(&case).await;
    // Whoever has given a finding already repeats it; that is a participant who was too late.
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
    stage.goes_on().await;
    assert!(
        stage.is_alive(&sent).await,
        "what the case has recorded is not dead"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_finding_of_the_same_agent() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice", "bob"]).await;
    stage
        .send(&Message::finding(&case, "alice", finding(10), 0.9))
        .await;
    // What is sent at once is handled at once: only what has been recorded is surely the first.
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
    stage.goes_on().await;
    assert!(
        stage.is_alive(&sent).await,
        "what the case has recorded is not dead"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_repetitions_than_a_case_records() {
    let stage = Stage::start().await;
    let case = stage
        .open_with(&["alice", "bob"], json!({ "set_aside_max": 2 }))
        .await;
    for _ in 0..3 {
        stage
            .send(&Message::finding(&case, "alice", finding(10), 0.9))
            .await;
    }
    stage.settled().await;
    let sent = stage
        .send(&Message::finding(&case, "alice", finding(90), 0.9))
        .await;
    stage.refused("alice", &sent, &over_capacity("")).await;
    stage.goes_on().await;
}

const NAMES: [&str; 5] = ["ann", "ben", "cyd", "dan", "eve"];

/// A finding of about so many bytes that conflicts with those of all others.
fn large(index: u32, bytes: usize) -> Value {
    json!({
        "summary": "What was found.", "risk_score": index * 25, "recommendation": format!("r{index}"),
        "evidence": [format!("{index}{}", "x".repeat(bytes))],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_as_large_as_messages_may_be() {
    let stage = Stage::start().await;
    let case = stage
        .open_with(&NAMES, json!({ "answer_timeout_ms": 200 }))
        .await;
    for (index, name) in (0_u32..).zip(NAMES) {
        let sent = stage
            .send(&Message::finding(&case, name, large(index, 900_000), 0.9))
            .await;
        let error = stage.refused(name, &sent, &over_capacity("/payload")).await;
        let message = error["payload"]["error_message"]
            .as_str()
            .unwrap_or_default();
        assert!(message.contains("at most 262144 are accepted"), "{message}");
    }
    // Who is refused may say less.
    for (index, name) in (0_u32..).zip(NAMES) {
        stage
            .send(&Message::finding(&case, name, large(index, 1_000), 0.9))
            .await;
    }
    assert_eq!(stage.decision(&case).await["reason"], "settled");
    stage.goes_on().await;
}

/// Every fact of a case goes into one message of the broker, and each holds what the agents wrote, more than once.
/// However much a case takes, it ends.
#[tokio::test(flavor = "multi_thread")]
async fn findings_as_large_as_a_case_takes() {
    let stage = Stage::start().await;
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
    let evidence = decision["conflicts"][0]["positions"][0]["evidence"][0]
        .as_str()
        .unwrap_or_default();
    assert!(
        evidence.ends_with("… [shortened]") && evidence.len() > 3_000,
        "{} bytes",
        evidence.len()
    );
    // The broker of the tests would take more; a usual one takes no more than this, with its headers.
    let facts = stored(stage.client(), StreamKind::Events, ">")
        .await
        .expect("the stream can be read");
    let largest = facts.iter().map(|fact| fact.payload.len()).max();
    assert!(
        largest.is_some_and(|bytes| bytes > 500_000 && bytes <= 768 * 1024),
        "{largest:?}"
    );
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_with_more_to_compare_than_a_case_takes() {
    let stage = Stage::start().await;
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
        let sent = stage
            .send(&Message::finding(&case, "alice", finding, 0.9))
            .await;
        stage.refused("alice", &sent, &over_capacity(pointer)).await;
    }
    stage
        .send(&Message::finding(&case, "alice", finding(50), 0.9))
        .await;
    stage.decision(&case).await;
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_in_the_wrong_place() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    // The facilitator has no use for findings: nothing follows, and nothing breaks.
    stage
        .send(&Message::new(
            &case,
            "alice",
            "debate-facilitator",
            "finding",
            finding(50),
        ))
        .await;
    stage
        .send(&Message::new(
            &case,
            "alice",
            "coordinator",
            "agreement",
            json!({}),
        ))
        .await;
    let request = json!({ "action": "make_coffee" });
    for service in ["coordinator", "debate-facilitator"] {
        let sent = stage
            .send(&Message::new(
                &case,
                "alice",
                service,
                "request",
                request.clone(),
            ))
            .await;
        stage
            .refused("alice", &sent, &invalid("/payload/action"))
            .await;
    }
    stage.settled().await;
    assert_eq!(
        stage
            .errors("alice")
            .await
            .expect("the stream can be read")
            .len(),
        2
    );
    stage.decides_a_good_case().await;
}
