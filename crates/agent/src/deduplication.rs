//! How the broker recognises what an agent says again.

use std::hash::{BuildHasher, RandomState};

use crate::Message;

/// Gives each message a `Nats-Msg-Id`: the same to the same message, for as long as the agent lives.
///
/// The broker stores the first message with such an id, whoever has published it, and drops all later ones. The `message_id` of an answer can
/// be foreseen, so somebody else could take it first. Therefore a hash is added whose key nobody else knows: it says nothing of the key, nor
/// of the hash of another id. Nor may somebody have the agent itself take it: whoever asks under the id that another's question will have
/// is answered under the id that the answer to that question will have. Therefore the hash is of recipient and case, too.
#[derive(Default)]
pub(crate) struct Deduplication(RandomState);

impl Deduplication {
    pub(crate) fn id_of(&self, message: &Message) -> String {
        let (to, case, id) = (&message.to_agent, &message.case_id, &message.message_id);
        let hash = self.0.hash_one((to, case, id));
        format!("{id}-{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use concord_wire::MessageType;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_same_answer_to_the_same_asker_in_the_same_case_is_one() {
        let ids = Deduplication::default();
        let id_of = |asker: &str, case: Value, kind: MessageType| {
            let asked: Message = serde_json::from_value(json!({
                "message_id": "m-1", "timestamp": "2026-11-21T20:00:00.000Z", "from_agent": asker, "to_agent": "ann", "case_id": case,
                "message_type": "request", "payload": {}, "metadata": { "version": "1.0" },
            }))
            .unwrap();
            let payload = serde_json::value::to_raw_value(&json!({})).unwrap();
            let ann = concord_wire::AgentId::new("ann").unwrap();
            ids.id_of(&asked.reply(&ann, crate::agent::now(), kind, payload))
        };
        let first = id_of("zoe", json!("c-1"), MessageType::Response);
        assert_eq!(first, id_of("zoe", json!("c-1"), MessageType::Error));
        for (asker, case) in [
            ("mallory", json!("c-1")),
            ("zoe", json!("c-2")),
            ("zoe", Value::Null),
        ] {
            let other = id_of(asker, case.clone(), MessageType::Response);
            assert_ne!(first, other, "{asker} {case}");
        }
    }
}
