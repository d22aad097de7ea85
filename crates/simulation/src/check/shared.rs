//! Boards, commitments, analyses, memory and alerts: who writes is in the case, or writes its own memory, no version is lost or written twice, and nothing is held by two or ends before
//! its time. Each event is also decided again from its cause.

use concord_coordinator::route::shared::{SharedInput, from_message};
use concord_domain::Machine;
use concord_domain::aggregates::board::{BoardInput, BoardMachine};
use concord_domain::aggregates::commitment::{CommitmentInput, CommitmentMachine, CommitmentState};
use concord_events::{
    AgentEvent, Aggregate, BoardEvent, CaseEvent, CommitmentEvent, DeadlineEvent, ImpactEvent,
    MemoryEvent, StoredEvent, TaskEvent,
};
use concord_wire::payload::{CommitmentEnd, TASK_RESOURCE};
use concord_wire::{AgentId, Envelope, Token};

use super::again::decided_again;
use super::archive::Archive;
use crate::process::SHARED;

mod alerts;
mod analyses;
mod memory;
pub(super) mod reruns;
mod synthesis;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<BoardMachine>(&archive.boards, violations, |record| {
        said(archive, record, board)
    });
    decided_again::<CommitmentMachine>(&archive.commitments, violations, |record| {
        let mut inputs = said(archive, record, commitment);
        inputs.extend(followed(archive, record));
        inputs
    });
    analyses::check(archive, violations);
    reruns::check(archive, violations);
    memory::check(archive, violations);
    synthesis::check(archive, violations);
    alerts::check(archive, violations);
    for (id, records) in &archive.boards {
        for record in records {
            let BoardEvent::Put(put) = &record.event;
            in_case(
                archive,
                id,
                &put.heard.agent_id,
                record.sequence,
                violations,
            );
        }
    }
    for records in archive.commitments.values() {
        held_by_one(archive, records, violations);
    }
}

/// How many alerts were raised.
pub(super) fn alerts_raised(archive: &Archive) -> u64 {
    archive.alerts.len() as u64
}

/// How many of them a rule has raised.
pub(super) fn alerts_by_rules(archive: &Archive) -> u64 {
    let memories = archive.memories.values().flatten();
    let fired = memories.flat_map(|record| {
        let MemoryEvent::Put(put) = &record.event;
        put.fired.iter().filter(|fired| !fired.withheld)
    });
    fired.count() as u64
}

/// How many entries were written, how many commitments have ended, and how many reports there are about analyses.
pub(super) fn counts(archive: &Archive) -> (u64, u64, u64) {
    let puts = archive.boards.values().flatten().count();
    let all = archive.commitments.values().flatten();
    let ended = all.filter(|record| matches!(record.event, CommitmentEvent::Ended(_)));
    let all = archive.analyses.values().flatten();
    let reports = all.filter(|record| matches!(record.event, ImpactEvent::Assessed(_)));
    (puts as u64, ended.count() as u64, reports.count() as u64)
}

/// What the message says that an event follows from. Ids are chosen by senders, so there may be several.
fn said<E, I>(
    archive: &Archive,
    record: &StoredEvent<E>,
    input: impl Fn(SharedInput) -> Option<(Token, I)>,
) -> Vec<I> {
    let said = archive.said_under(&record.meta.cause);
    let envelopes = said.filter_map(|message| message.envelope.as_ref());
    let read = |envelope: &Envelope| from_message(envelope, SHARED).ok().flatten();
    let inputs = envelopes.filter_map(|envelope| input(read(envelope)?));
    let of_this = inputs.filter(|(id, _)| *id == record.meta.id);
    of_this.map(|(_, input)| input).collect()
}

fn board(input: SharedInput) -> Option<(Token, BoardInput)> {
    match input {
        SharedInput::Board(case_id, input) => Some((case_id.token(), input)),
        _ => None,
    }
}

fn commitment(input: SharedInput) -> Option<(Token, CommitmentInput)> {
    match input {
        SharedInput::Commitment(id, input) => Some((id, input)),
        _ => None,
    }
}

/// What follows from an event of another aggregate.
fn followed(archive: &Archive, record: &StoredEvent<CommitmentEvent>) -> Option<CommitmentInput> {
    let (aggregate, sequence, bytes) = archive.events.get(&record.meta.cause)?;
    match aggregate {
        Aggregate::Deadline => {
            let event = StoredEvent::<DeadlineEvent>::decode(bytes, *sequence).ok()?;
            let elapsed = event.event.into_elapsed();
            (elapsed.id == record.meta.id).then_some(CommitmentInput::Elapsed(elapsed))
        }
        Aggregate::Agent => {
            let event = StoredEvent::<AgentEvent>::decode(bytes, *sequence).ok()?;
            Some(CommitmentInput::Gone(
                AgentId::new(event.meta.id.as_str()).ok()?,
            ))
        }
        Aggregate::Case => Some(CommitmentInput::CaseOver),
        Aggregate::Task => {
            let event = StoredEvent::<TaskEvent>::decode(bytes, *sequence).ok()?;
            let resource = format!("{TASK_RESOURCE}{}", event.meta.id);
            let is_over = event.event.end().is_some();
            // Whose it was the event says that ended it.
            let CommitmentEvent::Ended(ended) = &record.event else {
                return None;
            };
            let holder = ended.leases.first()?.holder.clone();
            is_over.then_some(CommitmentInput::Done(holder, resource))
        }
        _ => None,
    }
}

fn in_case(
    archive: &Archive,
    case: &Token,
    who: &AgentId,
    sequence: u64,
    violations: &mut Vec<String>,
) {
    let records = archive.cases.get(case).into_iter().flatten();
    let mut before = records.take_while(|record| record.sequence < sequence);
    let is_inside = before.any(|record| match &record.event {
        CaseEvent::Opened(opened) => opened.participants.contains(who) || opened.opened_by == *who,
        CaseEvent::Joined(joined) => joined.agent_id == *who,
        _ => false,
    });
    if !is_inside {
        violations.push(format!(
            "shared: {who} at {sequence} is not in the case {case}"
        ));
    }
}

fn held_by_one(
    archive: &Archive,
    records: &[StoredEvent<CommitmentEvent>],
    violations: &mut Vec<String>,
) {
    let mut state = CommitmentState::default();
    for record in records {
        let at = record.sequence;
        match &record.event {
            CommitmentEvent::Granted(granted) => {
                let lease = &granted.lease;
                let standing = state.standing(granted.case_id.as_ref());
                if let Some(held) = standing.get(&lease.resource) {
                    let (one, other) = (&held.holder, &lease.holder);
                    violations.push(format!("shared: {one} and {other} hold the same at {at}"));
                }
                if let Some(case) = &granted.case_id {
                    in_case(archive, &case.token(), &lease.holder, at, violations);
                }
            }
            CommitmentEvent::Renewed(_) => {}
            CommitmentEvent::Ended(ended) if ended.reason == CommitmentEnd::Expired => {
                let standing = state.standing(ended.case_id.as_ref());
                let leases = ended.leases.iter();
                let mut early = leases.filter(|one| {
                    let held = standing.get(&one.resource);
                    held.is_none_or(|held| held.until > record.meta.at)
                });
                if let Some(one) = early.next() {
                    let holder = &one.holder;
                    violations.push(format!("shared: a lease of {holder} ended early at {at}"));
                }
            }
            CommitmentEvent::Ended(_) => {}
        }
        CommitmentMachine::apply(&mut state, record.clone());
    }
    let left = state.leases.len() + state.outside.len();
    if left > 0 {
        violations.push(format!("shared: {left} commitments have no end"));
    }
}
