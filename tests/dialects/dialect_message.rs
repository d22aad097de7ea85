//! Messages written and read by hand in each dialect, as its document prints them; nothing of the code under test is used.

use serde_json::{Value, json};

/// The dialects beside the canonical one.
pub(crate) const DIALECTS: [&str; 5] = ["panel", "collaboration", "analyst", "session", "exchange"];

/// A message that an agent sends.
#[derive(Clone)]
pub(crate) struct Outgoing<'a> {
    pub(crate) dialect: &'a str,
    pub(crate) case: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) kind: &'a str,
    /// The content, with the field names of the dialect.
    pub(crate) content: Value,
    pub(crate) confidence: Option<f64>,
    pub(crate) reply_to: Option<String>,
}

impl<'a> Outgoing<'a> {
    /// A message without confidence that answers nothing.
    pub(crate) fn new(
        dialect: &'a str,
        case: &'a str,
        (from, to): (&'a str, &'a str),
        kind: &'a str,
        content: Value,
    ) -> Self {
        Self {
            dialect,
            case,
            from,
            to,
            kind,
            content,
            confidence: None,
            reply_to: None,
        }
    }

    /// A request for an action, outside of any case.
    pub(crate) fn request(
        dialect: &'a str,
        route: (&'a str, &'a str),
        action: &str,
        parameters: Value,
    ) -> Self {
        let content = json!({ "action": action, "parameters": parameters });
        Self::new(dialect, "_", route, "request", content)
    }

    /// A finding for the coordinator.
    pub(crate) fn finding(
        dialect: &'a str,
        case: &'a str,
        from: &'a str,
        (summary, score, confidence): (&str, u32, f64),
    ) -> Self {
        let (content, confidence) = finding(dialect, summary, score, confidence);
        Self {
            confidence,
            ..Self::new(dialect, case, (from, "coordinator"), "finding", content)
        }
    }

    /// The subject under the default prefix.
    pub(crate) fn subject(&self) -> String {
        format!(
            "concord.v1.msg.{}.{}.{}.{}",
            self.case, self.from, self.to, self.kind
        )
    }

    /// The body in the dialect.
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

/// A finding with the field names of the dialect, and the confidence where the message itself has a field for it.
fn finding(dialect: &str, summary: &str, score: u32, confidence: f64) -> (Value, Option<f64>) {
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

/// A message that an agent receives.
pub(crate) struct Incoming {
    pub(crate) kind: String,
    pub(crate) case: String,
    /// The id to which an answer refers.
    pub(crate) reply_with: String,
    pub(crate) content: Value,
}

impl Incoming {
    /// Reads a message of the dialect.
    pub(crate) fn new(dialect: &str, message: &async_nats::Message) -> Self {
        let body: Value = serde_json::from_slice(&message.payload).expect("JSON");
        let tokens: Vec<&str> = message.subject.split('.').collect();
        let serialised = |content: &Value| {
            let text = content.as_str();
            let text = text.unwrap_or_else(|| panic!("{dialect}: {body:#}"));
            serde_json::from_str(text).expect("JSON inside")
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
