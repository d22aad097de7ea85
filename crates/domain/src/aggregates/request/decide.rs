//! What to do about an input of a request. The table is in the module above.

use concord_events::{
    DeadlineElapsed, HeardAnswer, RequestAcknowledged, RequestAnswered, RequestAnsweredLate,
    RequestEvent, RequestFailed, RequestOpened,
};
use concord_wire::{AgentId, ErrorCode, Fault, MessageId, Recipient};
use serde_json::Value;

use super::{ACKNOWLEDGE, ANSWER, LATE_MAX, Refusal, Reply, RequestEnd, RequestState};
use crate::aggregates::case::reused_message_id;
use crate::machine::{Context, Decision, Ignored};

type RequestDecision = Decision<RequestEvent>;

pub(super) fn ask(
    state: &RequestState,
    asked: &RequestOpened,
    refusal: Option<&Refusal>,
) -> RequestDecision {
    // Two requests in the same words without ids of their own: while the first waits, one answer is
    // for both.
    let again =
        |opened: &RequestOpened| opened.request_id != asked.request_id && state.ended.is_some();
    let again = match &state.opened {
        Some(opened) if again(opened) => true,
        Some(opened) if opened.digest == asked.digest => {
            return Decision::Ignore(Ignored::Repetition);
        }
        Some(_) => return Decision::Reject(reused_message_id()),
        None => false,
    };
    if let Some(refusal) = refusal {
        return Decision::Append(RequestEvent::Failed(failed(asked, refusal.clone())));
    }
    // Of the replies that came before the request, only those of the agents it asks count. That
    // could not be known earlier.
    let early = if again { [].as_slice() } else { &state.early };
    let answers = early.iter().filter(|early| !early.is_acknowledgement());
    let mut in_time = answers.filter(|early| is_asked(asked, &early.by) && early.at <= asked.due);
    match in_time.next() {
        Some(answer) => Decision::Append(RequestEvent::Answered(answered(asked, answer))),
        None => Decision::Append(RequestEvent::Opened(asked.clone())),
    }
}

pub(super) fn reply(state: &RequestState, reply: &Reply) -> RequestDecision {
    let Some(opened) = &state.opened else {
        return match reply {
            // The sender did not get it, so it must not become the answer.
            Reply::Withheld(_) => Decision::Ignore(Ignored::AlreadyDone),
            Reply::Acknowledgement(_) | Reply::Answer(_) => reply_early(state, reply),
        };
    };
    // A message leads to one event: a reply that came early is not recorded again.
    if state
        .early
        .iter()
        .any(|early| (&early.message_id, &early.by) == (reply.message_id(), reply.by()))
    {
        return Decision::Ignore(Ignored::Repetition);
    }
    let by = reply.by();
    if !is_asked(opened, by) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/correlation_id",
            format!(
                "{by} was not asked: the request is for {}.",
                opened.to.as_str()
            ),
            "Answer only what was asked of you.",
        ));
    }
    match reply {
        Reply::Acknowledgement(acknowledged) => acknowledge(state, opened, acknowledged),
        Reply::Answer(answer) => self::answer(state, opened, answer),
        Reply::Withheld(answer) => late(state, opened, answer),
    }
}

fn reply_early(state: &RequestState, reply: &Reply) -> RequestDecision {
    let early = reply.as_answer();
    let is_known = state
        .early
        .iter()
        .any(|known| (&known.message_id, &known.by) == (&early.message_id, &early.by));
    if is_known || state.early.len() >= LATE_MAX {
        return Decision::Ignore(Ignored::Repetition);
    }
    Decision::Append(RequestEvent::HeardEarly(early))
}

fn acknowledge(
    state: &RequestState,
    opened: &RequestOpened,
    acknowledged: &RequestAcknowledged,
) -> RequestDecision {
    if state.ended.is_some() || state.acknowledged.is_some() || !opened.is_asynchronous() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(RequestEvent::Acknowledged(acknowledged.clone()))
}

fn answer(state: &RequestState, opened: &RequestOpened, answer: &HeardAnswer) -> RequestDecision {
    debug_assert!(
        is_asked(opened, &answer.by),
        "only the agent that was asked answers"
    );
    let repeats =
        matches!(&state.ended, Some(RequestEnd::Answered(by)) if *by == answer.message_id);
    // It answers the earlier request in the same words.
    let for_earlier = opened.request_id.is_derived() && answer.at < opened.asked_at;
    if repeats || for_earlier {
        return Decision::Ignore(Ignored::Repetition);
    }
    if state.ended.is_none() && answer.at <= opened.due {
        return Decision::Append(RequestEvent::Answered(answered(opened, answer)));
    }
    late(state, opened, answer)
}

