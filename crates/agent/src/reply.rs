//! Answers to messages.

use concord_wire::payload::notification::is_progress;
use concord_wire::payload::{
    Answer, ErrorReport, Finding, Response, ResponseStatus, ResultStatus, TaskResult,
};
use concord_wire::{Fault, MessageType};
use serde::Serialize;

use crate::agent::now;
use crate::{Agent, Error, Message};

impl Agent {
    /// Answers a message: to its sender, in its case and conversation, with `reply_to`. An answer that is sent twice has the same
    /// `message_id` both times, so that it is one: this agent has it stored once, and services take what was stored twice as one. The same
    /// holds, for each message type, for what may be sent beside an answer (an `acknowledgement`, `evidence`); use [`Self::message`] to send
    /// more than one. A `task_result` with the status `partial`, and a `notification` of `progress`, has an id of its own: others come
    /// after it.
    pub async fn reply(
        &self,
        asked: &Message,
        kind: MessageType,
        payload: &impl Serialize,
    ) -> Result<(), Error> {
        self.publish(&self.answer(asked, kind, payload)?).await
    }

    /// The message of [`Self::reply`], not published yet. Change it as needed and give it to [`Self::publish`].
    pub fn answer(
        &self,
        asked: &Message,
        kind: MessageType,
        payload: &impl Serialize,
    ) -> Result<Message, Error> {
        let payload = serde_json::value::to_raw_value(payload)?;
        let mut answer = asked.reply(self.id(), now(), kind, payload);
        if is_part(&answer) || is_progress(&answer) {
            answer.message_id = self.new_id()?;
        }
        // What is said in a debate refers to the snapshot that the debate refers to.
        answer.metadata.memory_snapshot = asked.metadata.memory_snapshot;
        Ok(answer)
    }

    /// Answers a `task_assignment` with a finding. `confidence` is between 0 and 1.
    pub async fn finding(
        &self,
        task: &Message,
        finding: &Finding,
        confidence: f64,
    ) -> Result<(), Error> {
        let mut answer = self.answer(task, MessageType::Finding, finding)?;
        answer.metadata.confidence = Some(confidence);
        self.publish(&answer).await
    }

    /// Answers a question of a debate: the agent now holds a peer's position.
    pub async fn agree(&self, question: &Message, answer: Answer) -> Result<(), Error> {
        let answer = Answer {
            agrees_with_peer: Some(true),
            ..answer
        };
        self.reply(question, MessageType::Agreement, &answer).await
    }

    /// Answers a question of a debate: the agent keeps its position.
    pub async fn disagree(&self, question: &Message, answer: Answer) -> Result<(), Error> {
        let answer = Answer {
            agrees_with_peer: Some(false),
            ..answer
        };
        self.reply(question, MessageType::Disagreement, &answer)
            .await
    }

    /// Answers a question of a debate: the agent has changed its position.
    pub async fn revise(&self, question: &Message, answer: Answer) -> Result<(), Error> {
        self.reply(question, MessageType::Revision, &answer).await
    }

    /// Answers a `request` with its result.
    pub async fn respond(&self, request: &Message, result: &impl Serialize) -> Result<(), Error> {
        let result = serde_json::to_value(result)?;
        let response = Response {
            status: ResponseStatus::Success,
            result,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        self.reply(request, MessageType::Response, &response).await
    }

    /// Answers a message with an `error` that says what is wrong and how to correct it.
    pub async fn refuse(&self, asked: &Message, fault: &Fault) -> Result<(), Error> {
        self.reply(asked, MessageType::Error, &ErrorReport::from(fault))
            .await
    }
}

/// Whether it is a part of the result of a task.
fn is_part(answer: &Message) -> bool {
    answer.message_type == MessageType::TaskResult
        && TaskResult::of(answer).is_ok_and(|it| it.status == ResultStatus::Partial)
}
