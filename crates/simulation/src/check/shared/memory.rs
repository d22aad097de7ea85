//! Memory: each agent writes its own alone, no version is lost or written twice, and what a snapshot holds is what was told of it.

use concord_coordinator::route::shared::SharedInput;
use concord_domain::aggregates::memory::{MemoryInput, MemoryMachine, as_of};
use concord_events::MemoryEvent;
use concord_wire::Token;
use concord_wire::payload::Snapshot;

use super::super::again::decided_again;
use super::super::archive::Archive;
use super::{in_case, said};

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<MemoryMachine>(&archive.memories, violations, |record| {
        said(archive, record, memory)
    });
    for (id, records) in &archive.memories {
        for record in records {
            let MemoryEvent::Put(put) = &record.event;
            let (who, at) = (&put.heard.agent_id, record.sequence);
            if who.token() != *id {
                violations.push(format!("memory: {who} has written that of {id} at {at}"));
            }
            if let Some(case_id) = &put.case_id {
                in_case(archive, &case_id.token(), who, at, violations);
            }
            let then = as_of(records, Snapshot(at));
            let held = then.get(&put.entry.topic);
            if held.is_none_or(|entry| entry.listing.version != put.version) {
                violations.push(format!("memory: snap_{at} does not hold what was written"));
            }
        }
    }
}

fn memory(input: SharedInput) -> Option<(Token, MemoryInput)> {
    match input {
        SharedInput::Memory(MemoryInput::Put(received)) => {
            let id = received.heard.agent_id.token();
            Some((id, MemoryInput::Put(received)))
        }
        _ => None,
    }
}
