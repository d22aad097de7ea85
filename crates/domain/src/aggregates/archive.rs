//! The archive: which segments of cases were written to it, and which of them were removed from the
//! streams. Owned by the escalation timer.
//!
//! | state | input | event |
//! |---|---|---|
//! | any | a segment that follows the last one, of cases that no other waits with | `sealed` |
//! | any | any other segment: a replica was faster | none |
//! | segments wait | those up to one of them were removed from the streams | `purged` |
//! | no such segment waits | the same | none |
//!
//! A segment waits from when it is sealed until it is purged. Meanwhile its cases are closed to every
//! input, so that nothing is stored of them that is not in the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::{
    ArchiveEvent, SEGMENT_AGGREGATES_MAX, SEGMENT_CASES_MAX, SegmentSealed, SegmentsPurged,
    StoredEvent,
};
use concord_wire::{CaseId, Timestamp, Token};

use crate::machine::{Context, Decision, Ignored, Machine, forgetting};

/// The state machine of the archive.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveMachine;

/// A segment that waits to be purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingSegment {
    /// Since when it waits.
    pub since: Timestamp,
    /// The segment. Shared, because the state is copied for every segment that is made while others wait.
    pub sealed: Arc<SegmentSealed>,
}

/// The state: the end of the chain of segments, and the segments that wait to be purged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveState {
    /// The last segment; none before the first.
    pub last: Option<Arc<SegmentSealed>>,
    /// The segments that were sealed and not purged yet, by number.
    pub waiting: BTreeMap<u64, WaitingSegment>,
}

impl ArchiveState {
    /// The number that the next segment has.
    pub fn next_number(&self) -> u64 {
        self.last.as_ref().map_or(1, |last| last.number + 1)
    }

    /// The cases in the segments that wait: those of some seconds, which are asked for once for many cases.
    pub fn waiting_cases(&self) -> BTreeSet<&CaseId> {
        let segments = self.waiting.values();
        let sealed = segments.flat_map(|segment| &segment.sealed.cases);
        sealed.map(|sealed| &sealed.case_id).collect()
    }
}

/// The id of the one archive of an installation.
pub fn archive_id() -> Token {
    Token::fixed("log")
}

/// One input of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveInput {
    /// A segment is stored with its manifest.
    Seal(SegmentSealed),
    /// The streams hold nothing more of what these segments contain.
    Purge(SegmentsPurged),
}

impl Machine for ArchiveMachine {
    type State = ArchiveState;
    type Event = ArchiveEvent;
    type Input = ArchiveInput;

    fn state_bytes_max(state: &ArchiveState) -> usize {
        let segments = state
            .last
            .iter()
            .chain(state.waiting.values().map(|one| &one.sealed));
        let cases = segments.flat_map(|segment| &segment.cases);
        forgetting(cases.map(|case| 256 + 128 * case.aggregates.len()).sum())
    }

    fn decide(state: &ArchiveState, _: &Context, input: &ArchiveInput) -> Decision<ArchiveEvent> {
        let event = match input {
            ArchiveInput::Seal(segment) => ArchiveEvent::Sealed(segment.clone()),
            ArchiveInput::Purge(purged) => ArchiveEvent::Purged(purged.clone()),
        };
        match wrong_place(state, &event) {
            Some(_) => Decision::Ignore(Ignored::AlreadyDone),
            None => Decision::Append(event),
        }
    }

    fn apply(state: &mut ArchiveState, record: StoredEvent<ArchiveEvent>) {
        let since = record.meta.at;
        match record.event {
            ArchiveEvent::Sealed(sealed) => {
                let (number, sealed) = (sealed.number, Arc::new(sealed));
                state.last = Some(Arc::clone(&sealed));
                let waiting = WaitingSegment { since, sealed };
                state.waiting.insert(number, waiting);
            }
            ArchiveEvent::Purged(purged) => {
                state.waiting = state.waiting.split_off(&(purged.through + 1));
            }
        }
    }

    fn misplaced(before: &ArchiveState, event: &ArchiveEvent) -> Option<String> {
        wrong_place(before, event)
    }
}

/// Why an event does not fit the state before it.
fn wrong_place(state: &ArchiveState, event: &ArchiveEvent) -> Option<String> {
    let segment = match event {
        ArchiveEvent::Sealed(segment) => segment,
        ArchiveEvent::Purged(SegmentsPurged { through, .. }) => {
            return (!state.waiting.contains_key(through))
                .then(|| format!("No segment {through} waits to be purged."));
        }
    };
    let number = state.next_number();
    if segment.number != number {
        return Some(format!("It is number {}, not {number}.", segment.number));
    }
    if segment.previous.as_ref() != state.last.as_ref().map(|last| &last.manifest) {
        return Some(format!(
            "It follows another segment than number {}.",
            number - 1
        ));
    }
    let aggregates: usize = segment.cases.iter().map(|case| case.aggregates.len()).sum();
    if segment.cases.len() > SEGMENT_CASES_MAX || aggregates > SEGMENT_AGGREGATES_MAX {
        return Some("It contains more than one segment may.".to_owned());
    }
    let waiting = state.waiting_cases();
    let mut cases = segment.cases.iter();
    let twice = cases.find(|case| waiting.contains(&case.case_id));
    twice.map(|case| {
        format!(
            "The case {} is in a segment that waits already.",
            case.case_id
        )
    })
}

#[cfg(test)]
mod tests;
