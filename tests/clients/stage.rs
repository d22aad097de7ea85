//! A broker with the streams of messages; the test plays everyone that the agent under test exchanges messages with.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::object_store::ObjectStore;
use async_nats::{HeaderMap, jetstream};
use concord_encoding::PayloadReference;
use concord_events::topology::{Layout, StreamKind};
use concord_testkit::{TestBroker, round_trip, unique};
use concord_wire::header::CONTENT_ENCODING;
use concord_wire::{MessageType, Timestamp};
use futures::StreamExt;
use futures::stream::{BoxStream, select};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::clients::conformance::WireMessage;

/// Longer than anything here takes, even on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A broker, and a subscription to all messages of the agent `ann`.
pub(crate) struct Stage {
    pub(crate) broker: TestBroker,
    pub(crate) client: async_nats::Client,
    /// The encoding of the last message of `ann`.
    pub(crate) encoding: Option<String>,
    /// The object store of large payloads.
    pub(crate) store: ObjectStore,
    messages: BoxStream<'static, async_nats::Message>,
}

/// The bucket of large payloads.
pub(crate) const BUCKET: &str = "CONCORD_PAYLOADS";

/// Returns when the broker has read the subscriptions of an agent of the Rust library that has just connected: once it has stored what the
/// agent published after them.
pub(crate) async fn is_heard(agent: &concord_agent::Agent) {
    let greeting = json!({ "greeting": "connected" });
    let to_itself = agent.id().clone().into();
    let message = agent.message(to_itself, MessageType::InfoUpdate, &greeting);
    let published = agent.publish(&message.expect("a message")).await;
    published.expect("it is stored");
}

impl Stage {
    /// Starts a broker, and makes the streams of messages and the object store.
    pub(crate) async fn start() -> Self {
        let broker = TestBroker::start().await;
        let client = broker.client().await;
        let context = jetstream::new(client.clone());
        for kind in [StreamKind::Messages, StreamKind::Urgent] {
            let definition = Layout::default().stream(kind);
            let (name, subjects) = (definition.name, definition.subjects);
            let config = jetstream::stream::Config {
                name,
                subjects,
                ..jetstream::stream::Config::default()
            };
            context
                .create_stream(config)
                .await
                .expect("the stream is made");
        }
        let config = jetstream::object_store::Config {
            bucket: BUCKET.into(),
            ..Default::default()
        };
        let store = context
            .create_object_store(config)
            .await
            .expect("the bucket is made");
        let messages = client
            .subscribe("concord.v1.*.*.ann.>")
            .await
            .expect("a subscription");
        let beats = client
            .subscribe("concord.v1.beat.ann")
            .await
            .expect("a subscription");
        round_trip(&client).await;
        Self {
            broker,
            client,
            encoding: None,
            store,
            messages: select(messages, beats).boxed(),
        }
    }

    /// The next message of `ann`: its subject and its body.
    pub(crate) async fn next(&mut self, what: &str) -> (String, Value) {
        let message = tokio::time::timeout(PATIENCE, self.messages.next()).await;
        let message = message
            .unwrap_or_else(|_| panic!("{what}: nothing is sent"))
            .expect("the broker is there");
        let (body, encoding) = plain(&message);
        self.encoding = encoding;
        let body = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{what}: {error}"));
        (message.subject.to_string(), body)
    }

    /// Sends a message to `ann`, completed by the fields that a message must have.
    pub(crate) async fn send(&self, message: &WireMessage, metadata: Value) {
        let mut whole = completed(&message.message);
        whole["metadata"]
            .as_object_mut()
            .expect("an object")
            .extend(metadata.as_object().expect("an object").clone());
        publish(&self.client, &message.subject, whole, message).await;
        self.client
            .flush()
            .await
            .expect("the broker takes the message");
    }

    /// The message with the payload to which it refers; none when it refers to none.
    pub(crate) async fn whole(&self, message: &Value) -> Option<Value> {
        let payload = serde_json::value::to_raw_value(&message["payload"]).expect("a payload");
        let reference = PayloadReference::of(&payload).expect("a reference that can be read")?;
        let mut object = self
            .store
            .get(&reference.object)
            .await
            .expect("the object is there");
        let mut bytes = Vec::new();
        object
            .read_to_end(&mut bytes)
            .await
            .expect("the object can be read");
        let payload = reference
            .verified(bytes)
            .expect("the object is what the reference says");
        let mut whole = message.clone();
        whole["payload"] = serde_json::from_str(payload.get()).expect("JSON");
        Some(whole)
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: &Value, answer: &Value) {
        let from = request["to_agent"].as_str().expect("a name");
        let kind = answer["message_type"].as_str().expect("a type");
        let message = json!({
            "from_agent": from, "to_agent": "ann", "message_type": kind, "payload": answer["payload"],
            "correlation_id": request["message_id"], "reply_to": request["message_id"],
        });
        let subject = format!("concord.v1.msg._.{from}.ann.{kind}");
        self.send(
            &WireMessage {
                subject,
                message,
                ..WireMessage::default()
            },
            json!({}),
        )
        .await;
    }
}

/// The body of a message before it was compressed, and its encoding.
pub(crate) fn plain(message: &async_nats::Message) -> (Vec<u8>, Option<String>) {
    let encoding = message
        .headers
        .as_ref()
        .and_then(|headers| headers.get(CONTENT_ENCODING));
    let encoding = encoding.map(|value| value.as_str().to_owned());
    let body = concord_encoding::plain(&message.payload, encoding.as_deref())
        .expect("a body that can be read");
    (body.into_owned(), encoding)
}

/// Publishes a message as an agent with nothing but a NATS client does, compressed or stored as `form` says.
pub(crate) async fn publish(
    client: &async_nats::Client,
    subject: &str,
    mut message: Value,
    form: &WireMessage,
) {
    if form.stored {
        let payload = message["payload"].to_string();
        let id = message["message_id"].as_str().expect("an id");
        let reference = PayloadReference::new(BUCKET, id, payload.as_bytes());
        let store = jetstream::new(client.clone())
            .get_object_store(BUCKET)
            .await
            .expect("the bucket is there");
        store
            .put(reference.object.as_str(), &mut payload.as_bytes())
            .await
            .expect("the payload is put");
        message["payload"] =
            serde_json::to_value(reference.payload().expect("a payload")).expect("JSON");
    }
    let body = message.to_string();
    let sent = match &form.encoding {
        None => client.publish(subject.to_owned(), body.into()).await,
        Some(encoding) => {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, encoding.as_str());
            let body = concord_encoding::gzip(body.as_bytes()).expect("it can be compressed");
            client
                .publish_with_headers(subject.to_owned(), headers, body.into())
                .await
        }
    };
    sent.expect("the message is sent");
}

/// A message with id, time and version.
pub(crate) fn completed(message: &Value) -> Value {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let mut whole = json!({
        "message_id": unique("m"), "metadata": {},
        "timestamp": Timestamp::from_unix_millis(i64::try_from(millis).unwrap_or(0)),
    });
    whole
        .as_object_mut()
        .expect("an object")
        .extend(message.as_object().expect("an object").clone());
    whole["metadata"]["version"] = "1.0".into();
    whole
}
