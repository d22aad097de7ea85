//! The ladder of a debate: five levels from the agents themselves to the review at a gate.
//!
//! A challenge is on the ladder from its opening. Any other debate enters it at level 2, when its
//! discussion has settled nothing and its [strategy](super::strategy) escalates. A debate never
//! goes back to a lower level, and ends exactly once.
//!
//! | level       | acknowledge, clarify, evidence      | agreement, disagreement       | ruling                  | queue       | its deadlines                          |
//! |-------------|-------------------------------------|-------------------------------|-------------------------|-------------|----------------------------------------|
//! | 1 agents    | acknowledged, clarified,            | one takes the other's         | refused: no person is   | ignored     | acknowledge, evidence, evaluation:     |
//! |             | evidence_given (asks the challenger)| position: resolved; else of   | asked yet               |             | escalated to 2                         |
//! |             |                                     | the challenger: escalated to  |                         |             |                                        |
//! |             |                                     | 2, of the challenged:         |                         |             |                                        |
//! |             |                                     | evidence_given                |                         |             |                                        |
//! | 2 mediation | evidence_given; of the mediator:    | set aside as late             | refused                 | ignored     | compare: resolved, or escalated to 3;  |
//! |             | opinion_given                       |                               |                         |             | mediation: escalated to 3              |
//! | 3 person    | evidence_given, and the brief of    | set aside as late             | of the expert, on the   | (un)assigned| person-half, person-nearly: reminded;  |
//! |             | the expert changes                  |                               | brief as it is: resolved| or fell_back| person: fell_back                      |
//! | 4 fallback  | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | provisional: awaits_gate, or resolved  |
//! |             |                                     |                               |                         |             | where there is no gate                 |
//! | 5 gate      | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | -                                      |
//! | resolved    | set aside as late                   | set aside as late             | ruling_set_aside        | ignored     | -                                      |
//!
//! From level 4 on a review at a gate resolves the debate: confirmed, overridden, or debated again
//! under another id. An operator can hold, resume and extend the deadlines of every level, and
//! cancel the debate before it is resolved. A level that fails never stops the case: every level
//! but the last has a deadline that leads to the next.

use concord_events::{Deadline, DebateOpened};
use concord_wire::{AgentId, Timestamp, Token};

use super::state::{DebateState, Ladder};
use crate::machine::Context;

mod answers;
mod background;
mod brief;
mod deadlines;
mod effects;
mod evidence;
mod fallback;
mod human;
mod levels;
mod mediation;
mod messages;
mod operator;

pub(super) use answers::answer;
pub use background::{Sources, background, believed};
pub(super) use deadlines::elapsed;
pub(super) use effects::effects;
pub(super) use fallback::{overriding, reviewed};
pub(super) use human::{assigned, overflowed, resolution, unassigned};
pub(super) use levels::{Escalation, escalate};
pub(super) use mediation::mediate;
pub(super) use messages::message;
pub(super) use operator::{cancel, control};

/// A debate on the ladder, and the circumstances of the decision that is made about it.
#[derive(Clone, Copy)]
pub(super) struct OnLadder<'a> {
    pub(super) state: &'a DebateState,
    pub(super) opened: &'a DebateOpened,
    pub(super) ladder: &'a Ladder,
    pub(super) context: &'a Context,
}

impl<'a> OnLadder<'a> {
    /// `None` for a debate that is discussed in rounds.
    pub(super) fn new(
        state: &'a DebateState,
        opened: &'a DebateOpened,
        context: &'a Context,
    ) -> Option<Self> {
        Some(Self {
            state,
            opened,
            ladder: state.ladder.as_deref()?,
            context,
        })
    }

    fn is_resolved(&self) -> bool {
        self.state.outcome.is_some()
    }
}

/// A deadline of the ladder with this name.
pub(super) fn named(name: &'static str, due: Timestamp) -> Deadline {
    Deadline {
        name: Token::fixed(name),
        due,
    }
}

/// The agents that hold a position in the debate.
pub(super) fn parties(opened: &DebateOpened) -> Vec<AgentId> {
    parties_of(opened).cloned().collect()
}

fn parties_of(opened: &DebateOpened) -> impl Iterator<Item = &AgentId> {
    let positions = opened.conflict.positions.iter();
    positions.map(|position| &position.agent_id)
}

#[cfg(test)]
pub(in crate::aggregates) mod tests;
