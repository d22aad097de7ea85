//! Messages that cannot be processed however often it is tried, and messages that must not be answered.

use async_nats::jetstream;
use concord_domain::aggregates::deadline::Fire;
use concord_events::dead_letter::header;
use concord_events::{Aggregate, Deadline, FiredBy};
use concord_testkit::{Message, dead_letters, patient, unique, wait_for};
use concord_wire::subject::Service;
use concord_wire::{Timestamp, Token};
use serde_json::{Value, json};

use crate::bad_input::stage::{
    PATIENCE, Stage, finding, invalid, opening, request_to_open, text, unauthorized,
};

/// Appends bytes that are no event to the events of a case, as no service ever would.
async fn garble(stage: &Stage, case: &str) {
    let subject = format!("concord.v1.event.case.{case}.finding_recorded");
    garble_on(stage, subject).await;
}

async fn garble_on(stage: &Stage, subject: String) {
    let sent = patient(stage.client())
        .publish(subject, "no event".into())
        .await;
    sent.expect("it is sent").await.expect("it is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_again_and_again_is_given_up() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    let case = stage.open(&["alice"]).await;
    garble(&stage, &case).await;
    let sent = stage
        .send(&Message::finding(&case, "alice", finding(50), 0.5))
        .await;
    let error = stage.error_to("alice", &sent).await;
    assert_eq!(error["payload"]["error_code"], "INTERNAL_ERROR");
    assert!(
        !text(&error["payload"]["recovery_suggestions"][0]).is_empty(),
        "{error}"
    );
    let letter = stage.letter(&sent).await;
    assert_eq!(letter.subject, "concord.v1.dead.coordinator.exhausted");
    assert_eq!(
        (
            letter.header(header::CODE),
            letter.header(header::DELIVERIES)
        ),
        ("INTERNAL_ERROR", "3")
    );
    stage.decides_a_good_case().await;
}

/// A case whose events cannot be read keeps its deadlines open for ever; other cases must not wait behind it.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_cannot_be_read_does_not_hold_up_the_deadlines_of_others() {
    check_others_go_on(async |stage, case| garble(stage, case).await).await;
}

/// The same of a case whose deadline cannot be fired, each time that it is tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_cannot_be_fired_does_not_hold_up_those_of_others() {
    check_others_go_on(async |stage, case| {
        let fire = Fire {
            aggregate: Aggregate::Case,
            id: Token::new(case).expect("an id"),
            deadline: Deadline {
                name: Token::fixed("findings"),
                due: Timestamp::from_unix_millis(0),
            },
            fired_by: FiredBy::Watchdog,
        };
        let id = fire.deadline_id();
        garble_on(
            stage,
            format!("concord.v1.event.deadline.{id}.case_elapsed"),
        )
        .await;
    })
    .await;
}

/// Something is done to a case, and the schedules of all deadlines are lost: those of another case are fired by the watchdog.
async fn check_others_go_on(harm: impl AsyncFn(&Stage, &str)) {
    let watchdog = [
        "service.watchdog_interval_ms=200",
        "service.watchdog_grace_ms=200",
    ];
    let stage = Stage::start_with(|plan| {
        let plan = plan.with_setting("work.deliveries_max=2");
        watchdog.iter().fold(plan, |plan, setting| {
            plan.with_service_setting(Service::EscalationTimer, *setting)
        })
    })
    .await;
    let soon = json!({ "finding_timeout_ms": 2_000 });
    let garbled = stage.open_with(&["alice"], soon.clone()).await;
    harm(&stage, &garbled).await;
    let other = stage
        .open_with(&["alice"], json!({ "finding_timeout_ms": 4_000 }))
        .await;
    purge_schedules(&stage).await;
    assert_eq!(stage.decision(&other).await["reason"], "no_finding");
    stage.decides_a_good_case().await;
}

