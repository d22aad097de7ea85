//! What is published says what the events say: byte for byte, and not only under the right id.

use concord_domain::{Machine, effect};
use concord_events::AggregateEvent;

use super::archive::{Archive, Lives};

pub(super) fn check<M: Machine>(
    archive: &Archive,
    lives: &Lives<M::Event>,
    violations: &mut Vec<String>,
) {
    for record in lives.values().flatten() {
        // What cannot be written is reported by the auditor, as is what was not published.
        let Ok(messages) = effect::messages::<M>(record) else {
            continue;
        };
        for expected in messages {
            let body = serde_json::to_vec(&expected).unwrap_or_default();
            let stored = archive.said_under(&expected.message_id);
            let ours =
                |envelope: &concord_wire::Envelope| envelope.from_agent == expected.from_agent;
            for message in stored.filter(|message| message.envelope.as_ref().is_some_and(ours)) {
                if *message.body != *body {
                    let aggregate = M::Event::AGGREGATE;
                    let id = &record.meta.id;
                    violations.push(format!(
                        "effects: {} does not say what {aggregate}/{id} does",
                        expected.message_id
                    ));
                }
            }
        }
    }
}
