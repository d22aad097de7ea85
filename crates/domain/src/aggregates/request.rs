//! A request of one agent to another: opened once and ended once, even when services are killed.
//! Owned by the coordinator.
//!
//! Agents exchange requests and replies directly; this machine records them. It adds the end: a
//! request that nobody answers in time ends with an `error` to its sender.
//!
//! | state    | Ask                       | Acknowledge    | Answer in time       | Answer late [6] | deadline passes           |
//! |----------|---------------------------|----------------|----------------------|-----------------|---------------------------|
//! | unknown  | opened, or failed [1]     | heard_early    | heard_early          | heard_early     | -                         |
//! | early    | opened, or answered       | ignored        | ignored              | ignored         | -                         |
//! | open     | ignored, or refused [2]   | acknowledged   | answered             | answered_late   | failed, or answered [3]   |
//! | ended    | ignored, or refused [2][5] | ignored        | answered_late [4]    | answered_late [4] | ignored                 |
//!
//! [1] Failed at once when the request cannot be carried out; the caller finds the reason
//! ([`Refusal`]). [2] A repetition is ignored; another request under the same id is refused. [3]
//! The caller of the deadline looks first for an answer that is stored and not handled yet: an
//! answer in time counts, however long it waits in a queue. [4] Up to [`LATE_MAX`]; more are
//! counted and not recorded. [5] A request without an id of its own that is made again in the same
//! words is a new request once the last one has ended: opened, or failed [1]. [6] Also an answer
//! that came too late and was kept from the sender of the request, whenever it is handled; it is
//! ignored for an unknown request.
//!
//! *In time* depends on when the broker stored the answer, not on when it is handled. Only the
//! agent that was asked can answer; a request to `_any` is answered by the first agent that does.

use concord_events::{
    Deadline, DeadlineElapsed, HeardAnswer, RequestAcknowledged, RequestAnswered, RequestEvent,
    RequestFailed, RequestOpened, StoredEvent,
};
use concord_wire::{AgentId, CaseId, ErrorCode, MessageId, Timestamp, Token, without_sequence};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine};

pub mod admissibility;
mod decide;
mod effects;

pub use decide::is_asked;

/// The name of the deadline for the answer.
pub const ANSWER: &str = "answer";
/// The name of the deadline for the acknowledgement.
pub const ACKNOWLEDGE: &str = "acknowledge";
/// How long an answer may take when the request states no deadline, in milliseconds (specification
/// 5).
pub const ANSWER_MS: u64 = 30_000;
/// The same for a request with a callback, which is acknowledged first.
pub const COMPLETION_MS: u64 = 3_600_000;
/// How long the acknowledgement of a request with a callback may take, in milliseconds.
pub const ACKNOWLEDGE_MS: u64 = 30_000;
/// The latest deadline that a request may state, in milliseconds after it was stored: thirty days.
pub const DUE_MAX_MS: u64 = 30 * 86_400_000;
/// How many late answers are recorded for one request.
pub const LATE_MAX: usize = 16;

/// The state machine of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestMachine;

/// The state of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestState {
    /// The request; `None` before it was read.
    pub opened: Option<RequestOpened>,
    /// The acknowledgement of the agent that will answer later.
    pub acknowledged: Option<RequestAcknowledged>,
    /// Answers and acknowledgements that came before the request was read.
    pub early: Vec<HeardAnswer>,
    /// How it ended.
    pub ended: Option<RequestEnd>,
    /// The ids of late answers.
    pub late: Vec<MessageId>,
}

impl RequestState {
    /// Whether the event begins a request in the same words as this one, which has ended.
    fn is_made_again_by(&self, event: &RequestEvent) -> bool {
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
pub enum RequestEnd {
    /// The message with this id answered it.
    Answered(MessageId),
    /// It failed with this code.
    Failed(ErrorCode),
}

/// One input of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestInput {
    /// An agent makes the request.
    Ask {
        /// The request with its deadlines.
        opened: Box<RequestOpened>,
        /// Why it cannot be carried out, if so.
        refusal: Option<Refusal>,
    },
    /// The agent that was asked acknowledges or answers the request.
    Reply(Box<Reply>),
    /// A deadline has passed.
    Elapsed {
        /// The deadline.
        elapsed: DeadlineElapsed,
        /// An answer that was stored in time and not handled yet.
        unread: Option<Box<HeardAnswer>>,
    },
}

/// A reply of the agent that was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An answer that came too late and was therefore kept from the sender of the request. The
    /// coordinator tells the sender the end.
    Withheld(HeardAnswer),
    /// The agent will answer later.
    Acknowledgement(RequestAcknowledged),
    /// The answer.
    Answer(HeardAnswer),
}

/// Why a request cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The error code.
    pub code: ErrorCode,
    /// The JSON pointer of the field that is wrong, where one is.
    pub pointer: String,
    /// The reason as a sentence.
    pub why: String,
    /// What the sender can do.
    pub suggestion: String,
}

/// The id of a request's aggregate. Replies lead to the same id, because they name the sender and
/// the message. A request without an id of its own shares its aggregate with all requests in the
/// same words, one after the other: whoever answers may not know where it is stored.
pub fn id_of(from: &AgentId, request_id: &str) -> Token {
    Token::derived(&format!("request/{from}/{}", without_sequence(request_id)))
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
            RequestInput::Reply(reply) => decide::reply(state, reply),
            RequestInput::Elapsed { elapsed, unread } => {
                decide::elapsed(state, context, elapsed, unread.as_deref())
            }
        }
    }

    fn is_taken(state: &RequestState, id: &MessageId, sender: &AgentId) -> bool {
        let asked = state
            .opened
            .as_ref()
            .map(|one| (&one.request_id, &one.from));
        let early = state.early.iter().map(|one| (&one.message_id, &one.by));
        let acknowledged = state
            .acknowledged
            .as_ref()
            .map(|one| (&one.message_id, &one.by));
        let mut all = asked.into_iter().chain(early).chain(acknowledged);
        all.any(|(used, by)| used == id && by != sender)
    }

    fn apply(state: &mut RequestState, record: StoredEvent<RequestEvent>) {
        if state.is_made_again_by(&record.event) {
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
                debug_assert!(
                    !answer.is_acknowledgement(),
                    "an acknowledgement answers nothing"
                );
                state.opened = Some(request);
                state.ended = Some(RequestEnd::Answered(answer.message_id));
            }
            RequestEvent::Failed(RequestFailed {
                request,
                error_code,
                ..
            }) => {
                state.opened = Some(request);
                state.ended = Some(RequestEnd::Failed(error_code));
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
    // Where a reply is handled before its request, the reply begins the aggregate.
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
                .is_some_and(|request| request.request_id.is_derived())
    }

    fn may_rest(state: &RequestState) -> bool {
        // An early reply to a request that nobody made waits for nothing.
        state.opened.is_none()
    }
}

#[cfg(test)]
mod tests;
