//! An agent whose user has nothing but the permissions that `concord permissions` prints has a durable inbox, which operators have made when
//! they registered it, or the coordinator when it has registered itself: it takes and acknowledges what is its own, and nobody else's.

use std::io::Write as _;

use async_nats::jetstream::consumer::push;
use async_nats::{ConnectOptions, jetstream};
use concord_agent::Agent;
use concord_testkit::{Message, TestInstallation, concord, wait_for};
use concord_wire::payload::Card;
use concord_wire::subject::{Lane, SubjectSpace};
use concord_wire::{AgentId, MessageType};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents, start, users};

/// Registers an agent with an inbox.
fn register(installation: &TestInstallation, agent: &AgentId) {
    let mut card = tempfile::NamedTempFile::new().expect("a file");
    write!(card, "{}", json!({ "agent_id": agent })).expect("it is written");
    let file = card.path().to_str().expect("a path");
    let server = installation.server_url();
    let output = concord(&["agents", "register", file, "--inbox", "--server", server]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

/// Waits until an agent has taken and acknowledged everything.
pub(crate) async fn wait_until_empty(installation: &TestInstallation, agent: &AgentId) {
    let inbox = SubjectSpace::default().registered_inbox(Lane::Normal, agent);
    let broker = jetstream::new(installation.client().clone());
    wait_for("the inbox to be empty", PATIENCE, async || {
        let consumer = broker.get_consumer_from_stream::<push::Config, _, _>(
            inbox.consumer.clone(),
            inbox.stream.clone(),
        );
        let mut consumer = consumer.await.map_err(|error| error.to_string())?;
        let info = consumer.info().await.map_err(|error| error.to_string())?;
        match (info.num_pending, info.num_ack_pending) {
            (0, 0) => Ok(()),
            waiting => Err(format!("{waiting:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_what_was_kept_for_it_and_nobody_elses() {
    let [eva, mallory, zoe] = agents(["eva", "mallory", "zoe"]);
    let installation = start(users(&[&eva, &mallory, &zoe])).await;
    register(&installation, &eva);
    register(&installation, &mallory);
    let mut his = User::connect(&installation, &mallory).await;
    let note = |to: &AgentId, number: u32| {
        let payload = json!({ "summary": format!("note {number}") });
        Message::new("_", mallory.as_str(), to.as_str(), "info_update", payload)
    };
    // She is away.
    for number in 0..3 {
        note(&eva, number).store(&his.client).await;
    }

    let (agent, mut heard) = connect(&installation, &eva, None).await;
    note(&eva, 3).store(&his.client).await;
    let mut summaries = Vec::new();
    for _ in 0..4 {
        let summary = timeout(PATIENCE, heard.recv()).await.expect("it is heard");
        summaries.push(summary.expect("a summary"));
    }
    summaries.sort_by_key(ToString::to_string);
    assert_eq!(
        json!(summaries),
        json!(["note 0", "note 1", "note 2", "note 3"])
    );
    wait_until_empty(&installation, &eva).await;
    agent.close().await.expect("it ends");

    let hers = SubjectSpace::default().registered_inbox(Lane::Normal, &eva);
    let acknowledgement = format!("$JS.ACK.{}.{}.1.4.4.1.0", hers.stream, hers.consumer);
    his.may_not_publish(acknowledgement, b"+ACK", "an acknowledgement in her name")
        .await;
    let next = format!(
        "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
        hers.stream, hers.consumer
    );
    his.may_not_publish(next, b"", "what waits for her").await;
    his.may_not_subscribe(hers.deliver_to).await;
    let (his_own, to_her) = (note(&mallory, 4), note(&eva, 5));
    delete_what_there_is(&installation, &mut his, (&mallory, his_own), &to_her).await;

    // Zoe registers herself, and goes.
    let card = Card::new(zoe.clone());
    let (agent, _) = connect(&installation, &zoe, Some(card.clone())).await;
    agent.close().await.expect("it ends");
    note(&zoe, 5).store(&his.client).await;
    let (agent, mut heard) = connect(&installation, &zoe, Some(card)).await;
    let summary = timeout(PATIENCE, heard.recv()).await.expect("it is heard");
    assert_eq!(summary, Some(json!("note 5")));
    wait_until_empty(&installation, &zoe).await;
    agent.close().await.expect("it ends");
    // Nobody has one made for another.
    let subject = format!("concord.v1.api.coordinator.inbox.{mallory}");
    let asked = his.client.request(subject, "{\"of\":\"zoe\"}".into()).await;
    let asked = asked.expect("an answer").headers.unwrap_or_default();
    assert!(asked.get("Nats-Service-Error").is_some(), "{asked:?}");
}

/// Connects an agent that takes its inbox; and what it hears.
async fn connect(
    installation: &TestInstallation,
    agent: &AgentId,
    card: Option<Card>,
) -> (Agent, UnboundedReceiver<Value>) {
    let (sender, heard) = unbounded_channel();
    let options = ConnectOptions::with_user_and_password(agent.to_string(), "x".into());
    let builder = Agent::builder(agent.as_str())
        .options(options)
        .registered_inbox()
        .on(MessageType::InfoUpdate, move |_, message| {
            let payload: Value = serde_json::from_str(message.payload.get()).expect("JSON");
            let _ = sender.send(payload["summary"].clone());
            async { Ok(()) }
        });
    let builder = match card {
        Some(card) => builder.card(card),
        None => builder,
    };
    let connected = builder.connect(installation.server_url()).await;
    (connected.expect("it may connect"), heard)
}

/// Asks the coordinator to acknowledge a delivery under an agent's name: the error, empty where it is done.
async fn acknowledge(his: &User, agent: &AgentId, asked: &Value) -> String {
    let subject = format!("concord.v1.api.coordinator.acknowledge.{agent}");
    let answer = his.client.request(subject, asked.to_string().into()).await;
    let headers = answer.expect("an answer").headers.unwrap_or_default();
    let error = headers.get("Nats-Service-Error");
    error.map_or_else(String::new, ToString::to_string)
}

/// How many messages a stream has; none where there is no such stream.
async fn length(installation: &TestInstallation, stream: &str) -> Option<u64> {
    let found = jetstream::new(installation.client().clone())
        .get_stream(stream)
        .await;
    found.ok().map(|stream| stream.cached_info().state.messages)
}

/// Mallory has what he says answered where JetStream is asked to delete things.
async fn delete_what_there_is(
    installation: &TestInstallation,
    his: &mut User,
    (mallory, note): (&AgentId, Message),
    to_another: &Message,
) {
    let inbox = SubjectSpace::default().registered_inbox(Lane::Normal, mallory);
    let heard = his.client.queue_subscribe(inbox.deliver_to, inbox.group);
    let mut heard = heard.await.expect("a subscription");
    note.store(&his.client).await;
    let delivery = timeout(PATIENCE, heard.next()).await.expect("it is heard");
    let receipt = delivery.and_then(|message| message.reply).expect("a reply");
    let before = length(installation, "CONCORD_EVENTS").await;
    // What the broker answers to an acknowledgement is empty, and with that it deletes a stream.
    let his_own = receipt.to_string();
    his.may_not_publish(his_own, b"+ACK", "an acknowledgement")
        .await;
    for (verb, subject) in [
        ("STREAM.DELETE.CONCORD_EVENTS", to_another.subject()),
        ("STREAM.PURGE.CONCORD_EVENTS", to_another.subject()),
        ("STREAM.MSG.DELETE.CONCORD_EVENTS", to_another.subject()),
    ] {
        let verb = format!("$JS.API.{verb}");
        let said = his
            .client
            .publish_with_reply(subject, verb, to_another.bytes().into());
        said.await.expect("sent");
    }
    for (asked, error) in [
        (json!({ "delivery": receipt }), ""),
        (
            json!({ "delivery": receipt.replace("mallory", "eva") }),
            "no delivery",
        ),
        (json!({ "delivery": format!("{receipt} x") }), "no delivery"),
        (
            json!({ "delivery": "$JS.API.STREAM.DELETE.CONCORD_EVENTS" }),
            "no delivery",
        ),
        (json!({ "delivery": receipt, "told": "+NXT" }), "+NXT"),
    ] {
        let told = acknowledge(his, mallory, &asked).await;
        assert!(
            told.contains(error) && told.is_empty() == error.is_empty(),
            "{asked}: {told}"
        );
    }
    wait_until_empty(installation, mallory).await;
    let after = length(installation, "CONCORD_EVENTS").await;
    assert!(before.is_some() && after >= before, "{before:?} {after:?}");
}
