//! Speaking to the group: names and arguments as in the specification.

use concord_wire::{CaseId, MessageType, Recipient};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::{Agent, Error, Message};

impl Agent {
    /// Asks the group; whoever has the skills may answer.
    pub async fn broadcast_query(
        &self,
        question: &str,
        conversation: &CaseId,
    ) -> Result<(), Error> {
        let message = self.words(
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

    /// The same as [`Self::broadcast_query`], for an agent that is stuck.
    pub async fn request_group_help(
        &self,
        question: &str,
        conversation: &CaseId,
    ) -> Result<(), Error> {
        self.broadcast_query(question, conversation).await
    }

    /// Asks for help: preferred agents are woken, others join when it concerns them.
    pub async fn request_peer_help(
        &self,
        request: &str,
        conversation: &CaseId,
        preferred_agents: &[&str],
    ) -> Result<(), Error> {
        let mut message = self.words(
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

    /// Offers help to the group unasked.
    pub async fn offer_expertise(&self, offer: &str, conversation: &CaseId) -> Result<(), Error> {
        self.publish(&self.words(
            Recipient::All,
            MessageType::ExpertiseOffer,
            offer,
            conversation,
        )?)
        .await
    }

    /// Says what came of a task or query; of several answers the most confident is the primary one.
    pub async fn publish_task_result(
        &self,
        content: &str,
        conversation: &CaseId,
        confidence: Option<f64>,
    ) -> Result<(), Error> {
        let mut message = self.words(
            Recipient::All,
            MessageType::TaskResult,
            content,
            conversation,
        )?;
        message.metadata.confidence = confidence;
        self.publish(&message).await
    }

    /// Words for a conversation, to be changed as needed and given to [`Self::publish`].
    pub fn words(
        &self,
        to: Recipient,
        kind: MessageType,
        words: &str,
        case: &CaseId,
    ) -> Result<Message, Error> {
        let message = self.message(to, kind, &json!({ "content": words }))?;
        Ok(Message {
            case_id: Some(case.clone()),
            ..message
        })
    }
}
