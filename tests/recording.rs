//! What an earlier version has stored: it is read as that version read it, and an installation of today goes on with it.

mod stage;

use std::collections::HashSet;
use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_testkit::{Agent, TestInstallation, settled, stored_from, wait_for};
use serde_json::{Value, json};

use stage::{Recorded, Recording, said};

const PATIENCE: Duration = Duration::from_secs(60);
const CHECK: &[&str] = &["check"];
const REPLAY: &[&str] = &["replay", "--all"];

/// Whether everything that an earlier version said is said now, too; there may be more.
fn includes(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => before.iter().all(|(key, value)| {
            let now = now.get(key);
            now.is_some_and(|now| match key.as_str() {
                // An invariant may be held over more than before.
                "examined" => now.as_u64() >= value.as_u64(),
                _ => includes(now, value),
            })
        }),
        (Value::Array(now), Value::Array(before)) => before
            .iter()
            .all(|value| now.iter().any(|now| includes(now, value))),
        (now, before) => now == before,
    }
}

/// The names of the invariants that a report says are violated.
fn violated(check: &Value) -> Vec<&str> {
    let invariants = check["invariants"].as_array().expect("a list");
    let violated = invariants.iter().filter(|one| one["violations"] != 0);
    violated.filter_map(|one| one["name"].as_str()).collect()
}

/// Changes the value at a JSON pointer of the first message that has one there and whose subject ends like this; where
/// the message is stored.
fn tamper(recording: &mut Recording, subject: &str, pointer: &str, value: Value) -> u64 {
    change(recording, subject, pointer, |found| *found = value)
}

