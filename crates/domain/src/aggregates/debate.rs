//! A debate: bounded rounds of discussion about one conflict, then the vote. Owned by the debate facilitator.
//!
//! | state     | Open    | Answer of an asked party           | other Answer                          | round due       |
//! |-----------|---------|------------------------------------|---------------------------------------|-----------------|
//! | new       | opened  | refused: unknown debate            | refused                               | -               |
//! | round n   | ignored | answered; the last one closes the  | answer_set_aside (late, repeated), or | closes the      |
//! |           |         | round: round_closed or resolved    | refused (no party, not asked)         | round           |
//! | resolved  | ignored | answer_set_aside (late)            | answer_set_aside or refused           | ignored         |
//!
//! Once it is resolved, what [proved](proved) right can be said, once; before that it is refused.
//!
//! **When a round settles a conflict.** The specification's rule, `agreements >= answers - 1`, is met by no answer and by
//! one. Here a round settles when at least `answers_min` (2 or more) parties answered and either all parties hold the
//! same position, or all answers but one agreed with a peer and one position is held by more parties than any other.
//! So two parties that politely adopt each other's position have settled nothing.
//!
//! A debate that began with a challenge, and one whose discussion settled nothing that the policy takes for settled, is on
//! the [ladder](crate::aggregates::escalation).

use concord_events::{Deadline, DeadlineElapsed, DebateEvent, StoredEvent};
use std::collections::BTreeMap;

use concord_wire::payload::{Answer, Credibility, OpenDebate, Precedent};
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp, Token};

mod close;
mod decide;
mod effects;
mod ground_truth;
mod position;
mod resolution;
mod state;
pub mod verdicts;

pub(crate) use close::Ended;
pub(crate) use decide::set_aside;
pub use ground_truth::{Standing, ToldOutcome};
pub(crate) use resolution::Resolving;
pub use state::{DebateState, Heard};

use crate::aggregates::escalation::{self, Order, Said};
use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

/// The debate machine.
#[derive(Debug, Clone, Copy)]
pub struct DebateMachine;

/// What can be asked of a debate.
#[derive(Debug, Clone)]
pub enum DebateInput {
    /// Open it.
    Open(Box<Opening>),
    /// A party's answer.
    Answer(Box<GivenAnswer>),
    /// Something said on the ladder.
    Said(Box<Said>),
    /// What the queue of people, a gate or an operator does to it.
    Order(Box<Order>),
    /// What proved right, said after the debate.
    Outcome(Box<ToldOutcome>),
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
}

/// A request to open a debate, with what is known from before where the policy needs it.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// How far each party is to be believed.
    pub credibility: BTreeMap<AgentId, Credibility>,
    /// Earlier debates like this one, the latest first.
    pub precedents: Vec<Precedent>,
}

/// A request to open a debate.
#[derive(Debug, Clone)]
pub struct Opening {
    /// What is asked.
    pub request: OpenDebate,
    /// What is known from before.
    pub known: Known,
}

impl Opening {
    /// A debate that needs nothing from before.
    pub fn of(request: OpenDebate) -> Self {
        Self {
            request,
            known: Known::default(),
        }
    }
}

/// An answer as it came in.
#[derive(Debug, Clone)]
pub struct GivenAnswer {
    /// Who answers.
    pub agent_id: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// Sequence of the fact whose question is answered, where the answer names the question.
    pub question_sequence: Option<u64>,
    /// The round that the answer says it belongs to.
    pub round: Option<u32>,
    /// Whether the message type is `agreement`.
    pub is_agreement: bool,
    /// The envelope's confidence.
    pub confidence: Option<f64>,
    /// The answer.
    pub answer: Answer,
}

/// Name of the deadline of a round.
pub fn round_name(round: u32) -> Token {
    Token::numbered("round", round)
}

/// What a debate waits for.
fn deadlines(round: u32, due: Option<Timestamp>) -> Vec<Deadline> {
    due.map(|due| Deadline {
        name: round_name(round),
        due,
    })
    .into_iter()
    .collect()
}

impl Machine for DebateMachine {
    type State = DebateState;
    type Event = DebateEvent;
    type Input = DebateInput;

