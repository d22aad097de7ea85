//! A precedent: how the last debates of one kind about one subject ended. Owned by the debate
//! facilitator; its id follows from kind and subject ([`id_of`]), so that it is found for any similar
//! conflict.
//!
//! | state                               | an entry                                         |
//! |-------------------------------------|--------------------------------------------------|
//! | any                                 | refused: no level from 1 to 5, no or a bad status |
//! | has the same                        | ignored: repetition                              |
//! | has a later one of the same debate  | ignored: already done                            |
//! | has an earlier one of it            | recorded, in its place                           |
//! | fewer than 20 debates               | recorded                                         |
//! | 20 debates, all of them later       | ignored: already done                            |
//! | 20 other debates                    | recorded; the oldest is forgotten                |
//!
//! A provisional decision is recorded when it is made. When a person overrides it, the entry of the
//! override takes its place. Of two entries the one with the later time is the later one; at the same
//! time, the one of the higher level. An entry that would be forgotten at once is not recorded: it may
//! have been recorded before.

use concord_events::{PrecedentEvent, PrecedentRecorded, StoredEvent};
use concord_wire::payload::{ConflictType, Precedent};
use concord_wire::{DebateId, Timestamp, Token};

use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::canonical::normalise;
use crate::rules::size_budget::truncate;

/// Most debates of one precedent; beyond that the oldest are forgotten.
pub const DEBATES_MAX: usize = 20;

/// The state machine of a precedent.
#[derive(Debug, Clone, Copy)]
pub struct PrecedentMachine;

/// The state of a precedent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrecedentState {
    /// One entry for each debate, the oldest first; entries of one instant in the order of their
    /// arrival.
    entries: Vec<Precedent>,
}

impl PrecedentState {
    /// The entry of a debate.
    pub fn of(&self, debate: &DebateId) -> Option<&Precedent> {
        self.entries.iter().find(|entry| entry.debate_id == *debate)
    }

    /// Whether an entry of this time, of a new debate, would be forgotten at once.
    fn is_past(&self, at: Timestamp, most: usize) -> bool {
        self.entries.len() >= most && self.entries.first().is_some_and(|oldest| at <= oldest.at)
    }

    /// Adds an entry in place of an earlier one of its debate, and forgets the oldest beyond `most`.
    fn keep(&mut self, entry: Precedent, most: usize) {
        self.entries
            .retain(|earlier| earlier.debate_id != entry.debate_id);
        let place = self.entries.partition_point(|other| other.at <= entry.at);
        self.entries.insert(place, entry);
        let surplus = self.entries.len().saturating_sub(most);
        self.entries.drain(..surplus);
    }
}

/// The newest entries, of at most `most` debates, the newest first.
pub fn recent(state: &PrecedentState, most: usize) -> Vec<&Precedent> {
    state.entries.iter().rev().take(most).collect()
}

/// The id of the precedent for conflicts of this kind about this subject. Spellings of the subject
/// that compare as equal give the same id.
pub fn id_of(kind: ConflictType, subject: &str) -> Token {
    Token::derived(&format!("{}/{}", kind.as_str(), normalise(subject)))
}

/// The JSON pointer of the entry in the message that brings it.
const POINTER: &str = "/payload/precedent";

impl Machine for PrecedentMachine {
    type State = PrecedentState;
    type Event = PrecedentEvent;
    type Input = Precedent;

    fn decide(state: &PrecedentState, _: &Context, input: &Precedent) -> Decision<PrecedentEvent> {
        if let Err(fault) = input.check(POINTER) {
            return Decision::Reject(fault);
        }
        let entry = Precedent {
            topic: truncate::topic(&input.topic),
            position: truncate::topic(&input.position),
            ..input.clone()
        };
        match state.of(&entry.debate_id) {
            Some(known) if *known == entry => Decision::Ignore(Ignored::Repetition),
            Some(known) if (known.at, known.level) > (entry.at, entry.level) => {
                Decision::Ignore(Ignored::AlreadyDone)
            }
            None if state.is_past(entry.at, DEBATES_MAX) => Decision::Ignore(Ignored::AlreadyDone),
            _ => Decision::Append(PrecedentEvent::Recorded(PrecedentRecorded {
                precedent: entry,
            })),
        }
    }

    fn apply(state: &mut PrecedentState, record: StoredEvent<PrecedentEvent>) {
        let PrecedentEvent::Recorded(recorded) = record.event;
        state.keep(recorded.precedent, DEBATES_MAX);
    }
}

#[cfg(test)]
mod tests;
