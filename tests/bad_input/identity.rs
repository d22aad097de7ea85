//! Senders, cases and ids that are not what the message says.

use async_nats::HeaderMap;
use async_nats::jetstream;
use concord_testkit::{Message, check_unlike, messages, patient, unique, wait_for};
use futures::StreamExt;
use serde_json::json;

use crate::bad_input::stage::{
    PATIENCE, Sent, Stage, finding, invalid, opening, request_to_open, unauthorized,
};

async fn speaking_for_another(stage: &Stage) {
    let bob = unique("bob");
    let case = stage.open(&["alice", &bob]).await;
    let message =
        Message::finding(&case, "alice", finding(50), 0.5).with("/from_agent", bob.as_str());
    stage
        .send_refused(&message, &unauthorized("/from_agent"))
        .await;
    stage.settled().await;
    assert!(stage.errors(&bob).await.is_empty(), "bob has said nothing");
}

async fn an_envelope_that_differs_from_its_subject(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let other = stage.open(&["alice"]).await;
    let good = || Message::finding(&case, "alice", finding(50), 0.5);
    for (message, pointer) in [
        (good().with("/to_agent", "debate-facilitator"), "/to_agent"),
        (good().with("/message_type", "evidence"), "/message_type"),
        (good().with("/case_id", other.clone()), "/case_id"),
        (
            Message {
                case: "_".into(),
                ..good()
            },
            "/case_id",
        ),
    ] {
        stage.send_refused(&message, &invalid(pointer)).await;
    }
}

async fn an_unknown_case(stage: &Stage) {
    let message = Message::finding("no-such-case", "alice", finding(50), 0.5);
    stage.send_refused(&message, &invalid("/case_id")).await;
    let message = Message::finding("_", "alice", finding(50), 0.5);
    stage.send_refused(&message, &invalid("/case_id")).await;
}

async fn a_strangers_finding(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let message = Message::finding(&case, "mallory", finding(50), 1.0);
    stage
        .send_refused(&message, &unauthorized("/from_agent"))
        .await;
}

/// The broker knows a message by its `Nats-Msg-Id`; the case knows it by its `message_id`.
async fn the_same_message_id_with_other_contents(stage: &Stage) {
    let alice = unique("alice");
    let case = stage.open(&[&alice, "bob"]).await;
    let first = Message::finding(&case, &alice, finding(10), 0.9);
    stage.send(&first).await;
    stage.settled().await;
    // The same message again changes nothing and is no error.
    stage.send(&first).await;
    let other = Message::finding(&case, &alice, finding(90), 0.9).with("/message_id", first.id());
    stage.send_refused(&other, &invalid("/message_id")).await;
    // The same contents from another sender are not a repetition, and an id is its sender's own.
    let of_bob = Message::finding(&case, "bob", finding(10), 0.9).with("/message_id", first.id());
    stage.send(&of_bob).await;
    let decision = stage.decision(&case).await;
    assert_eq!(
        (&decision["outcome"]["risk_score"], &decision["set_aside"]),
        (&json!(10.0), &json!([]))
    );
    assert_eq!(stage.errors(&alice).await.len(), 1);
}

async fn the_same_message_id_in_the_header_is_not_even_stored(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let jetstream = patient(stage.client());
    let publish = async |message: &Message| {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", message.id());
        let sent = jetstream
            .publish_with_headers(message.subject(), headers, message.bytes().into())
            .await;
        sent.expect("the message is sent")
            .await
            .expect("the broker answers")
    };
    let first = Message::finding(&case, "alice", finding(10), 0.9);
    assert!(!publish(&first).await.duplicate);
    let other = Message::finding(&case, "alice", finding(90), 0.9).with("/message_id", first.id());
    assert!(
        publish(&other).await.duplicate,
        "the broker tells the sender that it has this id already"
    );
    assert_eq!(stage.decision(&case).await["outcome"]["risk_score"], 10.0);
}

