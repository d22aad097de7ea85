//! Messages to the group. The names and arguments of these functions are those of the specification.

use std::time::Duration;

use concord_wire::payload::{GroupAnswer, GroupQuestion};
use concord_wire::{CaseId, MessageType, Recipient};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::agent::after;
use crate::pending_requests::AnswerOf;
use crate::waking::{conversation_under_way, question_under_way};
use crate::{Agent, Error, Message};

/// How much longer than a question to the group lasts its asker waits to be told how it ended.
const GRACE: Duration = Duration::from_secs(15);

impl Agent {
    /// Sends a question to the group. Any agent with the right skills may answer.
    pub async fn broadcast_query(
        &self,
        question: &str,
        conversation: &CaseId,
    ) -> Result<(), Error> {
        let message = self.text_message(
            Recipient::All,
            MessageType::GroupQuery,
            question,
            conversation,
        )?;
        self.publish(&Message {
            requires_response: true,
            ..message
        })
        .await
    }

    /// The same as [`Self::broadcast_query`]; the specification has this second name for an agent that is stuck. Without a conversation it is
    /// asked in that of the message whose handler asks, and outside of any everywhere else, in tasks that the handler spawns too.
    pub async fn request_group_help(
        &self,
        question: &str,
        conversation: Option<&CaseId>,
    ) -> Result<(), Error> {
        let content = json!({ "content": question });
        let message = self.message(Recipient::All, MessageType::GroupQuery, &content)?;
        let conversation = conversation.cloned();
        self.publish(&Message {
            case_id: conversation.or_else(|| conversation_under_way(self.id())),
            requires_response: true,
            ..message
        })
        .await
    }

    /// Asks for help. The preferred agents are given the request; other agents are if it matches their skills.
    pub async fn request_peer_help(
        &self,
        request: &str,
        conversation: &CaseId,
        preferred_agents: &[&str],
    ) -> Result<(), Error> {
        let mut message = self.text_message(
            Recipient::Any,
            MessageType::PeerRequest,
            request,
            conversation,
        )?;
        message.requires_response = true;
        if !preferred_agents.is_empty() {
            message
                .metadata
                .extensions
                .insert("preferred_agents", to_raw_value(preferred_agents)?);
        }
        self.publish(&message).await
    }

    /// Asks whoever can help, and waits for the one answer that is made of theirs. Answers count for the time `within`. Each agent's
    /// own answer comes beside it, to the handlers. [`Error::Refused`] where nobody can answer, or nobody has.
    pub async fn ask_group(
        &self,
        question: &GroupQuestion,
        conversation: Option<&CaseId>,
        within: Duration,
    ) -> Result<GroupAnswer, Error> {
        let kind = match &question.preferred_agents {
            Some(_) => MessageType::PeerRequest,
            None => MessageType::GroupQuery,
        };
        let message = Message {
            case_id: conversation.cloned(),
            deadline: Some(after(within)),
            ..self.message(Recipient::Any, kind, question)?
        };
        let answered = self.ask_for_answer(message, within + GRACE, AnswerOf::Service);
        Ok(serde_json::from_value(answered.await?)?)
    }

    /// Offers help to the group.
    pub async fn offer_expertise(&self, offer: &str, conversation: &CaseId) -> Result<(), Error> {
        self.publish(&self.text_message(
            Recipient::All,
            MessageType::ExpertiseOffer,
            offer,
            conversation,
        )?)
        .await
    }

    /// Publishes the result of a task or query. If there are several results, the one with the highest confidence is the primary
    /// one.
    ///
    /// In the handler of a question to the group this answers it: it goes to whoever asked, in reply to the question. Everywhere else, in tasks
    /// that the handler spawns too, and where the question belongs to another conversation, it goes to everybody in the conversation.
    pub async fn publish_task_result(
        &self,
        content: &str,
        conversation: &CaseId,
        confidence: Option<f64>,
    ) -> Result<(), Error> {
        let kind = MessageType::TaskResult;
        let mut message = match question_under_way(self.id(), conversation) {
            Some(question) => self.answer(&question, kind, &json!({ "content": content }))?,
            None => self.text_message(Recipient::All, kind, content, conversation)?,
        };
        message.metadata.confidence = confidence;
        self.publish(&message).await
    }

    /// A message whose payload is `{"content": text}`, in a case. Change it as needed and give it to [`Self::publish`].
    pub fn text_message(
        &self,
        to: Recipient,
        kind: MessageType,
        text: &str,
        case: &CaseId,
    ) -> Result<Message, Error> {
        let message = self.message(to, kind, &json!({ "content": text }))?;
        Ok(Message {
            case_id: Some(case.clone()),
            ..message
        })
    }
}
