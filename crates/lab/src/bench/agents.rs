//! Agents that answer at once, with nothing but a NATS client, inside the measuring process.

use async_nats::Client;
use concord_wire::AgentId;
use futures::StreamExt;
use serde_json::{Value, json};

use super::subjects;

/// An agent of a measured case. Five of them have two conflicts among all of them.
pub(super) struct Agent {
    name: String,
    finding: Value,
}

/// The agents of the measurement.
pub(super) fn five() -> Vec<Agent> {
    let held = [
        (20, "sign"),
        (35, "sign"),
        (50, "negotiate"),
        (65, "negotiate"),
        (80, "reject"),
    ];
    held.iter()
        .enumerate()
        .map(|(number, (score, recommendation))| Agent {
            name: format!("bench-{number}"),
            finding: json!({
                "summary": "Measured.", "risk_score": score, "recommendation": recommendation,
                "evidence": ["The Supplier may terminate at any time."]
            }),
        })
        .collect()
}

impl Agent {
    /// The id of the agent.
    pub(super) fn id(&self) -> anyhow::Result<AgentId> {
        Ok(AgentId::new(self.name.as_str())?)
    }

    /// Answers every task with a finding and every question with a disagreement, until the client is dropped.
    pub(super) async fn run(self, client: Client) -> anyhow::Result<()> {
        let inbox = subjects::inbox(&self.name)?;
        let mut messages = client.subscribe(inbox).await?;
        client.flush().await?;
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                if let Some((subject, answer)) = self.answer(&message.payload) {
                    // A lost answer shows as a case that is not decided.
                    let _ = client.publish(subject, answer.to_string().into()).await;
                }
            }
        });
        Ok(())
    }

    fn answer(&self, payload: &[u8]) -> Option<(String, Value)> {
        let asked: Asked<'_> = serde_json::from_slice(payload).ok()?;
        let (kind, payload) = match asked.message_type {
            "task_assignment" => ("finding", self.finding.clone()),
            "question" => (
                "disagreement",
                json!({"agrees_with_peer": false, "reasoning": "I keep my position."}),
            ),
            _ => return None,
        };
        let (case, to) = (asked.case_id, asked.from_agent);
        let subject = subjects::message(case, &self.name, to, kind).ok()?;
        let answer = json!({
            "message_id": format!("{}-{}", asked.message_id, self.name), "timestamp": asked.timestamp,
            "from_agent": self.name, "to_agent": to, "message_type": kind, "case_id": case,
            "correlation_id": asked.correlation_id, "reply_to": asked.message_id, "payload": payload,
            "metadata": {"confidence": 0.8}
        });
        Some((subject, answer))
    }
}

#[derive(serde::Deserialize)]
struct Asked<'a> {
    message_id: &'a str,
    timestamp: &'a str,
    from_agent: &'a str,
    message_type: &'a str,
    case_id: &'a str,
    #[serde(default)]
    correlation_id: Option<&'a str>,
}
