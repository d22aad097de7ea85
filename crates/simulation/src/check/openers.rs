//! Quotas of openers: each case and each challenge had a place before it was recorded, and whatever has ended gave its place back.
//! That no quota is exceeded is checked by the auditor.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::Machine;
use concord_domain::aggregates::case::{CaseMachine, CaseState};
use concord_domain::aggregates::opener::{OpenerMachine, OpenerState};
use concord_events::{CaseEvent, OpenerEvent, StoredEvent, TaskEvent};
use concord_wire::{CaseId, MessageId};

use super::archive::Archive;

/// When each case and each challenge was let in, by the sequence of the event.
#[derive(Default)]
struct Places {
    cases: BTreeMap<CaseId, BTreeSet<u64>>,
    challenges: BTreeMap<MessageId, u64>,
}

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let mut places = Places::default();
    let tasks = archive.histories::<TaskEvent>();
    for records in archive.openers.values() {
        let mut state = OpenerState::default();
        for record in records {
            places.take(record);
            OpenerMachine::apply(&mut state, record.clone());
        }
        for task_id in state.tasks.keys() {
            let ended = tasks.get(task_id).into_iter().flatten();
            let mut ended = ended.filter(|record| record.event.end().is_some());
            if ended.next().is_some() {
                violations.push(format!("openers: {task_id} has a place, and has ended"));
            }
        }
        for case_id in state.cases.keys() {
            let case = archive.cases.get(&case_id.token());
            // One that was never opened has its place until the quota is used up: a process stopped before it opened the case, and
            // another refused the message meanwhile.
            if case.is_some_and(|records| replayed(records).is_over()) {
                violations.push(format!("openers: {case_id} has a place, and is not open"));
            }
        }
    }
    for records in archive.cases.values() {
        places.check(records, violations);
    }
}

fn replayed(records: &[StoredEvent<CaseEvent>]) -> CaseState {
    let mut state = CaseState::default();
    for record in records {
        CaseMachine::apply(&mut state, record.clone());
    }
    state
}

impl Places {
    fn take(&mut self, record: &StoredEvent<OpenerEvent>) {
        match &record.event {
            OpenerEvent::Admitted(admitted) => {
                let places = self.cases.entry(admitted.case_id.clone()).or_default();
                places.insert(record.sequence);
            }
            OpenerEvent::Challenged(challenged) => {
                let message = challenged.message_id.clone();
                self.challenges.insert(message, record.sequence);
            }
            OpenerEvent::Released(_)
            | OpenerEvent::TaskAdmitted(_)
            | OpenerEvent::TaskReleased(_)
            | OpenerEvent::QuotaReached(_) => {}
        }
    }

    fn check(&self, records: &[StoredEvent<CaseEvent>], violations: &mut Vec<String>) {
        let mut by_operator = false;
        for record in records {
            let let_in = match &record.event {
                CaseEvent::Opened(opened) => {
                    by_operator = opened.by_operator;
                    let case_id = CaseId::new(record.meta.id.as_str()).ok();
                    let places = case_id.and_then(|id| self.cases.get(&id));
                    places.and_then(|places| places.first().copied())
                }
                CaseEvent::Challenged(challenged) => {
                    self.challenges.get(&challenged.heard.message_id).copied()
                }
                _ => continue,
            };
            if !by_operator && let_in.is_none_or(|at| at > record.sequence) {
                violations.push(format!(
                    "openers: the event at {} took no place before",
                    record.sequence
                ));
            }
        }
    }
}
