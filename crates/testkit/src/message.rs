//! Messages as any client would write them: JSON on a subject, good or bad.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::round_trip;

/// An id that no other call has given, in this process or another.
pub fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    format!(
        "{prefix}-{}-{nanos:x}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A message that is being written. Nothing is checked, so that a test can send what is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The case token of the subject.
    pub case: String,
    /// The sender token of the subject.
    pub from: String,
    /// The recipient token of the subject.
    pub to: String,
    /// The type token of the subject.
    pub kind: String,
    /// The body.
    pub body: Value,
}

impl Message {
    /// A message of any type; body and subject agree.
    pub fn new(case: &str, from: &str, to: &str, kind: &str, payload: Value) -> Self {
        let millis = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        let mut body = json!({
            "message_id": unique(from),
            "timestamp": Timestamp::from_unix_millis(i64::try_from(millis).unwrap_or(0)),
            "from_agent": from,
            "to_agent": to,
            "message_type": kind,
            "payload": payload,
            "metadata": { "version": "1.0" },
        });
        if case != "_" {
            body["case_id"] = case.into();
        }
        Self {
            case: case.into(),
            from: from.into(),
            to: to.into(),
            kind: kind.into(),
            body,
        }
    }

    /// A finding of `from` for the coordinator.
    pub fn finding(case: &str, from: &str, finding: Value, confidence: f64) -> Self {
        Self::new(case, from, "coordinator", "finding", finding)
            .with("/metadata/confidence", confidence)
    }

    /// An answer of `from` in a debate: `kind` is `agreement`, `disagreement` or `revision`.
    pub fn answer(case: &str, from: &str, kind: &str, question: &str, answer: Value) -> Self {
        Self::new(case, from, "debate-facilitator", kind, answer).with("/reply_to", question)
    }

    /// With the value at a JSON pointer put in; only the last step may be missing.
    ///
    /// # Panics
    /// When there is no object to put it into.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        let (above, field) = pointer
            .rsplit_once('/')
            .expect("a pointer begins with a slash");
        self.body
            .pointer_mut(above)
            .expect("an object to put it into")[field] = value.into();
        self
    }

    /// The `message_id` of the message.
    pub fn id(&self) -> &str {
        self.body["message_id"].as_str().unwrap_or_default()
    }

    /// The subject under the default prefix, on the lane of the body's priority.
    pub fn subject(&self) -> String {
        let urgent = self.body["priority"]
            .as_str()
            .is_some_and(|priority| priority.ends_with("critical"));
        let lane = if urgent { "urgent" } else { "msg" };
        format!(
            "concord.v1.{lane}.{}.{}.{}.{}",
            self.case, self.from, self.to, self.kind
        )
    }

    /// The body as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.body.to_string().into_bytes()
    }

    /// Publishes it as a plain client does, and waits until the broker has read it: what anybody sends after that comes after it. It may not
    /// be stored yet; see [`Self::store`].
    ///
    /// # Panics
    /// When there is no connection, or when the client may not publish to an inbox of its own; see [`Self::send`].
    pub async fn publish(&self, client: &async_nats::Client) {
        self.send(client).await;
        round_trip(client).await;
    }

    /// Publishes it and waits until it is written to the socket: for clients that may publish little else, and while brokers are killed.
    ///
    /// # Panics
    /// When there is no connection.
    pub async fn send(&self, client: &async_nats::Client) {
        client
            .publish(self.subject(), self.bytes().into())
            .await
            .expect("the message is sent");
        client.flush().await.expect("the message is written");
    }

    /// Publishes it and waits until the stream has stored it: its position there.
    ///
    /// # Panics
    /// When the broker does not store it.
    pub async fn store(&self, client: &async_nats::Client) -> u64 {
        let published = crate::patient(client)
            .publish(self.subject(), self.bytes().into())
            .await;
        let stored = published.expect("the message is sent").await;
        stored.expect("the message is stored").sequence
    }
}

/// Checks that nobody can tell from these subjects, on which one process was answered, the next one: their last tokens have less than
/// half in common.
///
/// # Panics
/// When they are alike, or too few.
pub fn check_unlike(replies: &[String]) {
    assert!(replies.len() > 1, "{replies:?}");
    let token = |reply: &String| reply.rsplit('.').next().unwrap_or_default().to_owned();
    let tokens: Vec<String> = replies.iter().map(token).collect();
    for (one, other) in tokens.iter().zip(tokens.iter().skip(1)) {
        let same = one.bytes().zip(other.bytes()).filter(|(a, b)| a == b);
        assert!(same.count() < one.len() / 2, "{one} {other}");
    }
}
