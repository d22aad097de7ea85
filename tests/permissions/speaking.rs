//! Agents that share an account: each may publish and read only what is its own.

use async_nats::jetstream;
use concord_testkit::{Message, events, unique, wait_for};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents, start, users};

fn finding(case: &str, agent: &AgentId, summary: &str) -> Message {
    Message::finding(case, agent.as_str(), json!({ "summary": summary }), 0.8)
}

/// Subjects to which mallory may not publish, and what publishing there would be.
fn forbidden_subjects(case: &str, eva: &AgentId) -> [(String, &'static str); 8] {
    let ruling = Message::new(
        case,
        eva.as_str(),
        "debate-facilitator",
        "ruling",
        json!({}),
    );
    [
        (
            finding(case, eva, "As her.").subject(),
            "a finding in her name",
        ),
        (ruling.subject(), "a ruling in her name"),
        (format!("concord.v1.event.case.{case}.decided"), "an event"),
        (
            "concord.v1.timer.due.case.c.findings".to_owned(),
            "a deadline",
        ),
        (
            "concord.v1.timer.armed.case.c.findings".to_owned(),
            "arming a deadline",
        ),
        (
            "concord.v1.api.coordinator.cancel_case".to_owned(),
            "an operator's order",
        ),
        (
            "$JS.API.STREAM.DELETE.CONCORD_EVENTS".to_owned(),
            "the end of a stream",
        ),
        (
            "$JS.API.STREAM.MSG.GET.CONCORD_MESSAGES".to_owned(),
            "reading a stream",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_for_another_reads_what_is_not_for_it_or_writes_a_fact() {
    let [eva, mallory] = agents(["eva", "mallory"]);
    let installation = start(users(&[&eva, &mallory])).await;
    let case = unique("case");
    let mut hers = User::connect(&installation, &eva).await;
    let mut his = User::connect(&installation, &mallory).await;
    let space = SubjectSpace::default();
    let inbox = space.permissions(&eva).subscribe[0].clone();
    let mut messages = hers
        .client
        .subscribe(inbox.clone())
        .await
        .expect("a subscription");
    hers.wait_for_subscriptions(&eva).await;
    let opening =
        json!({ "case_id": case, "participants": [eva, mallory], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let task = timeout(PATIENCE, messages.next())
        .await
        .expect("she is told")
        .expect("a message");
    let task: Value = serde_json::from_slice(&task.payload).expect("JSON");
    assert_eq!(task["message_type"], "task_assignment");

    // He may publish his own finding, and it is acknowledged where he listens.
    let own = finding(&case, &mallory, "Seen.");
    let stored = jetstream::new(his.client.clone())
        .publish(own.subject(), own.bytes().into())
        .await
        .expect("sent");
    stored.await.expect("stored");

    let body = finding(&case, &eva, "As her.").bytes();
    for (subject, what) in forbidden_subjects(&case, &eva) {
        his.may_not_publish(subject, &body, what).await;
    }
    let everything = [space.all("event"), ">".to_owned(), "_INBOX.>".to_owned()];
    for subject in [inbox].into_iter().chain(everything) {
        his.may_not_subscribe(subject).await;
    }

    // Her own finding counts: the case has taken nobody else's in her name.
    let hers_own = finding(&case, &eva, "Hers.");
    hers.client
        .publish(hers_own.subject(), hers_own.bytes().into())
        .await
        .expect("sent");
    let filter = format!("case.{case}.findings_closed");
    let closed = wait_for("both findings to be in", PATIENCE, async || {
        let events = events(installation.client(), &filter).await?;
        let first = events.first().map(|event| event.json());
        first.ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(closed["data"]["last"]["finding"]["summary"], "Hers.");
    hers.check_nothing_refused();
}