    fn decide(
        state: &DebateState,
        context: &Context,
        input: &DebateInput,
    ) -> Decision<DebateEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut DebateState, record: StoredEvent<DebateEvent>) {
        state.apply(record);
    }

    fn deadlines(state: &DebateState) -> Vec<Deadline> {
        if state.outcome.is_some() {
            return Vec::new();
        }
        match &state.ladder {
            Some(ladder) => ladder.waits_for.clone(),
            None => deadlines(state.round, state.due),
        }
    }

    fn deadlines_after(state: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<Deadline> {
        match &record.event {
            DebateEvent::Opened(opened) if opened.terms.challenge.is_some() => {
                opened.waits_for.clone()
            }
            DebateEvent::Opened(opened) => deadlines(1, opened.due),
            DebateEvent::RoundClosed(closed) => deadlines(closed.next_round, Some(closed.due)),
            DebateEvent::Resolved(_) | DebateEvent::AwaitsGate(_) => Vec::new(),
            DebateEvent::Acknowledged(acknowledged) => acknowledged.waits_for.clone(),
            DebateEvent::EvidenceGiven(given) => given.waits_for.clone(),
            DebateEvent::Escalated(escalated) => escalated.waits_for.clone(),
            DebateEvent::OpinionGiven(given) => given.waits_for.clone(),
            DebateEvent::Reminded(reminded) => reminded.waits_for.clone(),
            DebateEvent::FellBack(fell) => fell.waits_for.clone(),
            DebateEvent::DeadlinesMoved(moved) => moved.waits_for.clone(),
            DebateEvent::Answered(_)
            | DebateEvent::AnswerSetAside(_)
            | DebateEvent::Clarified(_)
            | DebateEvent::Assigned(_)
            | DebateEvent::Unassigned(_)
            | DebateEvent::RulingSetAside(_)
            | DebateEvent::OutcomeKnown(_) => Self::deadlines(state),
        }
    }

    fn effects(record: &StoredEvent<DebateEvent>) -> Vec<Effect> {
        let mut effects = effects::effects(record);
        if let Ok(debate_id) = DebateId::new(record.meta.id.as_str()) {
            effects.extend(escalation::effects(&debate_id, &record.event));
        }
        effects
    }

    fn case_of(record: &StoredEvent<DebateEvent>) -> Option<CaseId> {
        match &record.event {
            DebateEvent::Opened(opened) => Some(opened.case_id.clone()),
            DebateEvent::AnswerSetAside(aside) => Some(aside.case_id.clone()),
            DebateEvent::RoundClosed(closed) => Some(closed.case_id.clone()),
            DebateEvent::Resolved(resolved) => Some(resolved.case_id.clone()),
            DebateEvent::Acknowledged(acknowledged) => Some(acknowledged.case_id.clone()),
            DebateEvent::Clarified(clarified) => Some(clarified.case_id.clone()),
            DebateEvent::EvidenceGiven(given) => Some(given.case_id.clone()),
            DebateEvent::Escalated(escalated) => Some(escalated.case_id.clone()),
            DebateEvent::OpinionGiven(given) => Some(given.case_id.clone()),
            DebateEvent::Assigned(assigned) => Some(assigned.case_id.clone()),
            DebateEvent::Unassigned(unassigned) => Some(unassigned.case_id.clone()),
            DebateEvent::Reminded(reminded) => Some(reminded.case_id.clone()),
            DebateEvent::RulingSetAside(aside) => Some(aside.case_id.clone()),
            DebateEvent::FellBack(fell) => Some(fell.case_id.clone()),
            DebateEvent::AwaitsGate(awaits) => Some(awaits.case_id.clone()),
            DebateEvent::DeadlinesMoved(moved) => Some(moved.case_id.clone()),
            DebateEvent::OutcomeKnown(known) => Some(known.case_id.clone()),
            DebateEvent::Answered(_) => None,
        }
    }

    fn creates(input: &DebateInput) -> bool {
        matches!(input, DebateInput::Open(_))
    }
}

#[cfg(test)]
mod tests;
