//! A broker with the streams of messages, and everybody that a client talks to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::jetstream;
use concord_protocol::Timestamp;
use concord_protocol::stream::{Layout, StreamKind};
use concord_testkit::{TestBroker, unique};
use futures::StreamExt;
use futures::stream::{BoxStream, select};
use serde_json::{Value, json};

/// Longer than anything here takes, even on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A broker, and all that the agent `ann` says.
pub(crate) struct Stage {
    pub(crate) broker: TestBroker,
    pub(crate) client: async_nats::Client,
    heard: BoxStream<'static, async_nats::Message>,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let broker = TestBroker::start().await;
        let client = broker.client().await;
        let context = jetstream::new(client.clone());
        for kind in [StreamKind::Messages, StreamKind::Urgent] {
            let definition = Layout::default().stream(kind);
            let (name, subjects) = (definition.name, definition.subjects);
            let config = jetstream::stream::Config { name, subjects, ..jetstream::stream::Config::default() };
            context.create_stream(config).await.expect("the stream is made");
        }
        let said = client.subscribe("concord.v1.*.*.ann.>").await.expect("a subscription");
        let beats = client.subscribe("concord.v1.beat.ann").await.expect("a subscription");
        client.flush().await.expect("the broker has the subscriptions");
        Self { broker, client, heard: select(said, beats).boxed() }
    }

    /// What `ann` says next.
    pub(crate) async fn next(&mut self, what: &str) -> (String, Value) {
        let message = tokio::time::timeout(PATIENCE, self.heard.next()).await;
        let message = message.unwrap_or_else(|_| panic!("{what}: nothing is said")).expect("the broker is there");
        let body = serde_json::from_slice(&message.payload).unwrap_or_else(|error| panic!("{what}: {error}"));
        (message.subject.to_string(), body)
    }

    /// Says something to `ann`, with what a message must have.
    pub(crate) async fn say(&self, subject: &str, message: &Value, metadata: Value) {
        let mut whole = completed(message);
        whole["metadata"].as_object_mut().expect("an object").extend(metadata.as_object().expect("an object").clone());
        let sent = self.client.publish(subject.to_owned(), whole.to_string().into()).await;
        sent.expect("the message is sent");
        self.client.flush().await.expect("the broker takes the message");
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: &Value, answer: &Value) {
        let (from, kind) =
            (request["to_agent"].as_str().expect("a name"), answer["message_type"].as_str().expect("a type"));
        let message = json!({
            "from_agent": from, "to_agent": "ann", "message_type": kind, "payload": answer["payload"],
            "correlation_id": request["message_id"], "reply_to": request["message_id"],
        });
        self.say(&format!("concord.v1.msg._.{from}.ann.{kind}"), &message, json!({})).await;
    }
}

/// A message with id, time and version.
pub(crate) fn completed(message: &Value) -> Value {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let mut whole = json!({
        "message_id": unique("m"), "metadata": {},
        "timestamp": Timestamp::from_unix_millis(i64::try_from(millis).unwrap_or(0)),
    });
    whole.as_object_mut().expect("an object").extend(message.as_object().expect("an object").clone());
    whole["metadata"]["version"] = "1.0".into();
    whole
}
