//! The queue of people: what it decided follows from what was known, and it keeps nothing that needs no person any more.
//! Openers take turns in it, and it takes from experts only what they let lie. Capacity is checked by the auditor.

use std::collections::BTreeMap;

use concord_domain::aggregates::review_queue::{ReviewQueueMachine, decide_again};
use concord_domain::machine::Versioned;

use concord_events::{Assigned, DebateEvent, Enqueued, ReviewQueueEvent, StoredEvent};
use concord_wire::payload::DebatePriority;
use concord_wire::{AgentId, DebateId};

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for records in archive.queues.values() {
        turns(records, violations);
        returned(archive, records, violations);
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

type Line = (DebatePriority, Option<AgentId>);

/// A plain account of the queue, beside the decisions that are made again.
#[derive(Default)]
struct Account {
    waiting: BTreeMap<DebateId, Enqueued>,
    /// What experts have.
    assigned: BTreeMap<DebateId, Enqueued>,
    turns: BTreeMap<Line, u64>,
}

impl Account {
    fn take(&mut self, record: &StoredEvent<ReviewQueueEvent>) {
        match &record.event {
            ReviewQueueEvent::Enqueued(entry) => {
                self.waiting.insert(entry.debate_id.clone(), entry.clone());
            }
            ReviewQueueEvent::Assigned(given) => {
                if let Some(line) = self.waiting.get(&given.debate_id).map(line_of) {
                    self.turns.insert(line, record.sequence);
                }
                self.moves(&given.debate_id);
            }
            ReviewQueueEvent::Reassigned(given) => self.moves(&given.debate_id),
            ReviewQueueEvent::Returned(returned) => self.returns(&returned.debate_id),
            ReviewQueueEvent::ExpertLeft(left) => {
                left.returned.iter().for_each(|id| self.returns(id));
            }
            ReviewQueueEvent::Released(released) => {
                self.waiting.remove(&released.debate_id);
                self.assigned.remove(&released.debate_id);
            }
            ReviewQueueEvent::ExpertRegistered(_) | ReviewQueueEvent::Overflowed(_) => {}
        }
    }

    fn moves(&mut self, id: &DebateId) {
        if let Some(entry) = self.waiting.remove(id) {
            self.assigned.insert(id.clone(), entry);
        }
    }

    fn returns(&mut self, id: &DebateId) {
        if let Some(entry) = self.assigned.remove(id) {
            self.waiting.insert(id.clone(), entry);
        }
    }

    fn turn(&self, entry: &Enqueued) -> u64 {
        self.turns.get(&line_of(entry)).copied().unwrap_or(0)
    }

    /// The debates of other openers that could have been assigned in the place of this one.
    fn rivals<'a>(&'a self, given: &'a Assigned) -> impl Iterator<Item = &'a Enqueued> {
        let taken = self.waiting.get(&given.debate_id);
        let rivals = move |one: &&Enqueued| {
            let differs = taken.is_some_and(|taken| {
                one.priority == taken.priority && one.opened_by != taken.opened_by
            });
            differs && one.domain.is_none() && !one.excluded.contains(&given.expert)
        };
        self.waiting.values().filter(rivals)
    }
}

fn line_of(entry: &Enqueued) -> Line {
    (entry.priority, entry.opened_by.clone())
}

/// Nobody is served twice while another opener waits.
fn turns(records: &[StoredEvent<ReviewQueueEvent>], violations: &mut Vec<String>) {
    let mut account = Account::default();
    for record in records {
        if let ReviewQueueEvent::Assigned(given) = &record.event
            && let Some(taken) = account.waiting.get(&given.debate_id)
        {
            let turn = account.turn(taken);
            let passed = account.rivals(given).find(|one| account.turn(one) < turn);
            violations.extend(passed.map(|one| {
                format!(
                    "queue: at {}: {} is assigned before {}, whose opener was served longer ago",
                    record.sequence, taken.debate_id, one.debate_id
                )
            }));
        }
        account.take(record);
    }
}

/// How many assignments there were while debates of several openers waited for the same expert.
pub(super) fn contended(archive: &Archive) -> u64 {
    let mut contended = 0;
    for records in archive.queues.values() {
        let mut account = Account::default();
        for record in records {
            if let ReviewQueueEvent::Assigned(given) = &record.event {
                contended += u64::from(account.rivals(given).next().is_some());
            }
            account.take(record);
        }
    }
    contended
}

/// A debate is taken from an expert only after a reminder that says so.
fn returned(
    archive: &Archive,
    records: &[StoredEvent<ReviewQueueEvent>],
    violations: &mut Vec<String>,
) {
    for record in records {
        let ReviewQueueEvent::Returned(returned) = &record.event else {
            continue;
        };
        let lies = |event: &StoredEvent<DebateEvent>| {
            event.sequence < record.sequence
                && matches!(&event.event, DebateEvent::Reminded(reminded)
                    if reminded.returns && reminded.expert.as_ref() == Some(&returned.expert))
        };
        let debate = archive.debates.get(&returned.debate_id.token());
        if !debate.is_some_and(|events| events.iter().any(lies)) {
            violations.push(format!(
                "queue: at {}: {} is taken from {}, who was not reminded",
                record.sequence, returned.debate_id, returned.expert
            ));
        }
    }
}
