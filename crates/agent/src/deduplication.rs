//! How the broker recognises what an agent says again.

use std::hash::{BuildHasher, RandomState};

use concord_wire::MessageId;

/// Gives each message a `Nats-Msg-Id`: the same to the same message, for as long as the agent lives.
///
/// The broker stores the first message with such an id, whoever has published it, and drops all later ones. The `message_id` of an answer can
/// be foreseen, so somebody else could take it first. Therefore a hash is added whose key nobody else knows: it says nothing of the key, nor
/// of the hash of another id.
#[derive(Default)]
pub(crate) struct Deduplication(RandomState);

impl Deduplication {
    pub(crate) fn id_of(&self, message_id: &MessageId) -> String {
        let hash = self.0.hash_one(message_id.as_str());
        format!("{message_id}-{hash:016x}")
    }
}
