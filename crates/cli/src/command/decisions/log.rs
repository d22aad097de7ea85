//! Reading the decision log from the events of cases.

use std::collections::BTreeMap;

use concord_domain::aggregates::case::entry_faults;
use concord_events::Aggregate;
use concord_events::CaseEvent;
use concord_runtime::Broker;
use concord_wire::CaseId;
use concord_wire::payload::LogEntry;
use serde::Serialize;

use crate::shared::case_file;
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;

/// The events that carry entries.
const CARRIERS: [&str; 3] = ["debate_settled", "decided", "decision_changed"];

/// An entry as it is stored.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entered {
    /// The case that the entry belongs to.
    pub(super) case_id: CaseId,
    /// The entry as it is stored.
    pub(super) entry: LogEntry,
    /// At a gate, the reason of the reviewer who said the same before, from the outcome that is stored with the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_rationale: Option<String>,
    /// The faults of the entry, as sentences; empty when it is as it was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) faults: Vec<String>,
}

/// The log of one case, or the logs of all, in the order in which they were written.
pub(super) async fn read(broker: &Broker, case: Option<&CaseId>) -> Result<Vec<Entered>, Failure> {
    if let Some(case) = case {
        case_file::existing(broker, case).await?;
    }
    let query = match case {
        Some(case) => EventQuery::of(Aggregate::Case, &case.token()),
        None => EventQuery::of_kind(Aggregate::Case),
    };
    let mut entries = Vec::new();
    let mut chains = BTreeMap::new();
    let source = EventSource::new(broker).await?;
    source
        .for_each(&query.named(&CARRIERS), "reading decisions", |stored| {
            let stored_event = event_of::<CaseEvent>(&stored)?;
            let Ok(case_id) = CaseId::new(stored_event.meta.id.as_str()) else {
                return Ok(());
            };
            let (entry, outcome) = match stored_event.event {
                CaseEvent::DebateSettled(settled) => (settled.entry, Some(settled.outcome)),
                CaseEvent::Decided(decided) => (decided.entry, decided.last),
                CaseEvent::DecisionChanged(changed) => (Some(changed.entry), Some(changed.outcome)),
                _ => (None, None),
            };
            let ruled_by = outcome.and_then(|outcome| outcome.ruled_by);
            let first = ruled_by.and_then(|ruled| ruled.first_rationale);
            entries.extend(entry.map(|entry| Entered {
                first_rationale: first,
                ..enter(&mut chains, case_id, *entry)
            }));
            Ok(())
        })
        .await?;
    Ok(entries)
}

/// Number and hash of the last entry of each case.
type Chains = BTreeMap<CaseId, (u64, String)>;

fn enter(chains: &mut Chains, case_id: CaseId, entry: LogEntry) -> Entered {
    let chain = chains.entry(case_id.clone()).or_default();
    let faults = entry_faults(&entry, chain.0, &chain.1);
    *chain = (entry.number, entry.hash.clone());
    Entered {
        case_id,
        entry,
        first_rationale: None,
        faults,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Three entries of one case, as they were written.
    pub(in crate::command::decisions) fn entries() -> Vec<LogEntry> {
        let mut previous = String::new();
        let entry = |number: u64| {
            let entry: LogEntry = serde_json::from_value(json!({
                "entry_id": format!("c-1-{number}"), "number": number, "at": "2026-11-21T20:00:00.000Z",
                "debate_id": format!("d-{number}"), "topic": "Price, target", "level": 4, "method": "provisional",
                "position": { "position": "=90", "value": 90, "supporters": ["ben", "cem"] }, "confidence": 0.7,
                "evidence": ["filing"], "impact": ["dcf"], "by": "eva", "rationale": "so",
                "provisional": {
                    "rationale": "Lowest.", "until": "2026-11-22T20:00:00.000Z", "review_at": "valuation",
                    "alternatives": [{ "position": "120", "supporters": ["ann"] }], "dependants": ["dcf"],
                },
                "previous": previous.clone(), "hash": "",
            }))
            .unwrap();
            let entry = entry.sealed();
            previous.clone_from(&entry.hash);
            entry
        };
        (1..=3).map(entry).collect()
    }

    fn faults(entries: Vec<LogEntry>) -> Vec<usize> {
        let mut chains = Chains::new();
        let enter = |entry| {
            enter(&mut chains, CaseId::new("c-1").unwrap(), entry)
                .faults
                .len()
        };
        entries.into_iter().map(enter).collect()
    }

    #[test]
    fn a_changed_or_missing_entry_is_marked() {
        assert_eq!(faults(entries()), [0, 0, 0]);
        let mut changed = entries();
        changed[1].topic = "Another".into();
        assert_eq!(faults(changed), [0, 1, 0]);
        let mut resealed = entries();
        resealed[1].topic = "Another".into();
        resealed[1] = resealed[1].clone().sealed();
        assert_eq!(
            faults(resealed),
            [0, 0, 1],
            "whoever seals it again breaks the chain"
        );
        let mut missing = entries();
        missing.remove(1);
        assert_eq!(faults(missing), [0, 2]);
        let mut beheaded = entries();
        beheaded.remove(0);
        assert_eq!(faults(beheaded), [2, 0]);
    }
}
