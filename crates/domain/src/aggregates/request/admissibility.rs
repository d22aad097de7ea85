//! Until when an answer to a request counts, and whether the request can be carried out. The
//! coordinator and the agent that is asked both use this, so that a request that the coordinator
//! refuses is not carried out by the agent.

use concord_wire::payload::{Card, Request};
use concord_wire::{Envelope, ErrorCode, Fault, Timestamp};

use super::{ANSWER_MS, COMPLETION_MS, DUE_MAX_MS, Refusal};

/// Until when an answer counts: the earliest deadline that the envelope or the payload states, else
/// [`ANSWER_MS`], or [`COMPLETION_MS`] with a callback. `stored_at` is when the broker stored the
/// request.
pub fn due(envelope: &Envelope, request: &Request, stored_at: Timestamp) -> Timestamp {
    let usual = stored_at.plus_millis(if request.callback_url.is_some() {
        COMPLETION_MS
    } else {
        ANSWER_MS
    });
    [envelope.deadline, request.deadline]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(usual)
}

/// Why nobody can carry out a request that is due at this time; `None` if somebody can.
pub fn refusal(request: &Request, due: Timestamp, stored_at: Timestamp) -> Option<Refusal> {
    match request.check() {
        Err(fault) => Some(refusal_of(fault)),
        Ok(()) => {
            let refusal = impossible_deadline(due, stored_at, DUE_MAX_MS)?;
            // The earlier of two deadlines counts.
            let pointer = match request.deadline == Some(due) {
                true => "/payload/deadline".to_owned(),
                false => refusal.pointer,
            };
            Some(Refusal { pointer, ..refusal })
        }
    }
}

/// How a request differs from what the card of the agent that is asked says about the action;
/// `None` if it fits.
pub fn unfit(card: &Card, request: &Request) -> Option<Refusal> {
    card.check_request(request).err().map(refusal_of)
}

/// A fault as the reason why a request cannot be carried out.
pub fn refusal_of(fault: Fault) -> Refusal {
    Refusal {
        code: fault.code,
        pointer: fault.pointer,
        why: fault.message,
        suggestion: fault.advice,
    }
}

/// Why nobody can keep a deadline of what was stored at `now`: it has passed, or is more than
/// `max_ms` later. `None` if it can be kept.
pub fn impossible_deadline(due: Timestamp, now: Timestamp, max_ms: u64) -> Option<Refusal> {
    let pointer = "/deadline".to_owned();
    if due <= now {
        return Some(Refusal {
            code: ErrorCode::Timeout,
            pointer,
            why: format!("The deadline {due} had passed when the request was stored at {now}."),
            suggestion:
                "Give a deadline in the future; look at the clock of the machine that asks.".into(),
        });
    }
    (due > now.plus_millis(max_ms)).then(|| Refusal {
        code: ErrorCode::InvalidRequest,
        pointer,
        why: format!("The deadline {due} is more than {} s away.", max_ms / 1_000),
        suggestion: "Give an earlier deadline.".into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deadline_is_named_where_it_stands() {
        let now = Timestamp::from_unix_millis(1_000_000);
        let past = Timestamp::from_unix_millis(999_000);
        let request = |deadline: Option<Timestamp>| -> Request {
            serde_json::from_value(json!({ "action": "x", "deadline": deadline })).unwrap()
        };
        for (own, pointer) in [(None, "/deadline"), (Some(past), "/payload/deadline")] {
            let refusal = refusal(&request(own), past, now).unwrap();
            assert_eq!(
                (refusal.code, refusal.pointer.as_str()),
                (ErrorCode::Timeout, pointer)
            );
        }
    }
}
