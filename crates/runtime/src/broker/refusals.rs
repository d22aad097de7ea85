//! What the broker did not store, so that a process whose work goes nowhere says so.
//!
//! A broker whose disk or limit is full answers every question as before; only what is to be stored fails. So readiness follows what became
//! of the last writes to each stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, ErrorCode};
use concord_events::topology::StreamKind;

use crate::broker::publish;

/// A refusal that was not repeated for so long says nothing any more: whoever was refused tries again within half of it.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// A broker that did not confirm so many writes in a row has more than changed its leader.
const SILENT_MAX: u32 = 3;

/// Whether the broker stores what this process gives it, by stream.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Whether anything was refused of late: writes are many, and go well.
    any: AtomicBool,
    streams: Mutex<BTreeMap<StreamKind, Refusal>>,
    /// Streams that there are not, as the broker has said. What is published to one of them nobody answers.
    missing: Mutex<BTreeSet<StreamKind>>,
}

#[derive(Debug)]
struct Refusal {
    why: String,
    /// How often in a row.
    times: u32,
    /// Whether the broker has said so, or only did not answer.
    answered: bool,
    last: Instant,
}

/// Whether an error says that there is no room, in the stream, the account or on the disk.
pub(crate) fn is_no_room(error: &jetstream::Error) -> bool {
    [
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::STREAM_STORE_FAILED,
    ]
    .contains(&error.error_code())
}

impl Refusals {
    /// Whether anything was refused of late.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes into account what became of a write to a stream, to which the broker could have answered where `heard` says so.
    pub(crate) fn take(
        &self,
        stream: StreamKind,
        result: &Result<publish::Stored, publish::Error>,
        heard: bool,
    ) {
        match result {
            Err(publish::Error::Full(error)) => self.refused(stream, error.to_string(), true),
            Err(publish::Error::Unanswered(_)) if heard => {
                self.refused(stream, "it does not confirm what it is given".into(), false);
            }
            Err(_) => {}
            Ok(_) => self.stored(stream),
        }
    }

    fn refused(&self, stream: StreamKind, why: String, answered: bool) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let times = streams.get(&stream).map_or(0, |earlier| earlier.times) + 1;
        let refusal = Refusal {
            why,
            times,
            answered,
            last: Instant::now(),
        };
        streams.insert(stream, refusal);
        self.any.store(true, Ordering::Relaxed);
    }

    fn stored(&self, stream: StreamKind) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.remove(&stream);
        self.any.store(!streams.is_empty(), Ordering::Relaxed);
    }

    /// Takes into account whether there is such a stream, as the broker has said.
    pub(crate) fn found(&self, stream: StreamKind, is_there: bool) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        match is_there {
            true => missing.remove(&stream),
            false => missing.insert(stream),
        };
    }

    /// The streams that there are not.
    pub(crate) fn missing(&self) -> BTreeSet<StreamKind> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.clone()
    }

    /// The streams to which nothing can be written though they are there, each with what the broker says.
    pub(crate) fn now(&self) -> Vec<(StreamKind, String)> {
        if !self.any() {
            return Vec::new();
        }
        let missing = self.missing();
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let known = streams.iter().filter(|(stream, refusal)| {
            !missing.contains(stream)
                && refusal.last.elapsed() < KNOWN_FOR
                && (refusal.answered || refusal.times >= SILENT_MAX)
        });
        known
            .map(|(stream, refusal)| (*stream, refusal.why.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Result<publish::Stored, publish::Error> {
        let said = r#"{"code":503,"err_code":10023,"description":"insufficient resources"}"#;
        Err(publish::Error::Full(serde_json::from_str(said).unwrap()))
    }

    fn silent() -> Result<publish::Stored, publish::Error> {
        let error = async_nats::RequestError::new(async_nats::RequestErrorKind::TimedOut);
        Err(publish::Error::Unanswered(error))
    }

    fn stored() -> Result<publish::Stored, publish::Error> {
        Ok(publish::Stored {
            stream: "S".into(),
            sequence: 1,
            duplicate: false,
        })
    }

    #[test]
    fn a_stream_without_room_is_known_until_it_takes_something() {
        let refusals = Refusals::default();
        refusals.take(StreamKind::Messages, &full(), true);
        refusals.take(StreamKind::Events, &stored(), true);
        let now = refusals.now();
        assert!(
            matches!(&now[..], [(StreamKind::Messages, why)] if why.contains("insufficient resources")),
            "{now:?}"
        );
        refusals.take(StreamKind::Messages, &stored(), true);
        assert_eq!(refusals.now(), []);
    }

    /// Nobody answers what is published there, and that is no lack of room.
    #[test]
    fn a_stream_that_is_missing_refuses_nothing() {
        let refusals = Refusals::default();
        for _ in 0..SILENT_MAX {
            refusals.take(StreamKind::Memory, &silent(), true);
        }
        assert_eq!(refusals.now().len(), 1);
        refusals.found(StreamKind::Memory, false);
        assert_eq!(refusals.now(), []);
        assert!(refusals.missing().contains(&StreamKind::Memory));
        refusals.found(StreamKind::Memory, true);
        assert!(refusals.missing().is_empty());
    }

    #[test]
    fn silence_counts_when_it_goes_on_and_not_while_there_is_no_connection() {
        let refusals = Refusals::default();
        for _ in 0..5 {
            refusals.take(StreamKind::Events, &silent(), false);
        }
        assert_eq!(refusals.now(), []);
        for times in 1..=SILENT_MAX {
            refusals.take(StreamKind::Events, &silent(), true);
            assert_eq!(refusals.now().len(), usize::from(times == SILENT_MAX));
        }
    }
}
