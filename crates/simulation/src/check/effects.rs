//! What is published says what the events say: byte for byte, and not only under the right id.

use concord_domain::{Machine, MachineVisitor, effect, visit_machine};
use concord_events::{Aggregate, AggregateEvent, StoredEvent};
use concord_wire::Envelope;

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for aggregate in Aggregate::ALL {
        violations.extend(visit_machine(*aggregate, Check { archive }));
    }
}

/// Compares what was published with what follows from the events of one kind of aggregate.
struct Check<'a> {
    archive: &'a Archive,
}

impl MachineVisitor for Check<'_> {
    type Output = Vec<String>;

    fn visit<M: Machine>(self) -> Vec<String> {
        let mut violations = Vec::new();
        for record in self.archive.histories::<M::Event>().values().flatten() {
            // What cannot be written is reported by the auditor, as is what was not published.
            let messages = effect::messages::<M>(record).unwrap_or_default();
            for expected in &messages {
                compare::<M>(self.archive, record, expected, &mut violations);
            }
        }
        violations
    }
}

fn compare<M: Machine>(
    archive: &Archive,
    record: &StoredEvent<M::Event>,
    expected: &Envelope,
    violations: &mut Vec<String>,
) {
    let body = serde_json::to_vec(expected).unwrap_or_default();
    let ours = |envelope: &Envelope| envelope.from_agent == expected.from_agent;
    let stored = archive.said_under(&expected.message_id);
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
