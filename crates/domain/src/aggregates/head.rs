//! The head of the log: a running digest of everything that is stored. Owned by the escalation
//! timer.
//!
//! | state | input | event |
//! |---|---|---|
//! | any | a head that follows the last one | `advanced` |
//! | any | a head that follows another: a replica was faster | none |
//!
//! Of a stream that was lost and made anew, the next interval begins at 1 again.

use concord_events::{Head, HeadEvent, StoredEvent};
use concord_wire::Token;
use serde::{Deserialize, Serialize};

use crate::assurance::evidence::digest_of;
use crate::machine::{Carry, Context, Decision, Ignored, Machine, forgetting};

/// The state machine of the head.
#[derive(Debug, Clone, Copy)]
pub struct HeadMachine;

/// The state: the last head.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeadState {
    /// The last head; none before the first.
    pub last: Option<Head>,
}

/// The id of the one head of an installation.
pub fn head_id() -> Token {
    Token::fixed("log")
}

/// The input: a head that was made from what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance(pub Head);

impl Machine for HeadMachine {
    type State = HeadState;
    type Event = HeadEvent;
    type Input = Advance;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    fn state_bytes_max(_: &HeadState) -> usize {
        forgetting(0)
    }

    fn decide(state: &HeadState, _: &Context, Advance(head): &Advance) -> Decision<HeadEvent> {
        if wrong_place(state, head).is_some() {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        Decision::Append(HeadEvent::Advanced(head.clone()))
    }

    fn apply(state: &mut HeadState, record: StoredEvent<HeadEvent>) {
        let HeadEvent::Advanced(head) = record.event;
        state.last = Some(head);
    }

    fn misplaced(before: &HeadState, HeadEvent::Advanced(head): &HeadEvent) -> Option<String> {
        let digest = digest_of(head);
        if head.digest != digest {
            return Some(format!(
                "Its digest is {} and should be {digest}.",
                head.digest
            ));
        }
        wrong_place(before, head)
    }
}

/// Why a head does not follow the last one.
fn wrong_place(state: &HeadState, head: &Head) -> Option<String> {
    let last = state.last.as_ref();
    let number = last.map_or(1, |last| last.number + 1);
    if head.number != number {
        return Some(format!("It is number {}, not {number}.", head.number));
    }
    if head.previous.as_ref() != last.map(|last| &last.digest) {
        return Some(format!(
            "It follows another head than number {}.",
            number - 1
        ));
    }
    head.streams.iter().find_map(|interval| {
        let before = last.and_then(|last| {
            last.streams
                .iter()
                .find(|before| before.stream == interval.stream)
        });
        let first = before.map_or(1, |before| before.last_sequence + 1);
        // That a stream was made anew hides nothing: what it held before is missed by whoever has kept a head over it.
        (![first, 1].contains(&interval.first_sequence)).then(|| {
            let stream = interval.stream.as_str();
            format!(
                "Its interval of {stream} begins at {}, not {first}.",
                interval.first_sequence
            )
        })
    })
}

#[cfg(test)]
mod tests;
