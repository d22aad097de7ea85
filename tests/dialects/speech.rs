//! What agents say, written by hand in each dialect as its document prints it; nothing of the code under test is used.

use serde_json::{Value, json};

/// The dialects beside the canonical one.
pub(crate) const DIALECTS: [&str; 5] = ["panel", "collaboration", "analyst", "session", "exchange"];

/// Something that an agent says.
pub(crate) struct Said<'a> {
    pub(crate) dialect: &'a str,
    pub(crate) case: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) kind: &'a str,
    /// What is said, in the words of the dialect.
    pub(crate) content: Value,
    pub(crate) confidence: Option<f64>,
    pub(crate) reply_to: Option<String>,
}

impl Said<'_> {
    pub(crate) fn subject(&self) -> String {
        format!(
            "concord.v1.msg.{}.{}.{}.{}",
            self.case, self.from, self.to, self.kind
        )
    }

    /// The message as the dialect has it.
    pub(crate) fn body(&self) -> Value {
        let Self {
            dialect,
            case,
            from,
            to,
            kind,
            content,
            confidence,
            reply_to,
        } = self;
        let id = concord_testkit::unique("m");
        let performative = if *kind == "request" {
            "request"
        } else {
            "response"
        };
        match *dialect {
            "panel" => json!({
                "id": id, "round": 0, "sender": from, "recipients": [to], "messageType": kind,
                "content": content.to_string(), "timestamp": 1_770_624_000_123_i64, "replyTo": reply_to,
            }),
            "collaboration" => json!({
                "id": id, "sender_id": from, "receiver_id": to, "message_type": performative.to_uppercase(),
                "content": content, "metadata": { "confidence": confidence }, "reply_to": reply_to,
            }),
            "analyst" => json!({
                "from_agent": from, "to_agent": to, "message_type": kind, "priority": "high", "content": content,
                "timestamp": "2025-11-16T10:30:00Z", "requires_response": false, "reply_to": reply_to,
            }),
            "session" => json!({
                "interaction_type": kind.to_uppercase(), "source_agent_id": from, "target_agent_id": to,
                "conversation_id": (*case != "_").then_some(case), "content": content.to_string(),
                "reply_to_message_id": reply_to, "metadata": { "confidence": confidence },
            }),
            "exchange" => json!({
                "message_id": id, "timestamp": "2026-02-09T08:00:00Z", "from_agent": from, "to_agent": to,
                "message_type": performative, "correlation_id": reply_to, "priority": "normal", "payload": content,
                "metadata": { "confidence": confidence, "version": "1.0" },
            }),
            other => panic!("no dialect {other}"),
        }
    }

    /// Publishes it without any header, as a plain client does.
    pub(crate) async fn publish(&self, client: &async_nats::Client) {
        let sent = client
            .publish(self.subject(), self.body().to_string().into())
            .await;
        sent.expect("the message is sent");
        client.flush().await.expect("the broker takes the message");
    }
}

/// A finding, in the words of the dialect, and the confidence where the message has a place for it.
pub(crate) fn finding(
    dialect: &str,
    summary: &str,
    score: u32,
    confidence: f64,
) -> (Value, Option<f64>) {
    match dialect {
        "panel" => (
            json!({ "summary": summary, "riskScore": score, "confidence": confidence }),
            None,
        ),
        "analyst" => (
            json!({ "finding": summary, "risk_score": score, "confidence": confidence }),
            None,
        ),
        _ => (
            json!({ "summary": summary, "risk_score": score }),
            Some(confidence),
        ),
    }
}

/// What an agent hears, read by hand as the dialect has it.
pub(crate) struct Heard {
    pub(crate) kind: String,
    pub(crate) case: String,
    /// What an answer refers to.
    pub(crate) reply_with: String,
    pub(crate) content: Value,
}

impl Heard {
    pub(crate) fn new(dialect: &str, message: &async_nats::Message) -> Self {
        let body: Value = serde_json::from_slice(&message.payload).expect("JSON");
        let tokens: Vec<&str> = message.subject.split('.').collect();
        let serialised = |content: &Value| {
            serde_json::from_str(
                content
                    .as_str()
                    .unwrap_or_else(|| panic!("{dialect}: {body:#}")),
            )
            .expect("JSON inside")
        };
        let (id, content) = match dialect {
            "panel" => (&body["id"], serialised(&body["content"])),
            "collaboration" => (&body["id"], body["content"].clone()),
            "analyst" => (
                &body["content"]["concord"]["message_id"],
                body["content"].clone(),
            ),
            "session" => (&body["message_id"], serialised(&body["content"])),
            _ => (&body["message_id"], body["payload"].clone()),
        };
        let reply_with = id
            .as_str()
            .unwrap_or_else(|| panic!("{dialect}: no id in {body:#}"))
            .to_owned();
        Self {
            kind: tokens[6].to_owned(),
            case: tokens[3].to_owned(),
            reply_with,
            content,
        }
    }
}
