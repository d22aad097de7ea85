//! The queue of people: what it decided follows from what was known, and it keeps nothing that needs no person any more.
//! Capacity is checked by the auditor.

use concord_domain::aggregates::review_queue::{ReviewQueueMachine, decide_again};
use concord_domain::machine::Versioned;

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for records in archive.queues.values() {
        let mut known = Versioned::<ReviewQueueMachine>::default();
        for record in records {
            if let Err(what) = decide_again(&known.state, record) {
                violations.push(format!("queue: at {}: {what}", record.sequence));
            }
            known.apply(record.clone());
        }
        for debate in known.state.debates.keys() {
            violations.push(format!(
                "queue: it keeps {debate}, and nothing waits for a person"
            ));
        }
    }
}
