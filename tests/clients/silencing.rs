//! Whoever foresees the id of an answer does not keep it from being stored.

use async_nats::HeaderMap;
use async_nats::jetstream;
use concord_agent::payload::Finding;
use concord_agent::{Agent, Builder, MessageType};
use concord_testkit::{Message, TestInstallation, event_data, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::clients::python::Driver;
use crate::clients::stage::{PATIENCE, Stage};
use crate::clients::trouble::{ask, next_to};

/// Mallory publishes something of her own under this id, before anybody else does.
async fn take_id(stage: &Stage, id: &str) {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", id);
    let sent = jetstream::new(stage.client.clone())
        .publish_with_headers(
            "concord.v1.msg._.mallory.nobody.status",
            headers,
            "{}".into(),
        )
        .await;
    let stored = sent.expect("it is sent").await.expect("it is stored");
    assert!(!stored.duplicate);
}

/// Ann is asked twice by the same message, and answers it twice: her answer is stored, once.
async fn check_is_stored_once(stage: &mut Stage) {
    take_id(stage, "r-1-ann").await;
    for request in ["r-1", "r-1", "r-2"] {
        ask(stage, request, "answer").await;
        next_to(stage, "zoe").await;
    }
    let ids = stored_until(stage, "r-2-ann").await;
    assert_eq!(ids, [json!("r-1-ann"), json!("r-2-ann")]);
}

/// The ids of the answers to zoe that are stored, when the last one is.
async fn stored_until(stage: &Stage, last: &str) -> Vec<Value> {
    wait_for("the last answer", PATIENCE, async || {
        let stored = message_bodies(&stage.client, "concord.v1.msg._.ann.zoe.response").await?;
        let ids: Vec<_> = stored
            .iter()
            .map(|body| body["message_id"].clone())
            .collect();
        match ids.last() {
            Some(id) if id == last => Ok(ids),
            _ => Err(format!("{ids:?}")),
        }
    })
    .await
}

/// A request of mallory to ann under this id.
fn asked_by_mallory(id: &str) -> Message {
    let request = json!({ "action": "answer", "parameters": {} });
    Message::new("_", "mallory", "ann", "request", request)
        .with("/message_id", id)
        .with("/requires_response", true)
}

/// Mallory asks ann under the id that zoe's request will have, so that ann herself says something under the id of her answer to zoe: it
/// is stored for all that.
async fn check_is_stored_although_another_is_answered(stage: &mut Stage) {
    asked_by_mallory("r-9").publish(&stage.client).await;
    next_to(stage, "mallory").await;
    for request in ["r-9", "r-10"] {
        ask(stage, request, "answer").await;
        next_to(stage, "zoe").await;
    }
    let ids = stored_until(stage, "r-10-ann").await;
    assert_eq!(ids, [json!("r-9-ann"), json!("r-10-ann")]);
}

/// An agent of the Rust library that answers every request.
fn answering() -> Builder {
    Agent::builder("ann").on(MessageType::Request, |agent, request| async move {
        agent.respond(&request, &json!({})).await
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_what_a_rust_agent_says_from_being_stored() {
    let mut stage = Stage::start().await;
    let connected = answering().durable().connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    check_is_stored_once(&mut stage).await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_is_not_made_to_use_up_the_id_of_its_answer_to_another() {
    let mut stage = Stage::start().await;
    let connected = answering().durable().connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    check_is_stored_although_another_is_answered(&mut stage).await;
    agent.close().await.expect("it is closed");
}

/// The ids that the assignments of a case may have that is opened next.
async fn foreseen(client: &async_nats::Client, case: &str) -> Vec<String> {
    let events = jetstream::new(client.clone());
    let mut events = events.get_stream("CONCORD_EVENTS").await.expect("events");
    let last = events.info().await.expect("it answers").state.last_sequence;
    let places = (1..6).flat_map(|next| (0..3).map(move |place| (last + next, place)));
    places
        .map(|(opened_at, place)| format!("{case}-{opened_at}-{place}"))
        .collect()
}

/// Before the case is opened, mallory gives ann a task under each id that its assignment may have.
#[tokio::test(flavor = "multi_thread")]
async fn a_finding_counts_whatever_its_agent_was_told_before_under_the_id_of_the_assignment() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let builder = Agent::builder("ann").on(MessageType::TaskAssignment, |agent, task| async move {
        let finding = json!({ "summary": "Seen.", "risk_score": 10 });
        let finding: Finding = serde_json::from_value(finding)?;
        agent.finding(&task, &finding, 0.9).await
    });
    let connected = builder.durable().connect(installation.server_url()).await;
    let agent = connected.expect("it connects");
    let case = unique("case");
    let ids = foreseen(client, &case).await;
    for id in &ids {
        let task = json!({ "task": { "type": "test" } });
        let task = Message::new("_", "mallory", "ann", "task_assignment", task);
        task.with("/message_id", id.as_str()).publish(client).await;
    }
    wait_for("ann's findings for mallory", PATIENCE, async || {
        let given = message_bodies(client, "concord.v1.msg._.ann.mallory.finding").await?;
        let is_all = given.len() == ids.len();
        is_all.then_some(()).ok_or(format!("{}", given.len()))
    })
    .await;
    let participants = ["ann", "ben"];
    let opening =
        json!({ "case_id": case, "participants": participants, "task": { "type": "test" } });
    installation.open_case(&opening).await;
    wait_for("ann's finding", PATIENCE, async || {
        let filter = format!("case.{case}.finding_recorded");
        let recorded = event_data(client, &filter).await?;
        (recorded.len() == 1).then_some(()).ok_or("none".to_owned())
    })
    .await;
    let assigned = format!("concord.v1.msg.{case}.coordinator.ann.task_assignment");
    let assigned = message_bodies(client, &assigned).await.expect("a task");
    let id = assigned[0]["message_id"].as_str().expect("an id");
    assert!(ids.iter().any(|foreseen| foreseen == id), "{id} in {ids:?}");
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_what_a_python_agent_says_from_being_stored() {
    let mut stage = Stage::start().await;
    let driver = Driver::of("trouble.py", &[&stage.broker.url(), "waiting"]).await;
    check_is_stored_once(&mut stage).await;
    driver.end().await;
}
