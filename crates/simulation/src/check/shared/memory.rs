//! Memory: each agent writes its own alone, no version is lost or written twice, what a snapshot holds is what was told of it, and
//! everybody in a case is told once of what matters there.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_coordinator::route::shared::SharedInput;
use concord_domain::Machine;
use concord_domain::aggregates::case::{CaseMachine, CaseState, everyone_in, written_in};
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::memory::{MemoryInput, MemoryMachine, as_of};
use concord_domain::aggregates::watch::{WatchMachine, WatchState};
use concord_domain::machine::Versioned;
use concord_events::{DebateEvent, MemoryEvent, StoredEvent};
use concord_wire::payload::notification::{EventData, InsightShared};
use concord_wire::payload::{Notification, Snapshot};
use concord_wire::subject::Service;
use concord_wire::{Recipient, Token};

use super::super::again::decided_again;
use super::super::archive::Archive;
use super::super::authority::earlier;
use super::{in_case, said};

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<MemoryMachine>(&archive.memories, violations, |record| {
        let states = before(archive, record);
        let said = said(archive, record, memory).into_iter();
        let said = said.flat_map(|input| in_each(&states, input));
        said.flat_map(|input| watched(archive, record.sequence, input))
            .collect()
    });
    let told = told(archive);
    for records in archive.debates.values() {
        refers_to_one_snapshot(records, violations);
    }
    for (id, records) in &archive.memories {
        for record in records {
            let MemoryEvent::Put(put) = &record.event;
            let (who, at) = (&put.heard.agent_id, record.sequence);
            if who.token() != *id {
                violations.push(format!("memory: {who} has written that of {id} at {at}"));
            }
            if let Some(case_id) = &put.case_id {
                in_case(archive, &case_id.token(), who, at, violations);
                everybody_is_told(archive, record, &told, violations);
            }
            let then = as_of(records, Snapshot(at));
            let held = then.get(&put.entry.topic);
            if held.is_none_or(|entry| entry.listing.version != put.version) {
                violations.push(format!("memory: snap_{at} does not hold what was written"));
            }
        }
    }
}

/// The states of the case that an entry belongs to, from before it was written.
fn before(archive: &Archive, record: &StoredEvent<MemoryEvent>) -> Vec<Arc<CaseState>> {
    let MemoryEvent::Put(put) = &record.event;
    let Some(case_id) = &put.case_id else {
        return Vec::new();
    };
    let records = archive.cases.get(&case_id.token()).into_iter().flatten();
    let before = records.take_while(|one| one.sequence < record.sequence);
    let mut known = Versioned::<CaseMachine>::default();
    let states = before.map(|one| {
        known.apply(one.clone());
        Arc::clone(&known.state)
    });
    states.collect()
}

/// What is written, with what each of these states of its case says about whom it reaches.
fn in_each(states: &[Arc<CaseState>], input: MemoryInput) -> Vec<MemoryInput> {
    let MemoryInput::Put(received) = &input;
    if received.case_id.is_none() {
        return vec![input];
    }
    let with = |state: &Arc<CaseState>| {
        let mut received = received.clone();
        received.written_in = written_in(state);
        MemoryInput::Put(received)
    };
    states.iter().map(with).collect()
}

/// How often somebody was told at once of a version: by case, recipient, and the first snapshot that has it.
type Told = BTreeMap<(Token, Recipient, Snapshot), u32>;

fn told(archive: &Archive) -> Told {
    let mut told = Told::new();
    let envelopes = archive.messages.iter();
    for envelope in envelopes.filter_map(|message| message.envelope.as_ref()) {
        let notification = envelope.payload::<Notification>().ok();
        let of_insight = notification
            .filter(|one| one.event == InsightShared::EVENT)
            .and_then(|one| serde_json::from_value::<InsightShared>(one.data).ok());
        if let (Some(data), Some(case)) = (of_insight, &envelope.case_id)
            && envelope.from_agent == Service::Coordinator.agent_id()
        {
            let to = envelope.to_agent.clone();
            let key = (case.token(), to, data.insight.since);
            *told.entry(key).or_default() += 1;
        }
    }
    told
}

/// Whoever was in the case from its beginning is told once of what matters more than the policy could ask for, and of nothing that
/// matters less.
fn everybody_is_told(
    archive: &Archive,
    record: &StoredEvent<MemoryEvent>,
    told: &Told,
    violations: &mut Vec<String>,
) {
    let MemoryEvent::Put(put) = &record.event;
    let states = before(archive, record);
    let (Some(case_id), Some(opened)) = (
        &put.case_id,
        states.first().and_then(|state| state.opened.as_ref()),
    ) else {
        return;
    };
    let policy = &opened.policy.importance;
    let importance = put.entry.importance;
    // Whatever has moved the thresholds: an agent that is told often one way, a debate and a change of regime the other.
    let must = policy.filtered && importance > policy.broadcast_above + policy.adapted_by;
    let lowest = policy.broadcast_above - 2.0 * policy.adapted_by;
    let must_not = !policy.filtered || importance <= lowest;
    for agent in everyone_in(opened) {
        if agent == put.heard.agent_id {
            continue;
        }
        let key = (
            case_id.token(),
            Recipient::Agent(agent),
            Snapshot(record.sequence),
        );
        let times = told.get(&key).copied().unwrap_or_default();
        if must && times != 1 || must_not && times != 0 || times > 1 {
            let (to, at) = (&key.1, record.sequence);
            violations.push(format!(
                "memory: {to} was told {times} times of what was written at {at} with importance {importance}"
            ));
        }
    }
}

/// Whatever follows from a debate after its snapshot refers to it, and nothing does before.
fn refers_to_one_snapshot(records: &[StoredEvent<DebateEvent>], violations: &mut Vec<String>) {
    let mut taken = None;
    for record in records {
        let (at, named) = (record.sequence, DebateMachine::snapshot_of(record));
        let is_taken_here = named == Some(Snapshot(at));
        if is_taken_here && taken.is_none() {
            taken = named;
        } else if named != taken {
            violations.push(format!(
                "memory: the event at {at} refers to {named:?}, and its debate to {taken:?}"
            ));
        }
    }
}

/// What was written, held against the rules that there were at each time before, with each right that its sender had.
fn watched(archive: &Archive, before: u64, input: MemoryInput) -> Vec<MemoryInput> {
    let MemoryInput::Put(received) = &input;
    let mut states = vec![WatchState::default()];
    if received.case_id.is_none() {
        let events = archive.watches.values().flatten();
        for event in events.take_while(|event| event.sequence < before) {
            let mut state = states.last().cloned().unwrap_or_default();
            WatchMachine::apply(&mut state, event.clone());
            states.push(state);
        }
    }
    let who = &received.heard.agent_id;
    let senders = earlier(archive, before, who);
    let with = |state: &WatchState| {
        let all = senders.iter().map(|sender| {
            let mut received = received.clone();
            received.watched = state.watched(&received.entry.topic, who, sender);
            MemoryInput::Put(received)
        });
        all.collect::<Vec<_>>()
    };
    states.iter().flat_map(with).collect()
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
