//! Each agent in an account of its own, as `concord permissions --accounts` prints them: the acknowledgements of its messages
//! go to itself alone, whatever reply subject it names.

use async_nats::{Client, Subscriber, jetstream};
use concord_events::non_event::is_acknowledgement;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Agent, Message, Stored, TestInstallation, agrees, concord, keeps_position, round_trip, stored,
    unique,
};
use concord_wire::{AgentId, CaseId};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents, start};

/// The configuration that the command prints, with the passwords that it leaves to the operator.
fn accounts(agents: &[&AgentId]) -> String {
    let agents: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
    let output = concord(&[&["permissions", "--accounts"], &agents[..]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let users = agents.into_iter().chain(["concord"]);
    let passwords = users.map(|user| format!("PASSWORD_{} = \"x\"\n", user.replace('-', "_")));
    let passwords: String = passwords.collect();
    format!(
        "{passwords}{}no_auth_user: concord\n",
        String::from_utf8_lossy(&output.stdout)
    )
}

/// The next message of a subscription.
async fn next(messages: &mut Subscriber) -> async_nats::Message {
    timeout(PATIENCE, messages.next())
        .await
        .expect("it is heard")
        .expect("a message")
}

/// The services receive the heartbeats of an agent.
async fn check_heartbeat(installation: &TestInstallation, agent: &AgentId, client: &Client) {
    let services = installation.client();
    let mut beats = services
        .subscribe("concord.v1.beat.*")
        .await
        .expect("a subscription");
    round_trip(services).await;
    let subject = format!("concord.v1.beat.{agent}");
    client
        .publish(subject.clone(), "{}".into())
        .await
        .expect("sent");
    assert_eq!(next(&mut beats).await.subject.as_str(), subject);
}

/// Agents hear each other once, and once each message for everyone.
async fn check_hearing(eva: (&AgentId, &User), mallory: (&AgentId, &User), case: &str) {
    let (eva, hers) = eva;
    let (mallory, his) = mallory;
    let mut subscriptions = Vec::new();
    for to in [eva.as_str(), "_all"] {
        let subject = format!("concord.v1.msg.*.*.{to}.*");
        let messages = hers.client.subscribe(subject).await;
        subscriptions.push(messages.expect("a subscription"));
    }
    hers.wait_for_subscriptions(eva).await;
    for to in [eva.as_str(), "_all", eva.as_str(), "_all"] {
        let payload = json!({ "summary": to });
        Message::new(case, mallory.as_str(), to, "info_update", payload)
            .send(&his.client)
            .await;
    }
    for messages in &mut subscriptions {
        let mut ids = Vec::new();
        for _ in 0..2 {
            let message = next(messages).await;
            let message: Value = serde_json::from_slice(&message.payload).expect("JSON");
            ids.push(message["message_id"].clone());
        }
        assert_ne!(ids[0], ids[1], "each is heard once");
    }
}

/// Mallory may not publish as eva or write an event, and may not read messages that are not for him; the broker says so.
async fn check_refusals(his: &mut User, eva: &AgentId, case: &str) {
    let as_her = Message::finding(case, eva.as_str(), json!({ "summary": "As her." }), 0.8);
    for subject in [
        as_her.subject(),
        format!("concord.v1.event.case.{case}.decided"),
        "$JS.API.INFO".to_owned(),
    ] {
        his.may_not_publish(subject.clone(), &as_her.bytes(), &subject)
            .await;
    }
    for subject in [
        format!("concord.v1.msg.*.*.{eva}.*"),
        "concord.v1.event.>".to_owned(),
        ">".to_owned(),
    ] {
        his.may_not_subscribe(subject).await;
    }
}

/// Publishes messages of mallory that name subjects of others for the reply.
async fn name_others_for_the_reply(his: &Client, mallory: &AgentId, eva: &AgentId, case: &str) {
    let own = format!("concord.v1.msg.{case}.{mallory}.{mallory}.note");
    for reply in [
        format!("concord.v1.event.case.{case}.opened"),
        format!("concord.v1.event.case.{case}.decided"),
        format!("concord.v1.event.detection.{case}.completed"),
        format!("concord.v1.msg.{case}.{eva}.coordinator.finding"),
        format!("concord.v1.msg.{case}.coordinator.{eva}.question"),
        format!("concord.v1.timer.armed.case.{case}.findings"),
        format!("concord.v1.timer.due.case.{case}.findings"),
        "concord.v1.dead.coordinator.refused".to_owned(),
    ] {
        his.publish_with_reply(own.clone(), reply, "{}".into())
            .await
            .expect("sent");
    }
    // A later message is acknowledged, to him: so the broker has answered those before it.
    let stored = jetstream::new(his.clone())
        .publish(own, "{}".into())
        .await
        .expect("sent");
    let stored = stored.await.expect("stored");
    assert_eq!(stored.stream, "CONCORD_MESSAGES");
}

/// No stream of the services holds an acknowledgement.
async fn check_no_acknowledgement_is_stored(installation: &TestInstallation) {
    for kind in [
        StreamKind::Events,
        StreamKind::Messages,
        StreamKind::Timers,
        StreamKind::Dead,
    ] {
        let all = stored(installation.client(), kind, ">")
            .await
            .expect("the stream can be read");
        let foreign: Vec<&Stored> = all
            .iter()
            .filter(|stored| is_acknowledgement(&stored.payload))
            .collect();
        assert!(foreign.is_empty(), "{foreign:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_in_accounts_of_their_own_take_part_and_have_nothing_stored_elsewhere() {
    let [eva, mallory] = agents(["eva", "mallory"]);
    let installation = start(accounts(&[&eva, &mallory])).await;
    let case = unique("case");
    let mut hers = User::connect_with_inbox(&installation, &eva, "_INBOX").await;
    let mut his = User::connect_with_inbox(&installation, &mallory, "_INBOX").await;
    check_heartbeat(&installation, &eva, &hers.client).await;
    check_hearing((&eva, &hers), (&mallory, &his), &case).await;
    check_refusals(&mut his, &eva, &case).await;

    // He does it before the case is there, while it goes on, and after its decision.
    let attack = async || name_others_for_the_reply(&his.client, &mallory, &eva, &case).await;
    attack().await;
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score, "severity": "high", "recommendation": "negotiate" });
    let _eva =
        Agent::start_as_user(&hers.client, eva.as_str(), keeps_position(finding(20), 0.9)).await;
    let _mallory =
        Agent::start_as_user(&his.client, mallory.as_str(), agrees(finding(90), 0.6)).await;
    let opening = json!({
        "case_id": case, "participants": [eva, mallory], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    attack().await;
    let case_id = CaseId::new(case.as_str()).expect("an id");
    let decided = installation.decision(&case_id, PATIENCE).await;
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["reason"], &decision["outcome"]["risk_score"]),
        (&json!("settled"), &json!(20.0)),
        "{decision}"
    );
    attack().await;
    installation.holds(PATIENCE).await;
    check_no_acknowledgement_is_stored(&installation).await;
    hers.check_nothing_refused();
    his.check_nothing_refused();
}
