//! Agents that miss no message: each reads its messages by a durable consumer, and acknowledges a message when its answer is
//! stored. They live in the test's process and outlive the broker.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer::pull};
use concord_testkit::{Message, ReceivedMessage, wait_for};
use futures::TryStreamExt;
use tokio::task::JoinSet;

/// An agent that has failed begins again at most so often.
const TRIES: Duration = Duration::from_millis(200);

/// A broker may stand still for longer than the client waits for its acknowledgement.
const PATIENCE: Duration = Duration::from_secs(60);

/// The answers of an agent to a message; the same whenever, and however often, it receives the message.
pub(crate) type Answers = fn(&ReceivedMessage) -> Vec<Message>;

/// Agents that answer until they are dropped.
pub(crate) struct Agents {
    _tasks: JoinSet<()>,
}

impl Agents {
    /// Starts an agent for each name.
    pub(crate) fn start(
        client: &async_nats::Client,
        names: &'static [&'static str],
        answers: Answers,
    ) -> Self {
        let mut tasks = JoinSet::new();
        for name in names {
            let jetstream = jetstream::new(client.clone());
            tasks.spawn(async move {
                // After any failure, messages that were not acknowledged are delivered again. A request waits for the
                // broker, but one that has no leader refuses at once.
                let mut tries = tokio::time::interval(TRIES);
                tries.tick().await;
                while let Err(error) = listen(&jetstream, name, answers).await {
                    println!("{name} begins again: {error}");
                    tries.tick().await;
                }
            });
        }
        Self { _tasks: tasks }
    }
}

async fn listen(
    jetstream: &jetstream::Context,
    name: &str,
    answers: Answers,
) -> Result<(), async_nats::Error> {
    let config = pull::Config {
        durable_name: Some(format!("test-agent-{name}")),
        filter_subject: format!("concord.v1.msg.*.*.{name}.*"),
        ack_wait: Duration::from_secs(3),
        ..pull::Config::default()
    };
    let consumer = jetstream
        .create_consumer_on_stream(config, "CONCORD_MESSAGES")
        .await?;
    let messages = consumer
        .stream()
        .heartbeat(Duration::from_secs(2))
        .messages()
        .await?;
    // Many at a time: an agent that waits for each answer to be stored would hold up everyone.
    messages
        .map_err(async_nats::Error::from)
        .try_for_each_concurrent(32, |message| answer(jetstream, name, answers, message))
        .await?;
    Err("the subscription ended".into())
}

async fn answer(
    jetstream: &jetstream::Context,
    name: &str,
    answers: Answers,
    message: jetstream::Message,
) -> Result<(), async_nats::Error> {
    let body = serde_json::from_slice(&message.payload)?;
    let heard = ReceivedMessage {
        agent: name.to_owned(),
        subject: message.subject.to_string(),
        body,
    };
    for answer in answers(&heard) {
        publish(jetstream, &answer).await?;
    }
    message.ack().await
}

/// Stores a message once, however often it is published.
pub(crate) async fn publish(
    jetstream: &jetstream::Context,
    message: &Message,
) -> Result<(), async_nats::Error> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", message.id());
    jetstream
        .publish_with_headers(message.subject(), headers, message.bytes().into())
        .await?
        .await?;
    Ok(())
}

/// Stores a message once, and tries again where the broker has not said in time that it has it.
pub(crate) async fn store(jetstream: &jetstream::Context, message: &Message) {
    wait_for(message.id(), PATIENCE, async || {
        let stored = publish(jetstream, message).await;
        stored.map_err(|error| error.to_string())
    })
    .await;
}