async fn a_request_to_a_service_that_acts_on_none(stage: &Stage) {
    for service in ["conflict-detector", "escalation-timer"] {
        let request = json!({ "action": "open_case", "parameters": {} });
        let message = Message::new("_", "alice", service, "request", request);
        stage.send_refused(&message, &invalid("/to_agent")).await;
        // A status needs no answer, so it is not an error.
        let message = Message::new("_", "alice", service, "status", json!({}));
        let sent = stage.send(&message).await;
        stage.settled().await;
        assert!(stage.is_alive(&sent).await);
    }
}

/// The ids of the services' messages follow from the events, so they can be foreseen; the broker keeps the first message
/// with an id.
async fn an_id_that_a_service_is_about_to_use(stage: &Stage) {
    let jetstream = patient(stage.client());
    let mut events = jetstream
        .get_stream("CONCORD_EVENTS")
        .await
        .expect("the stream is there");
    let state = &events.info().await.expect("the stream answers").state;
    let opened_at = state.last_sequence + 1;
    let case = unique("case");
    for place in 0..3 {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", format!("{case}-{opened_at}-{place}"));
        let message = Message::new("_", "mallory", "mallory", "status", json!({}));
        let sent = jetstream
            .publish_with_headers(message.subject(), headers, message.bytes().into())
            .await;
        let stored = sent.expect("the message is sent").await;
        assert!(!stored.expect("the broker answers").duplicate);
    }
    stage
        .installation()
        .open_case(&opening(&case, &["alice", "bob"], json!({})))
        .await;
    for agent in ["alice", "bob"] {
        let filter = format!("concord.v1.msg.{case}.coordinator.{agent}.task_assignment");
        let what = format!("{agent} to be given the task");
        wait_for(what, PATIENCE, async || {
            let mut tasks = messages(stage.client(), &filter).await?;
            tasks.pop().ok_or("nothing yet".to_owned())
        })
        .await;
    }
}

/// Texts that are no ids. The last is longer than any id but that of a message may be.
fn bad_ids() -> Vec<String> {
    let mut ids = ["a.b", "a b", "*", ">", "_", "_all", "é", "", "a\nb"]
        .map(str::to_owned)
        .to_vec();
    ids.push("x".repeat(65));
    ids
}

/// Requests to open a case whose ids are no ids, each with the place of the fault.
fn openings_with_bad_ids() -> Vec<(Message, &'static str)> {
    let task = json!({ "type": "t" });
    let mut requests = Vec::new();
    for bad in ["a.b", "a b", "*", ">", "_x", ""] {
        let parameters = json!({ "case_id": bad, "participants": ["alice"], "task": task });
        requests.push((
            request_to_open("alice", &parameters),
            "/payload/parameters/case_id",
        ));
        let fresh = unique("case");
        let parameters = json!({ "case_id": fresh, "participants": ["alice", bad], "task": task });
        requests.push((
            request_to_open("alice", &parameters),
            "/payload/parameters/participants/1",
        ));
    }
    requests
}

async fn ids_with_dots_spaces_and_wildcards_in_the_body(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    for bad in bad_ids() {
        for pointer in [
            "/from_agent",
            "/to_agent",
            "/case_id",
            "/message_id",
            "/message_type",
        ] {
            let reserved = pointer == "/to_agent" && bad == "_all";
            let long = pointer == "/message_id" && bad.len() == 65;
            if reserved || long {
                continue;
            }
            let good = Message::finding(&case, "alice", finding(50), 0.5);
            let message = good.with(pointer, bad.as_str());
            stage.send_refused(&message, &invalid(pointer)).await;
        }
    }
    for (message, pointer) in openings_with_bad_ids() {
        stage.send_refused(&message, &invalid(pointer)).await;
    }
}

