//! Invariant 9: every entry of a decision log is as it was written, and none is missing between two
//! others.

use std::collections::BTreeMap;

use concord_events::Aggregate;
use concord_events::{CaseEvent, StoredEvent};
use concord_wire::Token;
use concord_wire::payload::{ConflictOutcome, LogEntry};

use super::place;
use super::report::{Counts, Invariant};
use crate::aggregates::case::entry_faults;

/// Number and hash of the last entry of each case.
#[derive(Debug, Default)]
pub(super) struct Logs(BTreeMap<Token, (u64, String)>);

impl Logs {
    /// Takes an event of a case into account.
    pub(super) fn event(&mut self, counts: &mut Counts, record: &StoredEvent<CaseEvent>) {
        let (outcome, entry) = match &record.event {
            CaseEvent::DebateSettled(settled) => (Some(&settled.outcome), settled.entry.as_deref()),
            CaseEvent::Decided(decided) => (decided.last.as_ref(), decided.entry.as_deref()),
            CaseEvent::DecisionChanged(changed) => {
                (Some(&changed.outcome), Some(changed.entry.as_ref()))
            }
            _ => return,
        };
        let faults = match entry {
            Some(entry) => {
                counts.examined(Invariant::DecisionLog);
                self.enter(&record.meta.id, entry, outcome)
            }
            // Cases that are older than the decision log have no entries at all.
            None if outcome.is_some() && self.0.contains_key(&record.meta.id) => {
                vec!["A debate has ended without an entry.".to_owned()]
            }
            None => return,
        };
        let place = place(Aggregate::Case, &record.meta.id);
        for fault in faults {
            let entry = entry.map_or_else(String::new, |entry| format!("{}: ", entry.entry_id));
            let what = format!("{entry}{fault}");
            counts.violated(
                Invariant::DecisionLog,
                place.clone(),
                Some(record.sequence),
                what,
            );
        }
    }

    fn enter(
        &mut self,
        case: &Token,
        entry: &LogEntry,
        outcome: Option<&ConflictOutcome>,
    ) -> Vec<String> {
        let last = self.0.entry(case.clone()).or_default();
        let mut faults = entry_faults(entry, last.0, &last.1);
        if outcome.is_none_or(|outcome| {
            (&outcome.conflict_id, outcome.status) != (&entry.debate_id, entry.method)
        }) {
            faults.push("It is not about the debate that ended.".to_owned());
        }
        let ruled_by = outcome.and_then(|outcome| outcome.ruled_by.as_ref());
        let first = ruled_by.and_then(|ruled| ruled.first_reviewer.as_ref());
        // Entries that named nobody but the last were written beside outcomes that name both.
        if entry.first_reviewer.is_some() && entry.first_reviewer.as_ref() != first {
            faults.push("It names another first reviewer than the outcome.".to_owned());
        }
        *last = (entry.number, entry.hash.clone());
        faults
    }
}
