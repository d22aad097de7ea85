//! What a request says of itself: until when an answer counts, and whether it can be carried out. Whoever hears a request and
//! whoever is asked come to the same, so that what is refused is not carried out as well.

use concord_wire::payload::{Card, Request};
use concord_wire::{Envelope, ErrorCode, Fault, Timestamp};

use super::{ANSWER_MS, COMPLETION_MS, DUE_MAX_MS, Refusal};

/// Until when an answer counts: the earliest deadline that is stated, in the envelope or in the payload, else half a minute, or
/// an hour with a callback. `stored_at` is when the broker stored the request.
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

/// Why a request that is due then cannot be carried out by anybody, if so.
pub fn refusal(request: &Request, due: Timestamp, stored_at: Timestamp) -> Option<Refusal> {
    match request.check() {
        Err(fault) => Some(refusal_of(fault)),
        Ok(()) => impossible_deadline(due, stored_at),
    }
}

/// Why a request is not what the card of the agent that is asked says of the action, if so.
pub fn unfit(card: &Card, request: &Request) -> Option<Refusal> {
    card.check_request(request).err().map(refusal_of)
}

/// Why a request cannot be carried out, as what is wrong with it.
pub fn refusal_of(fault: Fault) -> Refusal {
    Refusal {
        code: fault.code,
        pointer: fault.pointer,
        why: fault.message,
        suggestion: fault.advice,
    }
}

fn impossible_deadline(due: Timestamp, now: Timestamp) -> Option<Refusal> {
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
    (due > now.plus_millis(DUE_MAX_MS)).then(|| Refusal {
        code: ErrorCode::InvalidRequest,
        pointer,
        why: format!(
            "The deadline {due} is more than {} days away.",
            DUE_MAX_MS / 86_400_000
        ),
        suggestion: "Give an earlier deadline.".into(),
    })
}
