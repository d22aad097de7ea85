//! The debates that wait, and whose turn it is.
//!
//! Debates of one opener and one priority wait in one line, the longest waiting first. Within a
//! priority the lines take turns: the next is the one that was served longest ago. So one opener's
//! thousand debates delay another's by one assignment, whoever has how many with experts. Turns
//! are kept by priority, because an opener's urgent debates must not cost the usual ones their turn.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::Enqueued;
use concord_wire::payload::DebatePriority;
use concord_wire::{AgentId, DebateId, Timestamp};

/// Lines whose turns are remembered. Of more, the turn that is longest ago is forgotten: that line
/// was first among them anyway.
pub(super) const TURNS_MAX: usize = 10_000;

/// A place in a line. The lesser place comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The debate that has waited longest comes first.
    pub entered_at: Timestamp,
    /// Then the lower id.
    pub debate_id: DebateId,
}

impl Place {
    /// The place of a debate.
    pub fn of(entry: &Enqueued) -> Self {
        Self {
            entered_at: entry.entered_at,
            debate_id: entry.debate_id.clone(),
        }
    }
}

/// A line: debates of one priority and one opener. Those of cases of earlier versions, which name
/// no opener, count as those of one.
type Line = (DebatePriority, Option<AgentId>);

fn line_of(entry: &Enqueued) -> Line {
    (entry.priority, entry.opened_by.clone())
}

/// The debates that wait.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// The lines in which somebody waits.
    lines: BTreeMap<Line, BTreeSet<Place>>,
    /// The sequence of the event by which a line was served last; none for one that never was.
    turns: BTreeMap<Line, u64>,
}

impl Waiting {
    pub(super) fn insert(&mut self, entry: &Enqueued) {
        let line = self.lines.entry(line_of(entry)).or_default();
        line.insert(Place::of(entry));
    }

    pub(super) fn remove(&mut self, entry: &Enqueued) {
        let line = line_of(entry);
        if let Some(places) = self.lines.get_mut(&line) {
            places.remove(&Place::of(entry));
            if places.is_empty() {
                self.lines.remove(&line);
            }
        }
    }

    /// Notes that the line of a debate has had its turn.
    pub(super) fn served(&mut self, entry: &Enqueued, sequence: u64) {
        self.turns.insert(line_of(entry), sequence);
        if self.turns.len() > TURNS_MAX {
            let oldest = self.turns.iter().min_by_key(|(_, turn)| **turn);
            if let Some(line) = oldest.map(|(line, _)| line.clone()) {
                self.turns.remove(&line);
            }
        }
    }

    /// The number of debates that wait.
    pub fn len(&self) -> usize {
        self.lines.values().map(BTreeSet::len).sum()
    }

    /// Whether no debate waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a debate waits.
    pub(super) fn has(&self, debate_id: &DebateId) -> bool {
        let mut places = self.lines.values().flatten();
        places.any(|place| place.debate_id == *debate_id)
    }

    /// The number of debates of an opener that wait, in all priorities.
    pub fn of_opener(&self, opener: Option<&AgentId>) -> usize {
        let lines = DebatePriority::ALL.map(|priority| (priority, opener.cloned()));
        let waiting = lines.iter().filter_map(|line| self.lines.get(line));
        waiting.map(BTreeSet::len).sum()
    }

    /// The number of openers of whom debates wait, and of this one.
    pub(super) fn openers_with(&self, opener: Option<&AgentId>) -> usize {
        let others = self.lines.keys().map(|(_, other)| other.as_ref());
        let all: BTreeSet<Option<&AgentId>> = others.chain([opener]).collect();
        all.len()
    }

    /// The lines, most urgent first and then in the order of their turns.
    pub(super) fn in_turn(&self) -> Vec<(DebatePriority, &BTreeSet<Place>)> {
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_by_cached_key(|(line, places)| {
            let turn = self.turns.get(line).copied().unwrap_or(0);
            (line.0, turn, places.first().cloned())
        });
        let lines = lines.into_iter();
        lines
            .map(|((priority, _), places)| (*priority, places))
            .collect()
    }

    /// The debates in the order in which they are assigned when every expert can take each.
    pub fn in_order(&self) -> impl Iterator<Item = &DebateId> {
        let mut numbered = Vec::with_capacity(self.len());
        for (turn, (priority, places)) in self.in_turn().into_iter().enumerate() {
            for (round, place) in places.iter().enumerate() {
                numbered.push(((priority, round, turn), &place.debate_id));
            }
        }
        numbered.sort_by_key(|(order, _)| *order);
        numbered.into_iter().map(|(_, debate_id)| debate_id)
    }
}