/// Deletes everything that the broker's scheduler holds, once it holds a deadline for each of the two cases.
async fn purge_schedules(stage: &Stage) {
    let stream = jetstream::new(stage.client().clone())
        .get_stream_no_info("CONCORD_TIMERS")
        .await
        .expect("a handle");
    wait_for(
        "the deadlines of two cases to be armed",
        PATIENCE,
        async || {
            let armed = stage
                .installation()
                .ask(Service::EscalationTimer, "armed", &Value::Null)
                .await?;
            let count = armed.as_array().map_or(0, Vec::len);
            if count >= 2 {
                Ok(())
            } else {
                Err(format!("{count} are armed"))
            }
        },
    )
    .await;
    stream.purge().await.expect("the stream is purged");
}

async fn an_error_is_not_answered_by_an_error(stage: &Stage) {
    let alice = unique("alice");
    let case = stage.open(&[&alice]).await;
    let report =
        json!({ "error_code": "INTERNAL_ERROR", "error_message": "I could not.", "details": {} });
    for service in ["coordinator", "debate-facilitator"] {
        // A good one is read and needs nothing; a bad one is kept, and its sender is not told.
        let message = Message::new(&case, &alice, service, "error", report.clone());
        stage.send(&message).await;
        let bad = Message::new(&case, &alice, service, "error", report.clone())
            .with("/from_agent", "bob");
        let sent = stage.send(&bad).await;
        stage.letter(&sent).await;
        let sent = stage.send_bytes(bad.subject(), b"not JSON".to_vec()).await;
        stage.letter(&sent).await;
    }
    stage.settled().await;
    assert!(
        stage.errors(&alice).await.is_empty(),
        "nobody told alice anything"
    );
}

/// Services do not tell each other about faults: neither could do anything but answer again.
async fn a_service_is_not_told(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let parameters = json!({ "case_id": case, "conflict": {}, "policy": {} });
    let request = json!({ "action": "open_debate", "parameters": parameters });
    let posing = Message::new(
        &case,
        "conflict-detector",
        "debate-facilitator",
        "request",
        request.clone(),
    );
    let sent = stage.send(&posing).await;
    stage.letter(&sent).await;
    // An agent that asks for it under its own name is told that it may not.
    let message = Message::new(&case, "alice", "debate-facilitator", "request", request);
    stage
        .send_refused(&message, &unauthorized("/from_agent"))
        .await;
    stage.settled().await;
    assert!(stage.errors("conflict-detector").await.is_empty());
}

/// Many bad messages at once are all answered, and a good case among them is decided.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_messages() {
    const BAD: usize = 2_000;
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    let subject = Message::finding(&case, "alice", json!({}), 0.5).subject();
    for n in 0..BAD {
        let text = format!("not JSON, number {n}");
        stage
            .client()
            .publish(subject.clone(), text.into())
            .await
            .expect("it is sent");
    }
    stage.client().flush().await.expect("the broker has it all");
    stage.goes_on().await;
    assert_eq!(stage.errors("alice").await.len(), BAD);
    let letters = dead_letters(stage.client()).await;
    assert_eq!(letters.expect("the stream can be read").len(), BAD);
}

/// Bad input is refused on the urgent lane as on the normal one.
async fn bad_input_on_the_urgent_lane(stage: &Stage) {
    let case = unique("case");
    let mut parameters = opening(&case, &["alice"], json!({}));
    parameters["policy"] = json!("none");
    let message = request_to_open("alice", &parameters).with("/priority", "critical");
    stage
        .send_refused(&message, &invalid("/payload/parameters/policy"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_answered_by_none_and_the_urgent_lane_refuses_as_the_other() {
    let stage = Stage::start().await;
    an_error_is_not_answered_by_an_error(&stage).await;
    bad_input_on_the_urgent_lane(&stage).await;
    stage.goes_on().await;
    a_service_is_not_told(&stage).await;
    stage.decides_a_good_case().await;
}
