//! A deadline: notices once that a point in time has passed. Owned by the escalation timer.

use std::collections::BTreeSet;

use concord_events::Aggregate;
use concord_events::{Deadline, DeadlineElapsed, DeadlineEvent, FiredBy, StoredEvent};
use concord_wire::{CaseId, Timestamp, Token};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine};

/// The deadline machine.
#[derive(Debug, Clone, Copy)]
pub struct DeadlineMachine;

/// What is known of a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadlineState {
    /// The instants at which it has elapsed: more than one when it was moved.
    pub elapsed: BTreeSet<Timestamp>,
}

/// A deadline that is said to have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// Whose: kind of aggregate.
    pub aggregate: Aggregate,
    /// Which aggregate.
    pub id: Token,
    /// Which of its deadlines, due when.
    pub deadline: Deadline,
    /// Who says so.
    pub fired_by: FiredBy,
}

impl Fire {
    /// The id of the deadline's own aggregate: the same whoever computes it.
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
        // Never before it is due: the shell hands it in again later.
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

    fn deadlines(_: &DeadlineState) -> Vec<Deadline> {
        Vec::new()
    }

    fn effects(_: &StoredEvent<DeadlineEvent>) -> Vec<Effect> {
        Vec::new()
    }

    fn case_of(_: &StoredEvent<DeadlineEvent>) -> Option<CaseId> {
        None
    }

    fn creates(_: &Fire) -> bool {
        true
    }
}

/// What the broker's scheduler must be told because of one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerAction {
    /// Hold this deadline, in place of an earlier one of the same name.
    Arm(Deadline),
    /// Hold the deadline of this name no longer.
    Cancel(Token),
}

/// What the broker's scheduler must be told, from the fact's own account of its deadlines.
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
