//! Notifications about questions to the group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, MessageId};

/// The data of `stand_down`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StandDown {
    /// `message_id` of the question.
    pub question: MessageId,
    /// Who has asked it.
    pub asker: AgentId,
    /// Why no answer is needed any more, in words.
    pub why: String,
}
