//! A question to the group: opened when it is decided whom it wakes, and ended once, in one answer or one error to whoever asked.
//! Owned by the coordinator.
//!
//! The agents answer whoever asked directly; this machine hears them. It adds what no agent can: one answer of all, and an end.
//!
//! | input       | unknown                  | open                                                   | with the synthesiser       | ended        |
//! |-------------|--------------------------|--------------------------------------------------------|----------------------------|--------------|
//! | Ask         | opened, or opened and ended [1] | ignored                                         | ignored                    | ignored; opened: other words' turn [2] |
//! | Answer      | ignored [3]              | answered; refused: not asked, a second one, too late   | refused                    | refused [4]  |
//! | Elapsed     | ignored                  | elapsed [5]                                            | elapsed                    | ignored      |
//! | Synthesis   | ignored                  | refused                                                | synthesised; refused: another agent | refused [4] |
//!
//! [1] Nobody is woken, the deadline cannot be kept, or the asker is suspended. [2] Only a question without an id of its own: in the
//! same words it has the same id. [3] The caller looks for what was stored before the question was opened. [4] What was taken
//! already is ignored. [5] With the answers that were stored in time and not handled yet: an answer in time counts.
//!
//! What follows from an event ([`conclude`]) depends on the mode. The question ends when everyone who was asked has answered or
//! declined, with the first answer ([`AnswerMode::FirstResponder`](concord_wire::payload::AnswerMode)), or when its time is over. With a synthesiser the time for
//! answers is two thirds of the whole ([`ANSWERS_SHARE`]), and the rest is the synthesiser's.

use concord_events::{
    Deadline, DeadlineElapsed, QuestionBounds, QuestionEvent, QuestionOpened, StoredEvent,
    WakeDecided,
};
use concord_wire::payload::GivenAnswer;
use concord_wire::{AgentId, CaseId, MessageId, MessageType, Timestamp, Token, without_sequence};

use crate::aggregates::person::Authority;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

mod conclude;
mod decide;
mod effects;
mod opening;

pub use conclude::weigh;
pub use opening::{ANSWERS_SHARE, ASKED_MAX};

/// The name of the deadline for the answers of those who are asked.
pub const ANSWERS: &str = "answers";
/// The name of the deadline for the synthesiser.
pub const SYNTHESIS: &str = "synthesis";

/// The state machine of a question to the group.
#[derive(Debug, Clone, Copy)]
pub struct QuestionMachine;

/// The state of a question to the group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuestionState {
    /// The question; `None` before it was opened.
    pub opened: Option<QuestionOpened>,
    /// The answers so far, those that decline among them, in the order in which they were handled.
    pub answers: Vec<GivenAnswer>,
    /// The synthesiser, where it has been given the answers.
    pub synthesis: Option<PendingSynthesis>,
    /// The message of the synthesiser that was taken.
    pub synthesised: Option<MessageId>,
    /// Whether it has ended.
    pub is_ended: bool,
}

/// A synthesiser that has been given the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSynthesis {
    /// The synthesiser.
    pub by: AgentId,
    /// The time until which it must have answered.
    pub due: Timestamp,
    /// The sequence of the event by which it was asked.
    pub sequence: u64,
}

impl QuestionState {
    /// The question, while answers of those who are asked count.
    pub fn awaiting_answers(&self) -> Option<&QuestionOpened> {
        let is_open = !self.is_ended && self.synthesis.is_none();
        self.opened.as_ref().filter(|_| is_open)
    }

    /// Whether an agent has answered or declined.
    pub fn has_answer_of(&self, agent: &AgentId) -> bool {
        self.answers.iter().any(|answer| answer.by == *agent)
    }
}

/// A question of which it was decided whom it wakes.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// The decision, with what the question says about how it is to be answered.
    pub decided: WakeDecided,
    /// What the asker may do.
    pub sender: Authority,
    /// What the installation allows.
    pub bounds: QuestionBounds,
}

/// One input of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionInput {
    /// It was decided whom it wakes.
    Ask(Box<Asking>),
    /// An agent answers.
    Answer(Box<GivenAnswer>),
    /// A deadline has passed.
    Elapsed {
        /// The deadline.
        elapsed: DeadlineElapsed,
        /// Answers that are stored and were not handled before.
        unread: Vec<GivenAnswer>,
    },
    /// The synthesiser answers.
    Synthesis {
        /// Its answer.
        answer: Box<GivenAnswer>,
        /// The sequence of the event from which the message follows that it answers.
        asked: u64,
    },
}

