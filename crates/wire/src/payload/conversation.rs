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
    /// Who said it.
    pub from: AgentId,
    /// To whom.
    pub to: Recipient,
    /// What kind of thing was said.
    pub message_type: String,
    /// When the broker stored it.
    pub at: Timestamp,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What it says, or the beginning of it.
    pub text: String,
}
