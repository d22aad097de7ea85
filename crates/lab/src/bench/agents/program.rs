//! The Rust agent: it answers at once, with nothing but a NATS client.

use clap::Args;
use concord_wire::Token;
use concord_wire::subject::{Lane, Subject, SubjectSpace};
use concord_wire::{AgentId, CaseId, Recipient};
use futures::StreamExt;
use serde_json::{Value, json};

/// Arguments of one agent.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The address of the broker.
    #[arg(long)]
    server: String,
    /// The first token of all subjects.
    #[arg(long)]
    prefix: String,
    /// The id of the agent.
    #[arg(long)]
    name: String,
    /// The payload of its findings, as JSON.
    #[arg(long, value_parser = |text: &str| serde_json::from_str::<Value>(text))]
    finding: Value,
}

/// Answers every task with a finding and every question with a disagreement, until the broker ends.
pub(crate) async fn run(args: AgentArgs) -> anyhow::Result<()> {
    let agent = Agent {
        subjects: SubjectSpace::new(&Token::new(args.prefix.as_str())?),
        id: AgentId::new(args.name.as_str())?,
        finding: args.finding,
    };
    let client = async_nats::connect(args.server).await?;
    let inbox = agent
        .subjects
        .inbox(Lane::Normal, &Recipient::new(args.name.as_str())?);
    let mut messages = client.subscribe(inbox).await?;
    client.flush().await?;
    anstream::println!("ready");
    while let Some(message) = messages.next().await {
        if let Some((subject, answer)) = agent.answer(&message.payload) {
            client.publish(subject, answer.to_string().into()).await?;
        }
    }
    Ok(())
}

/// An agent that keeps its position.
pub(crate) struct Agent {
    pub(crate) subjects: SubjectSpace,
    pub(crate) id: AgentId,
    /// The payload of its findings.
    pub(crate) finding: Value,
}

impl Agent {
    /// Subject and body of the answer to a task or a question; none to anything else.
    pub(crate) fn answer(&self, payload: &[u8]) -> Option<(String, Value)> {
        let asked: Asked<'_> = serde_json::from_slice(payload).ok()?;
        let (kind, payload) = match asked.message_type {
            "task_assignment" => ("finding", self.finding.clone()),
            "question" => (
                "disagreement",
                json!({"agrees_with_peer": false, "reasoning": "I keep my position."}),
            ),
            _ => return None,
        };
        self.reply(&asked, kind, payload)
    }

    /// Subject and body of an answer of this type.
    pub(crate) fn reply(
        &self,
        asked: &Asked<'_>,
        kind: &'static str,
        payload: Value,
    ) -> Option<(String, Value)> {
        let (case, to, name) = (asked.case_id, asked.from_agent, self.id.as_str());
        let subject = self.subjects.build(&Subject::Message {
            lane: Lane::Normal,
            case: Some(CaseId::new(case).ok()?),
            from: self.id.clone(),
            to: Recipient::new(to).ok()?,
            kind: Token::fixed(kind),
        });
        let answer = json!({
            "message_id": format!("{}-{name}", asked.message_id), "timestamp": asked.timestamp,
            "from_agent": name, "to_agent": to, "message_type": kind, "case_id": case,
            "correlation_id": asked.correlation_id, "reply_to": asked.message_id, "payload": payload,
            "metadata": {"confidence": 0.8}
        });
        Some((subject, answer))
    }
}

/// What of a message of Concord an answer repeats.
#[derive(serde::Deserialize)]
pub(crate) struct Asked<'a> {
    message_id: &'a str,
    timestamp: &'a str,
    from_agent: &'a str,
    message_type: &'a str,
    pub(crate) case_id: &'a str,
    #[serde(default)]
    correlation_id: Option<&'a str>,
}
