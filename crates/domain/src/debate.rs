//! A debate: bounded rounds of discussion about one conflict, then the vote. Owned by the debate facilitator.
//!
//! | state     | Open    | Answer of an asked party           | other Answer                          | round due       |
//! |-----------|---------|------------------------------------|---------------------------------------|-----------------|
//! | new       | opened  | refused: unknown debate            | refused                               | -               |
//! | round n   | ignored | answered; the last one closes the  | answer_set_aside (late, repeated), or | closes the      |
//! |           |         | round: round_closed or resolved    | refused (no party, not asked)         | round           |
//! | resolved  | ignored | answer_set_aside (late)            | answer_set_aside or refused           | ignored         |
//!
//! **When a round settles a conflict.** The specification's rule, `agreements >= answers - 1`, is met by no answer and by
//! one. Here a round settles when at least `answers_min` (2 or more) parties answered and either all parties hold the
//! same position, or all answers but one agreed with a peer and one position is held by more parties than any other.
//! So two parties that politely adopt each other's position have settled nothing.

use concord_protocol::event::{Deadline, DeadlineElapsed, DebateEvent, Record};
use concord_protocol::payload::{Answer, OpenDebate};
use concord_protocol::{AgentId, CaseId, MessageId, Timestamp, Token};

mod close;
mod decide;
mod effects;
mod position;
mod state;

pub(crate) use close::Ended;
pub use state::{DebateState, Heard};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

/// The debate machine.
#[derive(Debug, Clone, Copy)]
pub struct DebateMachine;

/// What can be asked of a debate.
#[derive(Debug, Clone)]
pub enum DebateInput {
    /// Open it.
    Open(Box<OpenDebate>),
    /// A party's answer.
    Answer(Box<GivenAnswer>),
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
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
    due.map(|due| Deadline { name: round_name(round), due }).into_iter().collect()
}

impl Machine for DebateMachine {
    type State = DebateState;
    type Event = DebateEvent;
    type Input = DebateInput;

    fn decide(state: &DebateState, context: &Context, input: &DebateInput) -> Decision<DebateEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut DebateState, record: Record<DebateEvent>) {
        state.apply(record);
    }

    fn deadlines(state: &DebateState) -> Vec<Deadline> {
        deadlines(state.round, state.due.filter(|_| state.outcome.is_none()))
    }

    fn deadlines_after(state: &DebateState, record: &Record<DebateEvent>) -> Vec<Deadline> {
        match &record.event {
            DebateEvent::Opened(opened) => deadlines(1, opened.due),
            DebateEvent::RoundClosed(closed) => deadlines(closed.next_round, Some(closed.due)),
            DebateEvent::Resolved(_) => Vec::new(),
            DebateEvent::Answered(_) | DebateEvent::AnswerSetAside(_) => Self::deadlines(state),
        }
    }

    fn effects(record: &Record<DebateEvent>) -> Vec<Effect> {
        effects::effects(record)
    }

    fn case_of(record: &Record<DebateEvent>) -> Option<CaseId> {
        match &record.event {
            DebateEvent::Opened(opened) => Some(opened.case_id.clone()),
            DebateEvent::AnswerSetAside(aside) => Some(aside.case_id.clone()),
            DebateEvent::RoundClosed(closed) => Some(closed.case_id.clone()),
            DebateEvent::Resolved(resolved) => Some(resolved.case_id.clone()),
            DebateEvent::Answered(_) => None,
        }
    }

    fn creates(input: &DebateInput) -> bool {
        matches!(input, DebateInput::Open(_))
    }
}

#[cfg(test)]
mod tests;
