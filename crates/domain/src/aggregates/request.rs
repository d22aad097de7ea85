//! A request of one agent to another: opened once, ended once, whoever is killed meanwhile. Owned by the coordinator.
//!
//! The agents speak with each other directly; this machine hears them. What it adds is the end: a request that nobody
//! answers in time ends in an `error` to whoever asked.
//!
//! | state    | Ask                       | Acknowledge    | Answer in time       | Answer late [6] | deadline passes           |
//! |----------|---------------------------|----------------|----------------------|-----------------|---------------------------|
//! | unknown  | opened, or failed [1]     | heard_early    | heard_early          | heard_early     | -                         |
//! | early    | opened, or answered       | ignored        | ignored              | ignored         | -                         |
//! | open     | ignored, or refused [2]   | acknowledged   | answered             | answered_late   | failed, or answered [3]   |
//! | ended    | ignored, or refused [2][5] | ignored        | answered_late [4]    | answered_late [4] | ignored                 |
//!
//! [1] Failed at once when the request cannot be carried out: the reason is the caller's to find ([`Refusal`]). [2] A
//! repetition is ignored; another request under the same id is refused. [3] Whoever handles the deadline looks first for an
//! answer that is stored and not handled yet: what was in time counts, whatever waits in a queue. [4] Up to
//! [`LATE_MAX`]; more are counted and not recorded. [5] A request without an id of its own that is made again in the same
//! words is a new one once the last has ended: opened, or failed [1]. [6] So is one that was kept from who asked because it came
//! too late, whenever that is heard; of a request that is not known it is ignored.
//!
//! *In time* is told by when the broker stored the answer, not by when it is handled. Only whoever was asked can answer;
//! of `_any`, whoever is first.

use concord_events::{
    Deadline, DeadlineElapsed, HeardAnswer, RequestAcknowledged, RequestAnswered, RequestEvent,
    RequestFailed, RequestOpened, StoredEvent,
};
use concord_wire::{AgentId, CaseId, ErrorCode, MessageId, Timestamp, Token, without_place};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

pub mod admissibility;
mod decide;
mod effects;

pub use decide::is_asked;

/// Name of the deadline for the answer.
pub const ANSWER: &str = "answer";
/// Name of the deadline for the acknowledgement.
pub const ACKNOWLEDGE: &str = "acknowledge";
/// How long an answer may take when nothing is said, in milliseconds (specification 5).
pub const ANSWER_MS: u64 = 30_000;
/// The same for a request with a callback, which is acknowledged at once.
pub const COMPLETION_MS: u64 = 3_600_000;
/// How long the acknowledgement of a request with a callback may take, in milliseconds.
pub const ACKNOWLEDGE_MS: u64 = 30_000;
/// The latest deadline that can be asked for, from when the request was stored, in milliseconds: thirty days.
pub const DUE_MAX_MS: u64 = 30 * 86_400_000;
/// Late answers that are recorded of one request.
pub const LATE_MAX: usize = 16;

/// The request machine.
#[derive(Debug, Clone, Copy)]
pub struct RequestMachine;

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestState {
    /// What was asked; none before it is known.
    pub opened: Option<RequestOpened>,
    /// Who will answer later.
    pub acknowledged: Option<RequestAcknowledged>,
    /// What was heard before the request was read.
    pub early: Vec<HeardAnswer>,
    /// How it ended.
    pub ended: Option<Ended>,
    /// Messages of late answers.
    pub late: Vec<MessageId>,
}

impl RequestState {
    /// Whether the fact is of a request in the same words as one that has ended.
    fn is_asked_again_by(&self, event: &RequestEvent) -> bool {
        let Some(opened) = self.opened.as_ref().filter(|_| self.ended.is_some()) else {
            return false;
        };
        event
            .request()
            .is_some_and(|request| request.request_id != opened.request_id)
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By this answer.
    Answered(MessageId),
    /// Without one.
    Failed(ErrorCode),
}

/// What can be asked of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestInput {
    /// Somebody asks.
    Ask {
        /// What, with its times.
        opened: Box<RequestOpened>,
        /// Why it cannot be carried out.
        refusal: Option<Refusal>,
    },
    /// Whoever is asked has acknowledged it, or answers it. An acknowledgement has no contents.
    Hear(Box<Said>),
    /// A deadline has passed.
    Elapsed {
        /// Which one.
        elapsed: DeadlineElapsed,
        /// An answer that was stored in time and not handled yet.
        unread: Option<Box<HeardAnswer>>,
    },
}

/// An acknowledgement or an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It had an answer when the time was over, which was kept from who asked: that is told the end by us.
    Kept(HeardAnswer),
    /// It will answer later.
    Acknowledgement(RequestAcknowledged),
    /// It answers.
    Answer(HeardAnswer),
}