/// The id of a question. Answers lead to the same id, because they name the asker and the message. A question without an id of its
/// own shares its aggregate with all in the same words, one after the other.
pub fn id_of(asker: &AgentId, message_id: &str) -> Token {
    Token::derived(&format!(
        "question/{asker}/{}",
        without_sequence(message_id)
    ))
}

/// Whether a message of this type may be a question to the group: not every message of such a type is.
pub fn may_be(kind: &MessageType) -> bool {
    matches!(
        kind,
        MessageType::GroupQuery
            | MessageType::PeerRequest
            | MessageType::Question
            | MessageType::Unknown(_)
    )
}

impl Machine for QuestionMachine {
    type State = QuestionState;
    type Event = QuestionEvent;
    type Input = QuestionInput;

    fn decide(
        state: &QuestionState,
        _: &Context,
        input: &QuestionInput,
    ) -> Decision<QuestionEvent> {
        match input {
            QuestionInput::Ask(asking) => opening::ask(state, asking),
            QuestionInput::Answer(answer) => decide::answer(state, answer),
            QuestionInput::Elapsed { elapsed, unread } => decide::elapsed(state, elapsed, unread),
            QuestionInput::Synthesis { answer, asked } => decide::synthesis(state, answer, *asked),
        }
    }

    fn is_taken(state: &QuestionState, id: &MessageId, sender: &AgentId) -> bool {
        let asked = state
            .opened
            .as_ref()
            .map(|one| (&one.message_id, &one.asker));
        let answers = state.answers.iter().map(|one| (&one.message_id, &one.by));
        let mut all = asked.into_iter().chain(answers);
        all.any(|(used, by)| used == id && by != sender)
    }

    fn apply(state: &mut QuestionState, record: StoredEvent<QuestionEvent>) {
        if let Some(next) = record.event.next() {
            state.synthesis = next
                .synthesise
                .as_ref()
                .map_or(state.synthesis.take(), |asked| {
                    Some(PendingSynthesis {
                        by: asked.to.clone(),
                        due: asked.due,
                        sequence: record.sequence,
                    })
                });
        }
        let ends = record.event.end().is_some();
        match record.event {
            QuestionEvent::Opened(opened) => {
                *state = QuestionState {
                    opened: Some(opened),
                    ..QuestionState::default()
                };
            }
            QuestionEvent::Answered(answered) => state.answers.push(answered.answer),
            QuestionEvent::Elapsed(elapsed) => state.answers.extend(elapsed.answers),
            QuestionEvent::Synthesised(made) => state.synthesised = Some(made.message_id),
        }
        state.is_ended |= ends;
        debug_assert!(
            state.answers.len() <= ASKED_MAX,
            "nobody answers a question twice"
        );
    }

    fn deadlines(state: &QuestionState) -> Vec<Deadline> {
        let Some(opened) = state.opened.as_ref().filter(|_| !state.is_ended) else {
            return Vec::new();
        };
        let (name, due) = match &state.synthesis {
            None => (ANSWERS, opened.answers_due),
            Some(synthesis) => (SYNTHESIS, synthesis.due),
        };
        vec![Deadline {
            name: Token::fixed(name),
            due,
        }]
    }

    fn effects(record: &StoredEvent<QuestionEvent>) -> Vec<Effect> {
        effects::effects(&record.event)
    }

    fn case_of(record: &StoredEvent<QuestionEvent>) -> Option<CaseId> {
        record.event.case_id().cloned()
    }

    fn creates(input: &QuestionInput) -> bool {
        matches!(input, QuestionInput::Ask(_))
    }

    const MUST_END: bool = true;

    fn begins(event: &QuestionEvent) -> bool {
        matches!(event, QuestionEvent::Opened(_))
    }

    fn ends(event: &QuestionEvent) -> bool {
        event.end().is_some()
    }

    fn may_follow_end(_: &QuestionEvent) -> bool {
        false
    }

    fn begins_again(event: &QuestionEvent) -> bool {
        matches!(event, QuestionEvent::Opened(opened) if opened.message_id.is_derived())
    }

    fn misplaced(before: &QuestionState, event: &QuestionEvent) -> Option<String> {
        decide::misplaced(before, event)
    }
}

#[cfg(test)]
mod tests;
