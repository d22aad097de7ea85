//! Messages that an aggregate has heard, to recognise a repetition.

use concord_events::Heard;
use concord_wire::{AgentId, MessageId};

use super::case::reused_message_id;
use super::review_queue::Recent;
use crate::machine::{Decision, Ignored};

/// The last messages that led to an event, with their digests. The ids of answers can be foreseen, so each sender has ids of its own.
pub(super) type HeardBefore = Recent<(MessageId, AgentId), String>;

impl HeardBefore {
    /// Remembers a message.
    pub(super) fn remember(&mut self, heard: &Heard) {
        self.insert(key_of(heard), heard.digest.clone());
    }

    /// What to do about a message whose id its sender has used before; `None` for a new id.
    pub(super) fn repetition<E>(&self, heard: &Heard) -> Option<Decision<E>> {
        let known = self.get(&key_of(heard))?;
        Some(repeated(known, &heard.digest))
    }

    /// Whether a message of another than `sender` was heard under this id.
    pub(super) fn is_taken(&self, id: &MessageId, sender: &AgentId) -> bool {
        self.keys().any(|(used, by)| used == id && by != sender)
    }
}

/// The id and the sender of a message.
pub(super) fn key_of(heard: &Heard) -> (MessageId, AgentId) {
    (heard.message_id.clone(), heard.agent_id.clone())
}

/// What to do about a message whose sender has used its id before, for something with the digest `known`.
pub(super) fn repeated<E>(known: &str, digest: &str) -> Decision<E> {
    if known == digest {
        Decision::Ignore(Ignored::Repetition)
    } else {
        Decision::Reject(reused_message_id())
    }
}