/// Why a request cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// As a code.
    pub code: ErrorCode,
    /// The place in the request that is wrong, where one is.
    pub pointer: String,
    /// As a sentence.
    pub why: String,
    /// What to do.
    pub suggestion: String,
}

/// The aggregate of a request: the same for its answers, which name sender and message. Of a request without an id of its own
/// whoever answers may not know where it is stored, so all in the same words are one aggregate, one after the other.
pub fn id_of(from: &AgentId, request_id: &str) -> Token {
    Token::derived(&format!("request/{from}/{}", without_place(request_id)))
}

impl Machine for RequestMachine {
    type State = RequestState;
    type Event = RequestEvent;
    type Input = RequestInput;

    fn decide(
        state: &RequestState,
        context: &Context,
        input: &RequestInput,
    ) -> Decision<RequestEvent> {
        match input {
            RequestInput::Ask { opened, refusal } => decide::ask(state, opened, refusal.as_ref()),
            RequestInput::Hear(said) => decide::hear(state, said),
            RequestInput::Elapsed { elapsed, unread } => {
                decide::elapsed(state, context, elapsed, unread.as_deref())
            }
        }
    }

    fn apply(state: &mut RequestState, record: StoredEvent<RequestEvent>) {
        if state.is_asked_again_by(&record.event) {
            *state = RequestState::default();
        }
        match record.event {
            RequestEvent::Opened(opened) => {
                let acknowledgement = state
                    .early
                    .iter()
                    .find(|early| early.is_acknowledgement() && is_asked(&opened, &early.by));
                state.acknowledged = acknowledgement.map(|early| RequestAcknowledged {
                    by: early.by.clone(),
                    message_id: early.message_id.clone(),
                    at: early.at,
                });
                state.opened = Some(opened);
            }
            RequestEvent::HeardEarly(answer) => state.early.push(answer),
            RequestEvent::Acknowledged(acknowledged) => state.acknowledged = Some(acknowledged),
            RequestEvent::Answered(RequestAnswered {
                request, answer, ..
            }) => {
                state.opened = Some(request);
                state.ended = Some(Ended::Answered(answer.message_id));
            }
            RequestEvent::Failed(RequestFailed {
                request,
                error_code,
                ..
            }) => {
                state.opened = Some(request);
                state.ended = Some(Ended::Failed(error_code));
            }
            RequestEvent::AnsweredLate(late) => state.late.push(late.answer.message_id),
        }
    }

    fn deadlines(state: &RequestState) -> Vec<Deadline> {
        let Some(opened) = state.opened.as_ref().filter(|_| state.ended.is_none()) else {
            return Vec::new();
        };
        let deadline = |name, due: Timestamp| Deadline {
            name: Token::fixed(name),
            due,
        };
        let unacknowledged = opened
            .acknowledge_due
            .filter(|_| state.acknowledged.is_none());
        let acknowledge = unacknowledged.map(|due| deadline(ACKNOWLEDGE, due));
        acknowledge
            .into_iter()
            .chain([deadline(ANSWER, opened.due)])
            .collect()
    }

    fn effects(record: &StoredEvent<RequestEvent>) -> Vec<Effect> {
        effects::effects(&record.event)
    }

    fn case_of(record: &StoredEvent<RequestEvent>) -> Option<CaseId> {
        record.event.request()?.case_id.clone()
    }

    fn creates(input: &RequestInput) -> bool {
        matches!(input, RequestInput::Ask { .. })
    }

    const MUST_END: bool = true;
    // Where a request is answered before it is read, the answer is heard first.
    const MAY_BEGIN_LATER: bool = true;

    fn begins(event: &RequestEvent) -> bool {
        matches!(
            event,
            RequestEvent::HeardEarly(_) | RequestEvent::Opened(_) | RequestEvent::Failed(_)
        )
    }

    fn ends(event: &RequestEvent) -> bool {
        matches!(event, RequestEvent::Answered(_) | RequestEvent::Failed(_))
    }

    fn may_follow_end(event: &RequestEvent) -> bool {
        matches!(event, RequestEvent::AnsweredLate(_))
    }

    fn begins_again(event: &RequestEvent) -> bool {
        // A request without an id of its own may be made again in the same words.
        let begins = matches!(event, RequestEvent::Opened(_) | RequestEvent::Failed(_));
        begins
            && event
                .request()
                .is_some_and(|request| request.request_id.is_unnamed())
    }

    fn may_rest(state: &RequestState) -> bool {
        // An early answer to a request that nobody made waits for nothing.
        state.opened.is_none()
    }
}

#[cfg(test)]
mod tests;