/// Only what the broker lets a client publish: it takes wildcards and surplus tokens as they are.
async fn ids_with_dots_and_wildcards_in_the_subject(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let body = Message::finding(&case, "alice", finding(50), 0.5).bytes();
    for subject in [
        format!("concord.v1.msg.{case}.alice.coordinator.fin.ding"),
        format!("concord.v1.msg.{case}.alice.coordinator.finding.now.please"),
        format!("concord.v1.msg.{case}.alice.coordinator._finding"),
        format!("concord.v1.msg.{case}.alice.coordinator.finding!"),
        format!("concord.v1.msg.{case}.alice.coordinator.{}", "x".repeat(65)),
        "concord.v1.msg._case.alice.coordinator.finding".to_owned(),
        "concord.v1.msg.c!.alice.coordinator.finding".to_owned(),
        "concord.v1.msg.café.alice.coordinator.finding".to_owned(),
        format!("concord.v1.urgent.{case}.alice.debate-facilitator.agree.ment"),
    ] {
        let sent = stage.send_bytes(subject, body.clone()).await;
        stage.refused("alice", &sent, &invalid("")).await;
    }
    // A sender whose name is no name cannot be told; the message is kept.
    for sender in ["_alice", "al!ce", "élise"] {
        let sent = stage
            .send_bytes(
                format!("concord.v1.msg.{case}.{sender}.coordinator.finding"),
                body.clone(),
            )
            .await;
        stage.letter(&sent).await;
    }
    // A dot in a name shifts the tokens after it: the message is addressed to somebody else, and changes nothing here.
    let shifted = stage
        .send_bytes(
            format!("concord.v1.msg.{case}.al.ice.coordinator.finding"),
            body.clone(),
        )
        .await;
    assert_eq!(
        stored_body(stage, &shifted).await,
        body,
        "what was said is in the transcript"
    );
}

/// The body of a stored message.
async fn stored_body(stage: &Stage, sent: &Sent) -> Vec<u8> {
    let jetstream = jetstream::new(stage.client().clone());
    let stream = jetstream
        .get_stream_no_info("CONCORD_MESSAGES")
        .await
        .expect("a handle");
    let read = tokio::time::timeout(PATIENCE, stream.get_raw_message(sent.sequence)).await;
    read.expect("an answer in time")
        .expect("the message")
        .payload
        .to_vec()
}

/// A service stores what it sends by a request, so whoever it is for hears where the broker answers. Any agent can have the broker
/// acknowledge a message of its own there, so nobody may tell from these subjects the next one.
async fn nobody_can_tell_where_the_broker_answers_a_service_next(stage: &Stage) {
    const HEARD: usize = 4;
    let alice = unique("alice");
    let subject = format!("concord.v1.msg.*.coordinator.{alice}.>");
    let heard = stage.client().subscribe(subject).await;
    let mut heard = heard.expect("a subscription");
    let mut inboxes = Vec::new();
    while inboxes.len() < HEARD {
        stage.open(&[&alice]).await;
        let message = tokio::time::timeout(PATIENCE, heard.next()).await;
        let message = message.expect("in time").expect("a message");
        inboxes.push(
            message
                .reply
                .expect("it is stored by a request")
                .to_string(),
        );
    }
    check_unlike(&inboxes);
}

/// First the step that foresees where the broker stores the next event.
#[tokio::test(flavor = "multi_thread")]
async fn who_and_what_a_message_names_is_not_taken_on_trust() {
    let stage = Stage::start().await;
    an_id_that_a_service_is_about_to_use(&stage).await;
    speaking_for_another(&stage).await;
    an_envelope_that_differs_from_its_subject(&stage).await;
    an_unknown_case(&stage).await;
    a_strangers_finding(&stage).await;
    the_same_message_id_with_other_contents(&stage).await;
    the_same_message_id_in_the_header_is_not_even_stored(&stage).await;
    a_request_to_a_service_that_acts_on_none(&stage).await;
    ids_with_dots_spaces_and_wildcards_in_the_body(&stage).await;
    ids_with_dots_and_wildcards_in_the_subject(&stage).await;
    nobody_can_tell_where_the_broker_answers_a_service_next(&stage).await;
    stage.goes_on().await;
}
