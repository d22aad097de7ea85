//! A broker with the streams of messages, and everybody that a client talks to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::{HeaderMap, jetstream};
use concord_protocol::Timestamp;
use concord_protocol::header::CONTENT_ENCODING;
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
    /// How the last message of `ann` was compressed.
    pub(crate) encoding: Option<String>,
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
        Self { broker, client, encoding: None, heard: select(said, beats).boxed() }
    }

    /// What `ann` says next.
    pub(crate) async fn next(&mut self, what: &str) -> (String, Value) {
        let message = tokio::time::timeout(PATIENCE, self.heard.next()).await;
        let message = message.unwrap_or_else(|_| panic!("{what}: nothing is said")).expect("the broker is there");
        let (body, encoding) = plain(&message);
        self.encoding = encoding;
        let body = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{what}: {error}"));
        (message.subject.to_string(), body)
    }

    /// Says something to `ann`, with what a message must have, compressed if so.
    pub(crate) async fn say(&self, subject: &str, message: &Value, metadata: Value, encoding: Option<&str>) {
        let mut whole = completed(message);
        whole["metadata"].as_object_mut().expect("an object").extend(metadata.as_object().expect("an object").clone());
        publish(&self.client, subject, &whole, encoding).await;
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
        self.say(&format!("concord.v1.msg._.{from}.ann.{kind}"), &message, json!({}), None).await;
    }
}

/// The body of a message as it was written, and how it was compressed.
pub(crate) fn plain(message: &async_nats::Message) -> (Vec<u8>, Option<String>) {
    let encoding = message.headers.as_ref().and_then(|headers| headers.get(CONTENT_ENCODING));
    let encoding = encoding.map(|value| value.as_str().to_owned());
    let body = concord_encoding::plain(&message.payload, encoding.as_deref()).expect("a body that can be read");
    (body.into_owned(), encoding)
}

/// Publishes a message as an agent with nothing but NATS does.
pub(crate) async fn publish(client: &async_nats::Client, subject: &str, message: &Value, encoding: Option<&str>) {
    let body = message.to_string();
    let sent = match encoding {
        None => client.publish(subject.to_owned(), body.into()).await,
        Some(encoding) => {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, encoding);
            let body = concord_encoding::gzip(body.as_bytes()).expect("it can be compressed");
            client.publish_with_headers(subject.to_owned(), headers, body.into()).await
        }
    };
    sent.expect("the message is sent");
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
