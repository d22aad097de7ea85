//! Estimates that differ are a conflict, and no others: counted again, by arithmetic of its own.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::aggregates::case::CaseMachine;
use concord_domain::machine::Versioned;
use concord_events::{Detected, DetectionEvent, ReceivedFinding};
use concord_wire::payload::ConflictType;

use super::archive::Archive;

/// The units that the simulated agents use: whether it is money, and how many of the base unit one is.
const UNITS: [(&str, bool, f64); 6] = [
    ("", false, 1.0),
    ("fraction", false, 1.0),
    ("%", false, 0.01),
    ("USD", true, 1.0),
    ("k USD", true, 1e3),
    ("USD million", true, 1e6),
];

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (id, records) in &archive.detections {
        let mut case = Versioned::<CaseMachine>::default();
        for record in archive.cases.get(id).into_iter().flatten() {
            case.apply(record.clone());
        }
        for record in records {
            let DetectionEvent::Completed(detected) = &record.event;
            if let Some(problem) = problem(detected, &case.state.compared_findings()) {
                violations.push(format!("the detection of {id}: {problem}"));
            }
        }
    }
}

/// What is wrong about the conflicts between estimates.
fn problem(detected: &Detected, findings: &[ReceivedFinding]) -> Option<String> {
    let expected = differing(detected, findings);
    let found: BTreeSet<&str> = detected
        .debated
        .iter()
        .chain(&detected.deferred)
        .filter(|conflict| conflict.kind == ConflictType::EstimateDisagreement)
        .map(|conflict| conflict.subject.as_str())
        .collect();
    (found != expected && detected.conflicts_omitted == 0)
        .then(|| format!("estimates of {expected:?} differ, and {found:?} are conflicts"))
}

/// The metrics of which agents differ by more than the policy allows.
fn differing<'f>(detected: &Detected, findings: &'f [ReceivedFinding]) -> BTreeSet<&'f str> {
    let policy = &detected.policy.estimates;
    let mut ends: BTreeMap<(&str, bool), (f64, f64)> = BTreeMap::new();
    for received in findings {
        for estimate in &received.finding.estimates {
            let unit = estimate.unit.as_deref().unwrap_or_default();
            let Some((_, is_money, factor)) = UNITS.iter().find(|(name, ..)| *name == unit) else {
                continue;
            };
            let value = estimate.value * factor;
            let (low, high) = ends
                .entry((estimate.metric.as_str(), *is_money))
                .or_insert((value, value));
            (*low, *high) = (low.min(value), high.max(value));
        }
    }
    ends.into_iter()
        .filter(|(_, (low, high))| high - low > policy.tolerance.relative * high + 1e-9)
        .filter(|_| policy.compared)
        .map(|((metric, _), _)| metric)
        .collect()
}
