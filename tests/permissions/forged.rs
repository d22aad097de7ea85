//! What the broker answers to an agent's own message goes where the agent has it go, also to subjects that nothing stores. It passes for
//! nobody's word there: no replica's, no operator's, no other agent's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use concord_encoding::parts::{PAYLOAD, object_subject};
use concord_testkit::{Agent, Message, TestInstallation, event_data, unique, wait_for};
use concord_wire::AgentId;
use concord_wire::subject::Service;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::kill::replicas::working;
use crate::permissions::replies::message_to;
use crate::permissions::user::{User, agents, start, users};
use crate::permissions::{PATIENCE, payloads};

/// Has the broker answer to these subjects, ten times a second each, until something else has happened. `rounds` counts how often.
async fn beside_answers_to<T>(
    (user, own): (&User, &AgentId),
    (subjects, rounds): (&[&str], &AtomicU32),
    until: impl Future<Output = T>,
) -> T {
    let note = format!("concord.v1.msg._.{own}.{own}.note");
    let attack = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            rounds.fetch_add(1, Ordering::Relaxed);
            for subject in subjects {
                let sent = user.client.publish_with_reply(
                    note.clone(),
                    (*subject).to_owned(),
                    "{}".into(),
                );
                sent.await.expect("sent");
            }
        }
    };
    tokio::select! {
        done = until => done,
        () = attack => unreachable!("it goes on for ever"),
    }
}

/// Has the broker answer to each of these subjects once, and waits until it has.
async fn answers_to((user, own): (&User, &AgentId), subjects: &[String]) {
    let note = format!("concord.v1.msg._.{own}.{own}.note");
    for subject in subjects {
        let sent = user
            .client
            .publish_with_reply(note.clone(), subject.clone(), "{}".into());
        sent.await.expect("sent");
    }
    user.wait_for_subscriptions(own).await;
}

/// Opens a case of one agent, which is decided.
async fn is_decided(installation: &TestInstallation, agent: &AgentId) {
    let case = unique("case");
    let opening = json!({ "case_id": case, "participants": [agent], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let filter = format!("case.{case}.decided");
    wait_for("the decision", PATIENCE, async || {
        let decided: Vec<Value> = event_data(installation.client(), &filter).await?;
        (!decided.is_empty()).then_some(()).ok_or_else(String::new)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_answers_is_nobodys_word() {
    let [eva, ann] = agents(["eva", "ann"]);
    let installation = start(users(&[&eva])).await;
    let user = User::connect(&installation, &eva).await;
    let finding = json!({ "summary": "Seen.", "risk_score": 20 });
    let _ann = Agent::steadfast(installation.client(), ann.as_str(), finding, 0.8).await;
    let subjects = [
        "concord.v1.replica.beat.coordinator.evil",
        "concord.v1.replica.beat.debate-facilitator.evil",
    ];
    let rounds = AtomicU32::new(0);
    beside_answers_to((&user, &eva), (&subjects, &rounds), async {
        // Whoever believed in another replica would stand by after its first beat, and take nothing more than it had asked for.
        while rounds.load(Ordering::Relaxed) < 20 {
            is_decided(&installation, &ann).await;
            for service in [Service::Coordinator, Service::DebateFacilitator] {
                wait_for(
                    format!("{service} to work"),
                    PATIENCE,
                    async || match working(&installation, service).await? {
                        1 => Ok(()),
                        other => Err(format!("{other} do")),
                    },
                )
                .await;
            }
        }
    })
    .await;
    installation.holds(PATIENCE).await;
}

/// An operator who asks has named where the answer is to go. The broker's acknowledgements name nothing, and are no requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_waits_for_is_not_carried_out() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [sam, tom] = agents(["sam", "tom"]);
    let person = json!({ "person": { "name": sam, "roles": [{ "role": "auditor" }] }, "by": "op" });
    let verb = "concord.v1.api.coordinator.register_person";
    let sent = client.publish(verb, person.to_string().into()).await;
    sent.expect("sent");
    // On the same connection, so it comes behind.
    installation
        .register_person(&json!({ "name": tom, "roles": [{ "role": "auditor" }] }))
        .await;
    installation.holds(PATIENCE).await;
    let registered = event_data(client, "person.*.registered")
        .await
        .expect("readable");
    let names: Vec<&Value> = registered
        .iter()
        .map(|one| &one["person"]["name"])
        .collect();
    assert_eq!(names, [&json!(tom)]);
}

/// What an agent may have in the store in this test.
const SHARE: usize = 2 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_broker_is_no_part_of_a_payload_and_none_is_lost_by_it() {
    let [eva, mallory, ann] = agents(["eva", "mallory", "ann"]);
    let config = users(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan.with_setting(format!("storage.payload_agent_bytes_max={SHARE}"))
    })
    .await;
    let his = User::connect(&installation, &mallory).await;
    let hers = User::connect(&installation, &eva).await;
    let bucket = "CONCORD_PAYLOADS";
    let parts = |of: &str| format!("$O.{bucket}.C.{of}");
    let forged: Vec<String> = (0..20)
        .map(|number| parts(&format!("{eva}.x{number}")))
        .collect();
    answers_to((&his, &mallory), &forged).await;
    let stored = payloads::put(&hers.client, &eva, SHARE).await;
    let reference = stored.expect("her share is hers")["reference"].clone();
    let full = payloads::put(&hers.client, &eva, 9).await;
    full.expect_err("it is used up by herself");

    // Of an object whose name he was sent nobody else is kept from it.
    let object = reference["object"].as_str().expect("its name");
    answers_to((&his, &mallory), &[object_subject(bucket, object)]).await;
    let asked = json!({ "reference": reference, "after": 0 });
    let part = payloads::ask(&hers.client, PAYLOAD, &eva, &asked).await;
    part.expect("it is there");
    let case = unique("case");
    let opening = json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let referred = json!({ "payload_reference": reference });
    let finding = Message::finding(&case, ann.as_str(), referred, 0.8);
    finding.publish(installation.client()).await;
    // The service has read it: it is a text, and no finding.
    let error = message_to(&installation, &case, &ann, "error").await;
    assert!(!error.to_string().contains("no such object"), "{error:#}");
    installation.holds(PATIENCE).await;
}