fn late(state: &RequestState, opened: &RequestOpened, answer: &HeardAnswer) -> RequestDecision {
    if state.late.contains(&answer.message_id) {
        return Decision::Ignore(Ignored::Repetition);
    }
    if state.late.len() >= LATE_MAX {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let late_ms = answer.at.millis_since(opened.due);
    let answer = HeardAnswer {
        payload: Value::Null,
        ..answer.clone()
    };
    Decision::Append(RequestEvent::AnsweredLate(RequestAnsweredLate {
        answer,
        late_ms,
    }))
}

pub(super) fn elapsed(
    state: &RequestState,
    context: &Context,
    elapsed: &DeadlineElapsed,
    unread: Option<&HeardAnswer>,
) -> RequestDecision {
    let open = |opened: &&RequestOpened| match elapsed.name.as_str() {
        _ if state.ended.is_some() => false,
        ANSWER => opened.due == elapsed.due,
        ACKNOWLEDGE => opened.acknowledge_due == Some(elapsed.due) && state.acknowledged.is_none(),
        _ => false,
    };
    let Some(opened) = state.opened.as_ref().filter(open) else {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    };
    let counts = |answer: &&HeardAnswer| is_asked(opened, &answer.by) && answer.at <= opened.due;
    if let Some(answer) = unread.filter(counts) {
        return Decision::Append(RequestEvent::Answered(answered(opened, answer)));
    }
    let refusal = missed(opened, context, elapsed.name.as_str());
    Decision::Append(RequestEvent::Failed(failed(opened, refusal)))
}

/// The reason why a request fails whose deadline with this name has passed.
fn missed(opened: &RequestOpened, context: &Context, deadline: &str) -> Refusal {
    let to = opened.to.as_str();
    let waited_ms = context.now.millis_since(opened.asked_at);
    match deadline {
        ACKNOWLEDGE => Refusal {
            code: ErrorCode::AgentUnavailable,
            pointer: String::new(),
            why: format!("{to} has not acknowledged the request within {waited_ms} ms."),
            suggestion: "Look with `concord agents` whether it is there, and ask again or ask another.".into(),
        },
        _ => Refusal {
            code: ErrorCode::Timeout,
            pointer: String::new(),
            why: format!("{to} has not answered within {waited_ms} ms."),
            suggestion: "Ask again with a later deadline, ask another, or give a callback_url if it takes long.".into(),
        },
    }
}

/// Whether the request is for this agent.
pub fn is_asked(opened: &RequestOpened, by: &AgentId) -> bool {
    match &opened.to {
        Recipient::Agent(agent) => agent == by,
        // Any agent may answer, but not the sender itself.
        _ => opened.from != *by,
    }
}

fn answered(opened: &RequestOpened, answer: &HeardAnswer) -> RequestAnswered {
    let took_ms = answer.at.millis_since(opened.asked_at);
    // The sender has the answer already. It is repeated only for those who are told of it later.
    let payload = if opened.is_asynchronous() {
        answer.payload.clone()
    } else {
        Value::Null
    };
    RequestAnswered {
        request: opened.clone(),
        answer: HeardAnswer {
            payload,
            ..answer.clone()
        },
        took_ms,
    }
}

fn failed(request: &RequestOpened, refusal: Refusal) -> RequestFailed {
    let Refusal {
        code,
        pointer,
        why,
        suggestion,
    } = refusal;
    let recovery_suggestions = vec![suggestion];
    RequestFailed {
        request: request.clone(),
        error_code: code,
        pointer,
        why,
        recovery_suggestions,
    }
}

impl Reply {
    fn by(&self) -> &AgentId {
        match self {
            Self::Acknowledgement(acknowledged) => &acknowledged.by,
            Self::Answer(answer) | Self::Withheld(answer) => &answer.by,
        }
    }

    fn message_id(&self) -> &MessageId {
        match self {
            Self::Acknowledgement(acknowledged) => &acknowledged.message_id,
            Self::Answer(answer) | Self::Withheld(answer) => &answer.message_id,
        }
    }

    fn as_answer(&self) -> HeardAnswer {
        match self {
            Self::Acknowledgement(RequestAcknowledged { by, message_id, at }) => {
                HeardAnswer::acknowledgement(by.clone(), message_id.clone(), *at)
            }
            Self::Answer(answer) | Self::Withheld(answer) => answer.clone(),
        }
    }
}
