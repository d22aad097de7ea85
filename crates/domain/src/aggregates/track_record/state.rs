//! The state of a track record.

use std::collections::VecDeque;

use concord_events::ImportOrigin;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::Source;
use concord_wire::{AgentId, DebateId, MessageId, Timestamp};

use crate::rules::credibility::Attributed;

/// Most observations of one agent; beyond that the oldest are forgotten.
pub const OBSERVATIONS_MAX: usize = 5_000;

/// What identifies an observation, besides its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The debate that it belongs to.
    Debate(DebateId),
    /// The message or event that brought it, where it belongs to no debate.
    Cause(MessageId),
    /// The id under which it was imported.
    Import(String),
}

impl Origin {
    pub(super) fn of(
        imported: Option<&ImportOrigin>,
        debate: Option<&DebateId>,
        cause: &MessageId,
    ) -> Self {
        if let Some(imported) = imported {
            return Self::Import(imported.id.clone());
        }
        debate.map_or_else(
            || Self::Cause(cause.clone()),
            |debate| Self::Debate(debate.clone()),
        )
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    origin: Origin,
    observation: Observation,
    /// Who opened the case that it comes from, where that is known.
    opened_by: Option<AgentId>,
}

/// The state of a track record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrackRecordState {
    /// Ordered by the time of the observation, the oldest first; those of one instant in the order
    /// of their arrival.
    entries: VecDeque<Entry>,
    forgotten: u64,
}

impl TrackRecordState {
    /// The observations, the oldest first.
    pub fn observations(&self) -> impl ExactSizeIterator<Item = &Observation> + Clone {
        self.entries.iter().map(|entry| &entry.observation)
    }

    /// The observations, each with who opened the case that it comes from; the oldest first.
    pub fn attributed(&self) -> impl Iterator<Item = Attributed<'_>> {
        self.entries.iter().map(|entry| Attributed {
            observation: &entry.observation,
            opened_by: entry.opened_by.as_ref(),
        })
    }

    /// How many older observations were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether there is an observation of this origin from this source.
    pub(super) fn has(&self, origin: &Origin, source: Source) -> bool {
        // The newest first: a repetition mostly repeats what has just arrived.
        self.entries
            .iter()
            .rev()
            .any(|entry| entry.observation.source == source && entry.origin == *origin)
    }

    /// Whether an observation of this time would be forgotten at once. It may have been recorded
    /// before, and forgotten since.
    pub(super) fn is_past(&self, at: Timestamp, most: usize) -> bool {
        self.entries.len() >= most
            && self
                .entries
                .front()
                .is_some_and(|oldest| at <= oldest.observation.at)
    }

    /// Adds an observation and forgets the oldest beyond `most`.
    pub(super) fn keep(
        &mut self,
        origin: Origin,
        observation: Observation,
        opened_by: Option<AgentId>,
        most: usize,
    ) {
        let place = self
            .entries
            .partition_point(|entry| entry.observation.at <= observation.at);
        self.entries.insert(
            place,
            Entry {
                origin,
                observation,
                opened_by,
            },
        );
        while self.entries.len() > most {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        debug_assert!(
            self.entries
                .front()
                .zip(self.entries.back())
                .is_none_or(|(oldest, newest)| oldest.observation.at <= newest.observation.at),
            "observations are kept in the order of their times"
        );
    }
}
