//! A conversation as Concord remembers it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, MessageId, Recipient};
use crate::timestamp::Timestamp;

/// A message of a conversation as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remembered {
    /// Its id.
    pub message_id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The recipient.
    pub to: Recipient,
    /// The message type.
    pub message_type: String,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The text of the message, or its beginning.
    pub text: String,
}
