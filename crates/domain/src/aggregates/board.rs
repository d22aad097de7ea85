//! The board of a case: named entries that everybody in the case reads and writes. Owned by the
//! coordinator; its id is that of the case.
//!
//! | entry of the name | Put: based on its version | Put: based on another version | Put: the same message again |
//! |-------------------|---------------------------|-------------------------------|-----------------------------|
//! | none (version 0)  | put: version 1 [1]        | refused [2]                   | -                           |
//! | version n         | put: version n + 1 [1]    | refused [2]                   | ignored: repetition [3]     |
//!
//! [1] Refused where the board, or what its author wrote, would go beyond its bounds. [2] The refusal
//! says the version that stands and who wrote it: the sender reads it, and writes again. [3] Another
//! message of the same sender under the same id is refused.
//!
//! Two who write at the same time cannot both have read the last version, so none overwrites what it
//! has not seen. Nothing is taken away: an entry is emptied by the value null, and its earlier
//! versions remain in the events. Whether somebody is in the case is said by
//! [`check_member`](crate::aggregates::case::check_member), which the caller asks first.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{BoardEvent, EntryPut, Heard, StoredEvent};
use concord_wire::payload::notification::BoardChanged;
use concord_wire::payload::{BoardEntry, BoardListing, PutEntry};
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId};
use serde_json::json;

use super::heard_before::HeardBefore;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Machine, forgetting};

/// Most entries of a board.
pub const ENTRIES_MAX: usize = 256;
/// Most entries of a board that one author has begun: whoever writes many leaves room to the others.
pub const AUTHOR_ENTRIES_MAX: u32 = 64;
/// Most bytes of all values and names together, as they stand: the whole board fits into one answer.
pub const BOARD_BYTES_MAX: u64 = 512 * 1024;
/// How often one author writes on a board at most: every version is kept.
pub const AUTHOR_PUTS_MAX: u32 = 2_000;
/// Most bytes of all versions that one author writes on a board.
pub const AUTHOR_BYTES_MAX: u64 = 16 << 20;
/// How many messages are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 1_024;

const PARAMETERS: &str = "/payload/parameters";

/// The state machine of a board.
#[derive(Debug, Clone, Copy)]
pub struct BoardMachine;

/// What one author has written, all versions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// How many versions.
    pub puts: u32,
    /// How many entries it has begun.
    pub begun: u32,
    /// The bytes of their values.
    pub bytes: u64,
}

/// The state of a board.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardState {
    /// The entries as they stand, by name. Shared: a state is copied whenever it is read.
    pub entries: BTreeMap<String, Arc<BoardEntry>>,
    /// What each author has written.
    pub authors: BTreeMap<AgentId, Written>,
    causes: HeardBefore,
}

impl Default for BoardState {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            authors: BTreeMap::new(),
            causes: HeardBefore::new(CAUSES_MAX),
        }
    }
}

impl BoardState {
    /// The entries without their values, by name.
    pub fn listings(&self) -> Vec<BoardListing> {
        let entries = self.entries.values();
        entries.map(|entry| entry.listing.clone()).collect()
    }

    /// The bytes of all names and values.
    pub fn bytes(&self) -> u64 {
        let entries = self.entries.iter();
        let sizes = entries.map(|(name, entry)| size(name, entry.listing.bytes));
        sizes.sum()
    }
}

/// One input of a board.
#[derive(Debug, Clone, PartialEq)]
pub enum BoardInput {
    /// Somebody in the case writes an entry.
    Put(Box<ReceivedPut>),
}

/// An entry, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedPut {
    /// The message that brought it.
    pub heard: Heard,
    /// The case.
    pub case_id: CaseId,
    /// What is written. The caller has checked its form.
    pub put: PutEntry,
}

impl Machine for BoardMachine {
    type State = BoardState;
    type Event = BoardEvent;
    type Input = BoardInput;

    fn state_bytes_max(state: &BoardState) -> usize {
        let values = usize::try_from(state.bytes()).unwrap_or(usize::MAX);
        let others = state.entries.len() * 256 + state.causes.len() * 192;
        forgetting(values.saturating_add(others))
    }

    fn decide(state: &BoardState, _: &Context, input: &BoardInput) -> Decision<BoardEvent> {
        let BoardInput::Put(received) = input;
        let ReceivedPut {
            heard,
            case_id,
            put,
        } = &**received;
        if let Some(repeated) = state.causes.repetition(heard) {
            return repeated;
        }
        let bytes = bytes_of(put);
        let checked = check_version(state, put)
            .and_then(|()| check_board(state, &put.name, bytes))
            .and_then(|()| check_author(state, &heard.agent_id, put, bytes));
        match checked {
            Err(fault) => Decision::Reject(fault),
            Ok(()) => Decision::Append(BoardEvent::Put(EntryPut {
                case_id: case_id.clone(),
                name: put.name.clone(),
                version: put.based_on.saturating_add(1),
                value: put.value.clone(),
                confidence: put.confidence,
                heard: heard.clone(),
            })),
        }
    }

    fn is_taken(state: &BoardState, id: &MessageId, sender: &AgentId) -> bool {
        state.causes.is_taken(id, sender)
    }

