//! A worklist: the tasks that one agent has, and those that wait for it. Owned by the coordinator; its id is the agent's.
//!
//! The coordinator takes a place on it before an agent gets a task, so that the `capacity` of a card is exact however many
//! replicas there are. What waits goes by priority, then by age.
//!
//! | the task  | Take                                                     | Release                          |
//! |-----------|----------------------------------------------------------|----------------------------------|
//! | unknown   | taken, or queued: no room; refused: [`WAITING_MAX`] wait | ignored                          |
//! | waits     | ignored                                                  | released                         |
//! | is held   | ignored                                                  | released, with the next that waits |
//!
//! Here is also counted how many tasks the agent has finished and how many not: its reliability ([`WorklistState::reliability`]).

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{StoredEvent, WorkReleased, WorkTaken, WorklistEvent};
use concord_wire::{ErrorCode, Fault, Priority, Token};
use serde::{Deserialize, Serialize};

use crate::machine::{Carry, Context, Decision, Ignored, Machine};

/// How many tasks may wait for one agent.
pub const WAITING_MAX: usize = 1_000;

/// The state machine of a worklist.
#[derive(Debug, Clone, Copy)]
pub struct WorklistMachine;

/// The state of a worklist.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorklistState {
    /// The tasks that the agent has.
    pub held: BTreeSet<Token>,
    /// The tasks that wait, with their priority and when they came, as a sequence.
    pub waiting: BTreeMap<Token, (Priority, u64)>,
    /// How many tasks it has finished.
    pub done: u64,
    /// How many it was given and has not finished.
    pub undone: u64,
    /// Its capacity when it was last stated; `None` for no limit.
    pub capacity: Option<u32>,
    arrivals: u64,
}

impl WorklistState {
    /// How many tasks an agent may have at a time that is in no register any more; `None` for no limit. Its last capacity holds until its
    /// tasks are taken from it. Whoever has left before it had a task gets one at a time: nobody knows how many it would do.
    pub fn capacity_of_absent(&self) -> Option<u32> {
        if *self == Self::default() {
            return Some(1);
        }
        self.capacity
    }

    /// Whether there is no room for a further task.
    pub fn is_full(&self, capacity: Option<u32>) -> bool {
        capacity.is_some_and(|capacity| self.held.len() as u64 >= u64::from(capacity))
    }

    /// The share of its tasks that the agent has finished, with one done and one undone added: one half for an agent of which
    /// nothing is known (Laplace's rule of succession).
    pub fn reliability(&self) -> f64 {
        let count = |number: u64| u32::try_from(number).map_or(f64::from(u32::MAX), f64::from);
        (count(self.done) + 1.0) / (count(self.done) + count(self.undone) + 2.0)
    }

    /// What has waited longest of what is most urgent.
    fn first_waiting(&self) -> Option<&Token> {
        let rank = |(_, (priority, since)): &(&Token, &(Priority, u64))| {
            (std::cmp::Reverse(*priority), *since)
        };
        self.waiting.iter().min_by_key(rank).map(|(task, _)| task)
    }
}

/// One input of a worklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorklistInput {
    /// Asks for a place for a task.
    Take(WorkTaken),
    /// Gives the place back.
    Release {
        /// The task.
        task_id: Token,
        /// Whether it was done; `None` where that does not count.
        done: Option<bool>,
    },
}

impl Machine for WorklistMachine {
    type State = WorklistState;
    type Event = WorklistEvent;
    type Input = WorklistInput;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    // Places are taken and given back: of most events nothing is left.
    const STATE_BYTES_MAX: usize = 4 << 10;

    fn decide(
        state: &WorklistState,
        _: &Context,
        input: &WorklistInput,
    ) -> Decision<WorklistEvent> {
        match input {
            WorklistInput::Take(taken) => take(state, taken),
            WorklistInput::Release { task_id, done } => release(state, task_id, *done),
        }
    }

    fn apply(state: &mut WorklistState, record: StoredEvent<WorklistEvent>) {
        match record.event {
            WorklistEvent::Taken(taken) => {
                state.capacity = taken.capacity;
                state.held.insert(taken.task_id);
            }
            WorklistEvent::Queued(taken) => {
                state.capacity = taken.capacity;
                state.arrivals += 1;
                let place = (taken.priority, state.arrivals);
                state.waiting.insert(taken.task_id, place);
            }
            WorklistEvent::Released(released) => {
                state.held.remove(&released.task_id);
                state.waiting.remove(&released.task_id);
                match released.done {
                    Some(true) => state.done += 1,
                    Some(false) => state.undone += 1,
                    None => {}
                }
                if let Some(next) = released.next {
                    state.waiting.remove(&next);
                    state.held.insert(next);
                }
            }
        }
    }

    fn misplaced(before: &WorklistState, event: &WorklistEvent) -> Option<String> {
        match event {
            WorklistEvent::Taken(taken) if before.is_full(taken.capacity) => Some(format!(
                "{} tasks are held before it, and the capacity is {}.",
                before.held.len(),
                taken.capacity.unwrap_or_default()
            )),
            WorklistEvent::Taken(taken) | WorklistEvent::Queued(taken) => before
                .held
                .contains(&taken.task_id)
                .then(|| format!("The task {} is held.", taken.task_id)),
            WorklistEvent::Released(WorkReleased { task_id, .. }) => {
                let is_known =
                    before.held.contains(task_id) || before.waiting.contains_key(task_id);
                (!is_known).then(|| format!("The task {task_id} has no place."))
            }
        }
    }
}

fn take(state: &WorklistState, taken: &WorkTaken) -> Decision<WorklistEvent> {
    if state.held.contains(&taken.task_id) || state.waiting.contains_key(&taken.task_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    if !state.is_full(taken.capacity) {
        return Decision::Append(WorklistEvent::Taken(taken.clone()));
    }
    if state.waiting.len() >= WAITING_MAX {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!("{WAITING_MAX} tasks wait for the agent already."),
            "Ask another agent, or wait.",
        ));
    }
    Decision::Append(WorklistEvent::Queued(taken.clone()))
}

fn release(state: &WorklistState, task_id: &Token, done: Option<bool>) -> Decision<WorklistEvent> {
    let is_held = state.held.contains(task_id);
    if !is_held && !state.waiting.contains_key(task_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let after = (state.held.len() as u64).saturating_sub(1);
    let has_room = state.capacity.is_none_or(|most| after < u64::from(most));
    let next = state.first_waiting().filter(|_| is_held && has_room);
    Decision::Append(WorklistEvent::Released(WorkReleased {
        task_id: task_id.clone(),
        done,
        next: next.cloned(),
    }))
}

#[cfg(test)]
mod tests;
