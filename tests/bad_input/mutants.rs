//! Messages that are almost right, in any number, and good messages to a service that does not act on them.

use std::time::Duration;

use concord_testkit::{Message, Mutants, dead_letters, patient, settled, unique};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};

use crate::bad_input::stage::{Stage, invalid};

/// Mutants when the environment names no other number.
const USUAL: usize = 300;
/// Publications whose acknowledgement is waited for together.
const BATCH: usize = 256;

async fn stage() -> Stage {
    Stage::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutant_of_an_example_is_used_answered_or_dead() {
    let wanted = std::env::var("CONCORD_MUTANTS").ok();
    let wanted = wanted.map_or(USUAL, |number| number.parse().expect("a number"));
    let stage = stage().await;
    let cases = [stage.open(&["ada", "ben"]).await];
    let jetstream = patient(stage.client());
    let mut mutants = Mutants::new(1, &cases, &Lane::ALL);
    let mut sent = 0;
    while sent < wanted {
        let mut acknowledgements = Vec::new();
        for _ in 0..BATCH.min(wanted - sent) {
            let mutant = mutants.make();
            let subject = format!("concord.v1.{}.{}", mutant.lane.as_str(), mutant.place);
            let publication = jetstream.publish(subject, mutant.body.into()).await;
            acknowledgements.push(publication.expect("a mutant is sent"));
        }
        sent += acknowledgements.len();
        for acknowledgement in acknowledgements {
            acknowledgement.await.expect("a mutant is stored");
        }
    }
    let patience = Duration::from_secs(60) + Duration::from_millis(50) * wanted as u32;
    settled(stage.client(), patience)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let dead = dead_letters(stage.client()).await.expect("letters").len();
    println!("{sent} mutants, {dead} dead");
    assert!(
        dead * 4 > sent,
        "few of them were refused: {dead} of {sent}"
    );
    stage.goes_on().await;
}

/// A message of an example's kind to a service that does not act on it, with the service that does.
const MISDIRECTED: [(&str, &str, &str); 7] = [
    ("finding", "debate-facilitator", "coordinator"),
    ("agreement", "coordinator", "debate-facilitator"),
    ("ruling", "coordinator", "debate-facilitator"),
    ("request", "agent-adapter", "coordinator"),
    ("finding", "agent-adapter", "coordinator"),
    ("task_result", "debate-facilitator", "coordinator"),
    ("question", "escalation-timer", "an agent"),
];

async fn a_message_to_a_service_that_does_not_act_on_it_is_refused_with_whom_to_send_it_to(
    stage: &Stage,
) {
    for (kind, to, acting) in MISDIRECTED {
        let message = Message::new("_", "alice", to, kind, json!({}));
        let error = stage.send_refused(&message, &invalid("/to_agent")).await;
        let advice = error["payload"]["recovery_suggestions"][0].to_string();
        assert!(advice.contains(acting), "{kind} to {to}: {advice}");
    }
}

/// An answer to news could be answered again without end.
async fn what_only_tells_something_is_let_pass(stage: &Stage) {
    let alice = unique("alice");
    let news = [
        (
            "error",
            json!({ "error_code": "INTERNAL_ERROR", "error_message": "I could not." }),
        ),
        ("notification", json!({ "event": "lunch", "data": {} })),
        ("info_update", json!({ "text": "Lunch is served." })),
        ("status", json!({ "progress": 0.5 })),
    ];
    for service in Service::ALL {
        for (kind, payload) in &news {
            let message = Message::new("_", &alice, service.as_str(), kind, payload.clone());
            stage.send(&message).await;
        }
    }
    settled(stage.client(), Duration::from_secs(60))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(stage.errors(&alice).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_service_acts_on_is_refused_or_let_pass() {
    let stage = stage().await;
    what_only_tells_something_is_let_pass(&stage).await;
    a_message_to_a_service_that_does_not_act_on_it_is_refused_with_whom_to_send_it_to(&stage).await;
    stage.goes_on().await;
}