fn change(
    recording: &mut Recording,
    subject: &str,
    pointer: &str,
    change: impl FnOnce(&mut Value),
) -> u64 {
    let messages = recording.messages.iter_mut();
    for message in messages.filter(|one| one.subject.ends_with(subject)) {
        let mut body: Value = serde_json::from_str(&message.body).expect("a message is JSON");
        if let Some(found) = body.pointer_mut(pointer) {
            change(found);
            message.body = body.to_string();
            return message.sequence;
        }
    }
    panic!("no message {subject} has {pointer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_version_stored_is_read_as_it_read_it() {
    for recording in Recording::all() {
        let broker = recording.restore().await;
        let (code, check) = said(&broker, CHECK);
        assert_eq!(
            (code, &check["holds"]),
            (Some(0), &json!(true)),
            "{check:#}"
        );
        assert!(includes(&check, &recording.check), "{check:#}");
        let (code, replay) = said(&broker, REPLAY);
        assert_eq!(
            (code, &replay["differences"]),
            (Some(0), &json!([])),
            "{replay:#}"
        );
        assert!(includes(&replay, &recording.replay), "{replay:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weight_that_was_changed_afterwards_is_found() {
    for mut recording in Recording::all() {
        let weight = "/data/outcome/tally/options/0/weight";
        let changed = tamper(&mut recording, ".resolved", weight, json!(0.99));
        let broker = recording.restore().await;
        let (code, replay) = said(&broker, REPLAY);
        assert_eq!((code, &replay["identical"]), (Some(1), &json!(false)));
        assert_eq!(replay["differences"][0]["sequence"], changed, "{replay:#}");
        let (code, check) = said(&broker, CHECK);
        assert_eq!((code, &check["holds"]), (Some(1), &json!(false)));
        assert_eq!(violated(&check), ["replay"], "{check:#}");
    }
}

/// While two versions run at once, one stores with an outcome what rests on it, and the other repeats the outcome without.
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_an_earlier_version_has_repeated_is_no_difference() {
    let changed = ".decision_changed";
    let has_one = |one: &Recording| one.messages.iter().any(|m| m.subject.ends_with(changed));
    let mut recordings = Recording::all();
    recordings.retain(has_one);
    assert!(!recordings.is_empty());
    for mut recording in recordings {
        // As its challenger has named them, so that the entry in the decision log is the same.
        change(&mut recording, changed, "/data/outcome", |outcome| {
            outcome["dependants"] = json!(["dcf"]);
        });
        let broker = recording.restore().await;
        let (code, replay) = said(&broker, REPLAY);
        assert_eq!(
            (code, &replay["differences"]),
            (Some(0), &json!([])),
            "{replay:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_afterwards_to_rest_on_an_outcome_is_found() {
    let changed = ".decision_changed";
    let has_one = |one: &Recording| one.messages.iter().any(|m| m.subject.ends_with(changed));
    for mut recording in Recording::all().into_iter().filter(has_one) {
        let outcome = "/data/decision/outcomes/0";
        let changed = change(&mut recording, changed, outcome, |outcome| {
            outcome["dependants"] = json!(["dcf"]);
        });
        let broker = recording.restore().await;
        let (code, replay) = said(&broker, REPLAY);
        assert_eq!(code, Some(1), "{replay:#}");
        assert_eq!(replay["differences"][0]["sequence"], changed, "{replay:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_that_no_case_has_is_found() {
    for mut recording in Recording::all() {
        let finding = ".coordinator.finding";
        tamper(
            &mut recording,
            finding,
            "/message_id",
            json!("not-recorded"),
        );
        let broker = recording.restore().await;
        let (code, check) = said(&broker, CHECK);
        assert_eq!(
            (code, &check["holds"]),
            (Some(1), &json!(false)),
            "{check:#}"
        );
        assert_eq!(
            violated(&check),
            ["findings_kept", "messages_kept"],
            "{check:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_of_today_goes_on_with_it() {
    for recording in Recording::all() {
        let broker = recording.restore().await;
        let url = broker.url();
        let installation = TestInstallation::start_with(|mut plan| {
            plan.server_url = Some(url);
            plan
        })
        .await;
        let client = installation.client();
        let reject = json!({ "summary": "Risky.", "risk_score": 90, "recommendation": "reject" });
        let sign = json!({ "summary": "Usual.", "risk_score": 20, "recommendation": "sign" });
        let _zoe = Agent::steadfast(client, "zoe", reject, 0.9).await;
        let _yan = Agent::steadfast(client, "yan", sign, 0.5).await;
        let opening = json!({
            "policy": "contract-review", "participants": ["zoe", "yan"],
            "task": { "type": "contract_review", "title": "Lease", "input": {} },
        });
        let case = installation.open_case(&opening).await;
        let decision = installation.decision(&case, PATIENCE).await;
        assert_eq!(decision["decision"]["reason"], "settled", "{decision:#}");
        settled(client, PATIENCE).await.unwrap();
        installation.holds(PATIENCE).await;
        // The recorded agents become unavailable after a while, and that may be stored just then.
        wait_for("a check of everything", PATIENCE, async || {
            let (_, check) = said(&broker, CHECK);
            let is_whole = check["holds"] == true && check["under_way"] == 0;
            is_whole.then_some(()).ok_or_else(|| check.to_string())
        })
        .await;
        let (_, replay) = said(&broker, REPLAY);
        assert_eq!(replay["differences"], json!([]));
        // What had ended has stayed as it was: everything new is of the new case, its debates and its deadlines. Only the
        // recorded agents become unavailable after a while, because nobody hosts them any more.
        let recorded = |one: &&Recorded| one.stream == "CONCORD_EVENTS";
        let recorded: Vec<&Recorded> = recording.messages.iter().filter(recorded).collect();
        let ids: HashSet<&str> = recorded.iter().map(|one| id(&one.subject)).collect();
        let last = recorded.last().expect("there are events").sequence;
        let new = stored_from(client, StreamKind::Events, ">", last + 1)
            .await
            .unwrap();
        let new: Vec<&str> = new.iter().map(|event| event.subject.as_str()).collect();
        let moved = |event: &&str| ids.contains(id(event)) && !event.contains(".event.agent.");
        let moved: Vec<&str> = new.iter().copied().filter(moved).collect();
        assert!(!new.is_empty() && moved.is_empty(), "{moved:?}");
    }
}

/// The id in an event's subject: `<prefix>.v1.event.<aggregate>.<id>.<fact>`.
fn id(subject: &str) -> &str {
    subject.split('.').nth(4).expect("it is an event's")
}
