//! The queue of people: what it decided follows from what was known, what it decided reaches the debates in that order,
//! and it keeps nothing that needs no person any more. Capacity is checked by the auditor.

use concord_domain::machine::Versioned;
use concord_domain::queue::{QueueMachine, decided_again};
use concord_protocol::event::{DebateEvent, Record};
use concord_protocol::subject::Aggregate;

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for records in archive.queues.values() {
        let mut known = Versioned::<QueueMachine>::default();
        for record in records {
            if let Err(what) = decided_again(&known.state, record) {
                violations.push(format!("queue: at {}: {what}", record.sequence));
            }
            known.apply(record.clone());
        }
        for debate in known.state.debates.keys() {
            violations.push(format!("queue: it keeps {debate}, and nothing waits for a person"));
        }
    }
    archive.debates.values().for_each(|records| in_order(archive, records, violations));
}

/// A debate is told of its experts in the order in which the queue chose them: the last one has it.
fn in_order(archive: &Archive, records: &[Record<DebateEvent>], violations: &mut Vec<String>) {
    let mut last = 0;
    for record in records.iter().filter(|record| matches!(record.event, DebateEvent::Assigned(_))) {
        let Some((Aggregate::Queue, from, _)) = archive.facts.get(&record.meta.cause) else { continue };
        if *from < last {
            let (id, at) = (&record.meta.id, record.sequence);
            violations
                .push(format!("queue: debate/{id} follows the queue's fact {from} at {at}, after that at {last}"));
        }
        last = last.max(*from);
    }
}
