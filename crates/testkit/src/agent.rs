//! An agent with nothing but a NATS client.

use futures::StreamExt;
use futures::stream::select_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{Message, round_trip};

/// A message that an agent has received.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// The agent that has received it.
    pub agent: String,
    /// The subject it came on.
    pub subject: String,
    /// The message as JSON.
    pub body: Value,
}

impl ReceivedMessage {
    /// The `message_type` of the message.
    pub fn kind(&self) -> &str {
        self.body["message_type"].as_str().unwrap_or_default()
    }

    /// The payload of the message.
    pub fn payload(&self) -> &Value {
        &self.body["payload"]
    }

    /// The `case_id` of the message.
    pub fn case(&self) -> &str {
        self.body["case_id"].as_str().unwrap_or("_")
    }

    /// The answer to a task assignment.
    pub fn finding(&self, finding: Value, confidence: f64) -> Message {
        Message::finding(self.case(), &self.agent, finding, confidence)
            .with("/reply_to", self.body["message_id"].clone())
    }

    /// The answer to a question: `kind` is `agreement`, `disagreement` or `revision`.
    pub fn answer(&self, kind: &str, answer: Value) -> Message {
        let question = self.body["message_id"].as_str().unwrap_or_default();
        Message::answer(self.case(), &self.agent, kind, question, answer)
    }
}

/// An agent that answers by a closure until it is dropped.
pub struct Agent {
    task: JoinHandle<()>,
}

impl Agent {
    /// Begins to listen as `name`; what `answers` gives for what is heard is published. It listens when this returns: the broker has read its
    /// subscriptions.
    ///
    /// # Panics
    /// When there is no connection, or when the client may not publish to an inbox of its own; see [`Self::start_as_user`].
    pub async fn start<F>(client: &async_nats::Client, name: &str, answers: F) -> Self
    where
        F: FnMut(&ReceivedMessage) -> Vec<Message> + Send + 'static,
    {
        let agent = Self::start_as_user(client, name, answers).await;
        round_trip(client).await;
        agent
    }

    /// The same with a client that may do no more than an agent. When this returns, its subscriptions are written to the socket: the broker has
    /// read them by the time at which it reads what the same client sends after that.
    ///
    /// # Panics
    /// When there is no connection.
    pub async fn start_as_user<F>(client: &async_nats::Client, name: &str, mut answers: F) -> Self
    where
        F: FnMut(&ReceivedMessage) -> Vec<Message> + Send + 'static,
    {
        let mut inboxes = Vec::new();
        for lane in ["msg", "urgent"] {
            for to in [name, "_all"] {
                let subject = format!("concord.v1.{lane}.*.*.{to}.*");
                inboxes.push(
                    client
                        .subscribe(subject)
                        .await
                        .expect("the agent subscribes"),
                );
            }
        }
        client.flush().await.expect("the subscriptions are written");
        let (client, name) = (client.clone(), name.to_owned());
        let mut inbox = select_all(inboxes);
        let task = tokio::spawn(async move {
            while let Some(message) = inbox.next().await {
                let Ok(body) = serde_json::from_slice(&message.payload) else {
                    continue;
                };
                let heard = ReceivedMessage {
                    agent: name.clone(),
                    subject: message.subject.to_string(),
                    body,
                };
                for answer in answers(&heard) {
                    answer.send(&client).await;
                }
            }
        });
        Self { task }
    }

    /// An agent that answers every task with `finding`, and every question by keeping its position.
    ///
    /// # Panics
    /// When there is no connection.
    pub async fn steadfast(
        client: &async_nats::Client,
        name: &str,
        finding: Value,
        confidence: f64,
    ) -> Self {
        Self::start(client, name, keeps_position(finding, confidence)).await
    }

    /// An agent that answers every task with `finding`, and agrees with the first of the others when it is asked.
    ///
    /// # Panics
    /// When there is no connection.
    pub async fn agreeable(
        client: &async_nats::Client,
        name: &str,
        finding: Value,
        confidence: f64,
    ) -> Self {
        Self::start(client, name, agrees(finding, confidence)).await
    }
}

/// What an agent answers that has `finding`, and keeps its position.
pub fn keeps_position(
    finding: Value,
    confidence: f64,
) -> impl FnMut(&ReceivedMessage) -> Vec<Message> + Send + 'static {
    move |heard| match heard.kind() {
        "task_assignment" => vec![heard.finding(finding.clone(), confidence)],
        "question" => {
            vec![heard.answer(
                "disagreement",
                json!({ "reasoning": "I keep my position." }),
            )]
        }
        _ => Vec::new(),
    }
}

/// What an agent answers that has `finding`, and agrees with the first of the others.
pub fn agrees(
    finding: Value,
    confidence: f64,
) -> impl FnMut(&ReceivedMessage) -> Vec<Message> + Send + 'static {
    move |heard| match heard.kind() {
        "task_assignment" => vec![heard.finding(finding.clone(), confidence)],
        "question" => {
            let peer = heard.payload()["other_positions"][0]["agent_id"].clone();
            let answer = json!({ "agrees_with": peer, "reasoning": "They are right." });
            vec![heard.answer("agreement", answer)]
        }
        _ => Vec::new(),
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}
