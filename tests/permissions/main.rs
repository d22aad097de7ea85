//! Invariant 9: no agent can publish as another, read another's inbox, write an event, or fire a timer. Shown with users of a
//! real broker that have the permissions which `concord permissions` prints.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, TestInstallation, stored, unique, until};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;

mod accounts;
mod replies;

const PATIENCE: Duration = Duration::from_secs(60);

/// The broker's users: one without limits for the services, and the agents.
fn users(agents: &[&AgentId]) -> String {
    let space = SubjectSpace::default();
    let user = |agent: &&AgentId| json!({ "user": agent, "password": "x", "permissions": space.permissions(agent) });
    let mut users: Vec<Value> = agents.iter().map(user).collect();
    users.push(json!({ "user": "services", "password": "x" }));
    format!(
        "authorization: {}\nno_auth_user: services",
        json!({ "users": users })
    )
}

/// A client of an agent, and what the broker refuses it.
async fn client(
    installation: &TestInstallation,
    agent: &AgentId,
) -> (Client, mpsc::UnboundedReceiver<String>) {
    connect(installation, agent, &SubjectSpace::replies(agent)).await
}

async fn connect(
    installation: &TestInstallation,
    agent: &AgentId,
    inbox: &str,
) -> (Client, mpsc::UnboundedReceiver<String>) {
    let (refusals, refused) = mpsc::unbounded_channel();
    let options = ConnectOptions::with_user_and_password(agent.to_string(), "x".into())
        .custom_inbox_prefix(inbox)
        .event_callback(move |event| {
            let refusals = refusals.clone();
            async move {
                if let Event::ServerError(error) = event {
                    let _ = refusals.send(error.to_string());
                }
            }
        });
    (
        options
            .connect(installation.server_url())
            .await
            .expect("the agent's user is known"),
        refused,
    )
}

/// Waits until the broker has the subscriptions of an agent, who may publish to no inbox: what she says is acknowledged after
/// them.
async fn listens(client: &Client, agent: &AgentId) {
    let jetstream = async_nats::jetstream::new(client.clone());
    let note = jetstream
        .publish(format!("concord.v1.msg._.{agent}.nobody.note"), "{}".into())
        .await
        .expect("sent");
    note.await.expect("stored");
}

async fn is_refused(refused: &mut mpsc::UnboundedReceiver<String>, what: &str) {
    let word = tokio::time::timeout(PATIENCE, refused.recv()).await;
    let word = word
        .unwrap_or_else(|_| panic!("{what} was not refused"))
        .expect("the client is there");
    assert!(
        word.to_lowercase().contains("permissions violation"),
        "{what}: {word}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_for_another_reads_what_is_not_for_it_or_writes_a_fact() {
    let [eva, mallory] = ["eva", "mallory"].map(|name| AgentId::new(unique(name)).expect("an id"));
    let config = users(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan
    })
    .await;
    let case = unique("case");
    let opening =
        json!({ "case_id": case, "participants": [eva, mallory], "task": { "type": "test" } });
    let (hers, mut refused_to_her) = client(&installation, &eva).await;
    let (his, mut refused) = client(&installation, &mallory).await;
    let space = SubjectSpace::default();
    let inbox = space.permissions(&eva).subscribe[0].clone();
    let mut heard = hers.subscribe(inbox.clone()).await.expect("a subscription");
    listens(&hers, &eva).await;
    installation.open_case(&opening).await;
    let task = tokio::time::timeout(PATIENCE, heard.next())
        .await
        .expect("she is told")
        .expect("a message");
    let task: Value = serde_json::from_slice(&task.payload).expect("JSON");
    assert_eq!(task["message_type"], "task_assignment");

    // What is his own he may say, and it is acknowledged where he listens.
    let own = Message::finding(&case, mallory.as_str(), json!({ "summary": "Seen." }), 0.8);
    let jetstream = async_nats::jetstream::new(his.clone());
    let stored_own = jetstream
        .publish(own.subject(), own.body.to_string().into())
        .await
        .expect("sent");
    stored_own.await.expect("stored");

    let as_her = Message::finding(&case, eva.as_str(), json!({ "summary": "As her." }), 0.8);
    let ruling = Message::new(
        &case,
        eva.as_str(),
        "debate-facilitator",
        "ruling",
        json!({}),
    );
    let mut all = space.all("event");
    all.truncate(all.len() - 1);
    for (subject, what) in [
        (as_her.subject(), "a finding in her name"),
        (ruling.subject(), "a ruling in her name"),
        (format!("{all}case.{case}.decided"), "a fact"),
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
    ] {
        his.publish(subject, as_her.body.to_string().into())
            .await
            .expect("sent");
        is_refused(&mut refused, what).await;
    }
    for subject in [
        inbox,
        space.all("event"),
        ">".to_owned(),
        "_INBOX.>".to_owned(),
    ] {
        let _never = his.subscribe(subject.clone()).await.expect("asked for");
        is_refused(&mut refused, &subject).await;
    }

    // She says hers, and it counts: the case has nobody else's word for it.
    let hers_own = Message::finding(&case, eva.as_str(), json!({ "summary": "Hers." }), 0.8);
    hers.publish(hers_own.subject(), hers_own.body.to_string().into())
        .await
        .expect("sent");
    let filter = format!("{all}case.{case}.findings_closed");
    let closed = until("both findings are in", PATIENCE, async || {
        let facts = stored(installation.client(), StreamKind::Events, &filter).await?;
        facts
            .first()
            .map(Stored::json)
            .ok_or_else(|| "not yet".to_owned())
    });
    let closed = closed.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(closed["data"]["last"]["finding"]["summary"], "Hers.");
    assert!(
        refused_to_her.try_recv().is_err(),
        "nothing of hers was refused"
    );
}
