//! A deadline: records once that a point in time has passed. Owned by the escalation timer.

use std::collections::BTreeSet;

use concord_events::Aggregate;
use concord_events::{Deadline, DeadlineElapsed, DeadlineEvent, FiredBy, StoredEvent};
use concord_wire::{Timestamp, Token};

use crate::machine::{Context, Decision, Ignored, Machine};

/// The state machine of a deadline.
#[derive(Debug, Clone, Copy)]
pub struct DeadlineMachine;

/// The state of a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadlineState {
    /// The instants at which it has elapsed; several when it was moved.
    pub elapsed: BTreeSet<Timestamp>,
}

/// The input of a deadline: it may have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// The kind of aggregate that has the deadline.
    pub aggregate: Aggregate,
    /// The id of that aggregate.
    pub id: Token,
    /// The name of the deadline and when it is due.
    pub deadline: Deadline,
    /// What fired it: the broker's scheduler or a sweep.
    pub fired_by: FiredBy,
}

impl Fire {
    /// The id of the deadline's own aggregate. It follows from the aggregate and the deadline's
    /// name.
    pub fn deadline_id(&self) -> Token {
        Token::derived(&format!(
            "{}/{}/{}",
            self.aggregate, self.id, self.deadline.name
        ))
    }
}

impl Machine for DeadlineMachine {
    type State = DeadlineState;
    type Event = DeadlineEvent;
    type Input = Fire;

    fn decide(state: &DeadlineState, context: &Context, input: &Fire) -> Decision<DeadlineEvent> {
        if state.elapsed.contains(&input.deadline.due) {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        // A deadline never elapses before it is due: the service hands it in again later.
        if context.now < input.deadline.due {
            return Decision::Ignore(Ignored::DeadlineNotOpen);
        }
        Decision::Append(DeadlineEvent::of(DeadlineElapsed {
            aggregate: input.aggregate,
            id: input.id.clone(),
            name: input.deadline.name.clone(),
            due: input.deadline.due,
            fired_by: input.fired_by,
            lateness_ms: context.now.millis_since(input.deadline.due),
        }))
    }

    fn apply(state: &mut DeadlineState, record: StoredEvent<DeadlineEvent>) {
        state.elapsed.insert(record.event.elapsed().due);
    }

    fn creates(_: &Fire) -> bool {
        true
    }
}

/// An instruction to the broker's scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerAction {
    /// Hold this deadline, in place of an earlier one with the same name.
    Arm(Deadline),
    /// Do not hold the deadline with this name any more.
    Cancel(Token),
}

/// The instructions to the broker's scheduler that follow from the deadlines that an event states.
pub fn timer_actions(meta: &concord_events::EventMeta) -> Vec<TimerAction> {
    let opened = meta
        .deadlines
        .iter()
        .filter(|deadline| meta.opened.contains(&deadline.name));
    let arm = opened.cloned().map(TimerAction::Arm);
    arm.chain(meta.closed.iter().cloned().map(TimerAction::Cancel))
        .collect()
}

#[cfg(test)]
mod tests;
