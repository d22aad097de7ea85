//! A worklist: the tasks that one agent has, and those that wait for it. Owned by the coordinator; its id is the agent's.
//!
//! The coordinator takes a place on it before an agent gets a task, so that the `capacity` of a card is exact however many
//! replicas there are. What waits goes by priority, then by age.
//!
//! When a card states another capacity (`Restate`), what there is room for now is taken, one task a step. A smaller one is kept by
//! queueing what goes last anew, which changes no order; nothing more is given until there is room.
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

    /// Whether stating this capacity gives a task that waits, or makes fewer be given.
    pub fn is_changed_by(&self, capacity: Option<u32>) -> bool {
        restated(self, capacity).is_some()
    }

    /// The share of its tasks that the agent has finished, with one done and one undone added: one half for an agent of which
    /// nothing is known (Laplace's rule of succession).
    pub fn reliability(&self) -> f64 {
        let count = |number: u64| u32::try_from(number).map_or(f64::from(u32::MAX), f64::from);
        (count(self.done) + 1.0) / (count(self.done) + count(self.undone) + 2.0)
    }

    /// The tasks that wait, what goes first at the front: what has waited longest of what is most urgent.
    fn in_order(&self) -> impl DoubleEndedIterator<Item = (&Token, Priority)> {
        let mut waiting: Vec<_> = self.waiting.iter().collect();
        waiting.sort_by_key(|(_, (priority, since))| (std::cmp::Reverse(*priority), *since));
        let waiting = waiting.into_iter();
        waiting.map(|(task, (priority, _))| (task, *priority))
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
    /// Its card states a capacity.
    Restate {
        /// How many tasks it works on at a time; `None` for no limit.
        capacity: Option<u32>,
    },
}

impl Machine for WorklistMachine {
    type State = WorklistState;
    type Event = WorklistEvent;
    type Input = WorklistInput;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    // Places are taken and given back: of most events nothing is left.
    fn state_bytes_max(state: &WorklistState) -> usize {
        let places = state.held.len() + state.waiting.len();
        places.saturating_mul(128).max(4 << 10)
    }

    fn decide(
        state: &WorklistState,
        _: &Context,
        input: &WorklistInput,
    ) -> Decision<WorklistEvent> {
        match input {
            WorklistInput::Take(taken) => take(state, taken),
            WorklistInput::Release { task_id, done } => release(state, task_id, *done),
            WorklistInput::Restate { capacity } => match restated(state, *capacity) {
                Some(event) => Decision::Append(event),
                None => Decision::Ignore(Ignored::AlreadyDone),
            },
        }
    }

    fn apply(state: &mut WorklistState, record: StoredEvent<WorklistEvent>) {
        match record.event {
            WorklistEvent::Taken(taken) => {
                state.capacity = taken.capacity;
                state.waiting.remove(&taken.task_id);
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
    let next = state.in_order().next();
    let next = next.filter(|_| is_held && has_room).map(|(next, _)| next);
    Decision::Append(WorklistEvent::Released(WorkReleased {
        task_id: task_id.clone(),
        done,
        next: next.cloned(),
    }))
}

/// What follows from the capacity that a card states; `None` where nothing waits or it is what is known.
fn restated(state: &WorklistState, capacity: Option<u32>) -> Option<WorklistEvent> {
    let mut waiting = state.in_order();
    let of = |(task, priority): (&Token, Priority)| WorkTaken {
        task_id: task.clone(),
        priority,
        capacity,
    };
    if !state.is_full(capacity) {
        return waiting.next().map(of).map(WorklistEvent::Taken);
    }
    let last = waiting.next_back();
    let last = last.filter(|_| state.capacity != capacity);
    last.map(of).map(WorklistEvent::Queued)
}

#[cfg(test)]
mod tests;
