//! Tasks: each ended once, nobody got one without a place, no place is left behind, no card's capacity is exceeded, each vote counts
//! once, and each task had one turn. That one agent alone has a task at a time where its strategy says so is checked by the auditor.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::Machine;
use concord_domain::aggregates::task::{Stage, TaskMachine, TaskState};
use concord_domain::aggregates::worklist::{WorklistMachine, WorklistState};
use concord_events::{RotationEvent, StoredEvent, TaskEvent, TaskOutcome, WorklistEvent};
use concord_wire::{AgentId, Token};

use super::archive::Archive;
use crate::agents::capacity_of;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let tasks = archive.histories::<TaskEvent>();
    let states: BTreeMap<&Token, TaskState> = tasks
        .iter()
        .map(|(id, records)| (id, replayed(records)))
        .collect();
    let places = places(archive, &states, violations);
    for (id, records) in &tasks {
        let ends = records.iter().filter(|one| one.event.end().is_some());
        let ends = ends.count();
        if ends != 1 {
            violations.push(format!("tasks: {id} has {ends} ends"));
        }
        for record in records {
            if let TaskEvent::Assigned(assigned) = &record.event
                && !places.contains(&(id, assigned.agent.clone()))
            {
                violations.push(format!(
                    "tasks: {} got {id} without a place",
                    assigned.agent
                ));
            }
        }
        if let Some(state) = states.get(id) {
            votes(id, state, violations);
        }
    }
    let mut turns = BTreeSet::new();
    for record in archive.histories::<RotationEvent>().values().flatten() {
        let RotationEvent::Turned(turned) = &record.event;
        if !turns.insert(turned.task_id.clone()) {
            violations.push(format!("tasks: {} had two turns", turned.task_id));
        }
    }
}

/// How many tasks have ended, and how many of them with a result.
pub(super) fn counts(archive: &Archive) -> (u64, u64) {
    let tasks = archive.histories::<TaskEvent>();
    let events = tasks.values().flatten();
    let ends: Vec<_> = events.filter_map(|record| record.event.end()).collect();
    let is_done = |outcome: &TaskOutcome| matches!(outcome, TaskOutcome::Completed { .. });
    let done = ends.iter().filter(|end| is_done(&end.outcome)).count();
    (ends.len() as u64, done as u64)
}

fn replayed(records: &[StoredEvent<TaskEvent>]) -> TaskState {
    let mut state = TaskState::default();
    for record in records {
        TaskMachine::apply(&mut state, record.clone());
    }
    state
}

/// Who had a place for which task. What is left of places when nothing moves any more is reported.
fn places<'a>(
    archive: &Archive,
    states: &BTreeMap<&'a Token, TaskState>,
    violations: &mut Vec<String>,
) -> BTreeSet<(&'a Token, AgentId)> {
    let mut places = BTreeSet::new();
    for (agent, records) in archive.histories::<WorklistEvent>() {
        let Ok(agent) = AgentId::new(agent.as_str()) else {
            continue;
        };
        let mut state = WorklistState::default();
        for record in records {
            WorklistMachine::apply(&mut state, record);
            for task in &state.held {
                if let Some((id, _)) = states.get_key_value(task) {
                    places.insert((*id, agent.clone()));
                }
            }
            let capacity = capacity_of(agent.as_str());
            if capacity.is_some_and(|most| state.held.len() as u64 > most) {
                violations.push(format!("tasks: {agent} has more than its capacity"));
            }
        }
        for task in state.held.iter().chain(state.waiting.keys()) {
            violations.push(format!("tasks: {agent} has still a place for {task}"));
        }
    }
    places
}

/// The votes of a poll are those of the agents that have answered.
fn votes(id: &Token, state: &TaskState, violations: &mut Vec<String>) {
    let Some(TaskOutcome::Completed { result, by, .. }) = &state.ended else {
        return;
    };
    let count = |vote: &str| result.get(vote).and_then(serde_json::Value::as_u64);
    let counts = ["yes", "no", "abstain"].map(count);
    if counts.iter().any(Option::is_none) {
        return;
    }
    let sum: u64 = counts.into_iter().flatten().sum();
    let done = state
        .parts
        .values()
        .filter(|part| part.stage == Stage::Done);
    let done = done.count() as u64;
    if sum != done || by.len() as u64 != done {
        violations.push(format!("tasks: {sum} votes of {done} agents count in {id}"));
    }
}