    fn apply(state: &mut BoardState, record: StoredEvent<BoardEvent>) {
        let BoardEvent::Put(put) = &record.event;
        let listing = listing(&record, put);
        let heard = &put.heard;
        state.causes.remember(heard);
        let written = state.authors.entry(heard.agent_id.clone()).or_default();
        written.puts = written.puts.saturating_add(1);
        written.begun += u32::from(put.version == 1);
        written.bytes = written.bytes.saturating_add(listing.bytes);
        let value = put.value.clone();
        let entry = BoardEntry { listing, value };
        state.entries.insert(put.name.clone(), Arc::new(entry));
    }

    fn effects(record: &StoredEvent<BoardEvent>) -> Vec<Effect> {
        let BoardEvent::Put(put) = &record.event;
        let entry = listing(record, put);
        let answer = Effect::Respond {
            to: put.heard.agent_id.clone(),
            request_id: put.heard.message_id.clone(),
            result: json!({ "name": put.name, "version": put.version }),
        };
        vec![answer, Effect::tell_all(BoardChanged { entry })]
    }

    fn case_of(record: &StoredEvent<BoardEvent>) -> Option<CaseId> {
        let BoardEvent::Put(put) = &record.event;
        Some(put.case_id.clone())
    }

    fn misplaced(before: &BoardState, event: &BoardEvent) -> Option<String> {
        let BoardEvent::Put(put) = event;
        let next = version_of(before, &put.name).saturating_add(1);
        let is_next = put.version == next;
        (!is_next).then(|| {
            format!(
                "It is version {} of {:?}, and {next} is due.",
                put.version, put.name
            )
        })
    }
}

/// The version of the entry of this name; 0 where there is none.
fn version_of(state: &BoardState, name: &str) -> u64 {
    let entry = state.entries.get(name);
    entry.map_or(0, |entry| entry.listing.version)
}

fn listing(record: &StoredEvent<BoardEvent>, put: &EntryPut) -> BoardListing {
    BoardListing {
        name: put.name.clone(),
        version: put.version,
        author: put.heard.agent_id.clone(),
        confidence: put.confidence,
        at: record.meta.at,
        bytes: u64::try_from(put.value.to_string().len()).unwrap_or(u64::MAX),
    }
}

fn bytes_of(put: &PutEntry) -> u64 {
    u64::try_from(put.bytes()).unwrap_or(u64::MAX)
}

/// What an entry counts for among the bytes of its board.
fn size(name: &str, bytes: u64) -> u64 {
    let name = u64::try_from(name.len()).unwrap_or(u64::MAX);
    bytes.saturating_add(name)
}

fn check_version(state: &BoardState, put: &PutEntry) -> Result<(), Fault> {
    let PutEntry { name, based_on, .. } = put;
    let stands = state.entries.get(name).map(|entry| &entry.listing);
    let version = stands.map_or(0, |listing| listing.version);
    if version == *based_on {
        return Ok(());
    }
    let (what, advice) = match stands {
        Some(BoardListing { author, at, .. }) => (
            format!(
                "{name:?} is at version {version}, which {author} wrote at {at}; you write on version {based_on}."
            ),
            format!("Read it, and write again with based_on {version}."),
        ),
        None => (
            format!("There is no entry {name:?}, so no version {based_on} of it."),
            "Write it with based_on 0.".to_owned(),
        ),
    };
    Err(Fault::invalid(
        format!("{PARAMETERS}/based_on"),
        what,
        advice,
    ))
}

fn check_board(state: &BoardState, name: &str, bytes: u64) -> Result<(), Fault> {
    let earlier = state.entries.get(name);
    if earlier.is_none() && state.entries.len() >= ENTRIES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            format!("{PARAMETERS}/name"),
            format!("The board has {ENTRIES_MAX} entries, and can have no more."),
            "Write into an entry that there is; one that nobody needs can be taken for something else.",
        ));
    }
    let freed = earlier.map_or(0, |entry| size(name, entry.listing.bytes));
    let after = state.bytes().saturating_sub(freed) + size(name, bytes);
    // What makes the board smaller is always taken.
    if after <= BOARD_BYTES_MAX || size(name, bytes) <= freed {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        format!("{PARAMETERS}/value"),
        format!("The board would have {after} bytes; at most {BOARD_BYTES_MAX} have room."),
        "Empty an entry that nobody needs, with the value null.",
    ))
}

fn check_author(
    state: &BoardState,
    author: &AgentId,
    put: &PutEntry,
    bytes: u64,
) -> Result<(), Fault> {
    let Written {
        puts,
        begun,
        bytes: before,
    } = state.authors.get(author).copied().unwrap_or_default();
    if put.based_on == 0 && begun >= AUTHOR_ENTRIES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            format!("{PARAMETERS}/name"),
            format!(
                "{author} has begun {begun} entries of this board; one author begins {AUTHOR_ENTRIES_MAX} at most, so that others have room."
            ),
            "Write into an entry that there is; one that nobody needs can be taken for something else.",
        ));
    }
    if puts < AUTHOR_PUTS_MAX && before.saturating_add(bytes) <= AUTHOR_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "",
        format!(
            "{author} has written {puts} versions with {before} bytes on this board; at most {AUTHOR_PUTS_MAX} with \
             {AUTHOR_BYTES_MAX} are kept of one author."
        ),
        "Have somebody else in the case write it.",
    ))
}

#[cfg(test)]
mod tests;
