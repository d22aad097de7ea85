//! The agreement of the panel with the lawyers on the presence of clauses.

use std::collections::BTreeMap;

use concord_domain::rules::canonical::normalise;
use concord_wire::payload::{Finding, Outcome};
use serde::Serialize;
use serde_json::Value;

/// A clause on which the extractor and the deliberated result differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The type of the clause.
    pub(crate) clause: String,
    /// The label of the lawyers.
    pub(crate) lawyers: bool,
    /// The finding of the extractor.
    pub(crate) extractor: bool,
    /// The deliberated result.
    pub(crate) deliberated: bool,
    /// The way to that result: `discussion`, `vote`, `unresolved`, `deferred`, `undisputed`.
    pub(crate) basis: String,
}

/// The comparison of one contract: over the clause types that the extractor reports and whose label is `Yes` or `No`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Agreement {
    /// The number of clause types compared.
    pub(crate) compared: u64,
    /// The number of these that the extractor alone had right.
    pub(crate) extractor: u64,
    /// The number of these that the deliberated result had right.
    pub(crate) deliberated: u64,
    /// The clauses on which the two differ.
    pub(crate) differences: Vec<Difference>,
}

impl Agreement {
    /// Clauses that the extractor had wrong and the deliberation right.
    pub(crate) fn helped(&self) -> usize {
        self.differences
            .iter()
            .filter(|difference| difference.deliberated == difference.lawyers)
            .count()
    }

    /// Clauses that the extractor had right and the deliberation wrong.
    pub(crate) fn hurt(&self) -> usize {
        self.differences.len() - self.helped()
    }
}

/// Compares what the extractor reported and what was decided with the lawyers' labels; none where nothing is comparable.
pub(crate) fn agreement(
    labels: &BTreeMap<String, Value>,
    extractor: &Finding,
    decided: &Outcome,
) -> Option<Agreement> {
    let labels: BTreeMap<String, bool> = labels
        .iter()
        .filter_map(|(clause, label)| Some((normalise(clause), yes_or_no(label)?)))
        .collect();
    let decided: BTreeMap<String, _> = decided
        .clauses
        .iter()
        .map(|(clause, outcome)| (normalise(clause), outcome))
        .collect();
    let mut reported: BTreeMap<String, (&str, bool)> = BTreeMap::new();
    for clause in &extractor.clauses {
        let (_, present) = reported
            .entry(normalise(&clause.kind))
            .or_insert((&clause.kind, false));
        *present |= clause.present;
    }
    let mut agreement = Agreement::default();
    for (clause, (name, extractor)) in reported {
        let (Some(lawyers), Some(outcome)) = (labels.get(&clause), decided.get(&clause)) else {
            continue;
        };
        agreement.compared += 1;
        agreement.extractor += u64::from(extractor == *lawyers);
        agreement.deliberated += u64::from(outcome.present == *lawyers);
        if extractor != outcome.present {
            agreement.differences.push(Difference {
                clause: name.to_owned(),
                lawyers: *lawyers,
                extractor,
                deliberated: outcome.present,
                basis: outcome.basis.clone(),
            });
        }
    }
    (agreement.compared > 0).then_some(agreement)
}

/// A label that says whether the clause is there. Others name a date, a state or a duration.
fn yes_or_no(label: &Value) -> Option<bool> {
    match normalise(label.as_str()?).as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(clauses: &[(&str, bool)]) -> Finding {
        let clauses: Vec<_> = clauses
            .iter()
            .map(|(kind, present)| json!({"type": kind, "present": present}))
            .collect();
        serde_json::from_value(json!({"summary": "s", "clauses": clauses})).unwrap()
    }

    fn outcome(clauses: &[(&str, bool)]) -> Outcome {
        let clauses: BTreeMap<_, _> = clauses
            .iter()
            .map(|(kind, present)| (*kind, json!({"present": present, "basis": "vote"})))
            .collect();
        serde_json::from_value(json!({ "clauses": clauses })).unwrap()
    }

    fn labels(labels: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(labels).unwrap()
    }

    #[test]
    fn only_clauses_that_both_sides_judge_are_compared() {
        let labels =
            labels(json!({"Insurance": "Yes", "Governing Law": "New York", "Exclusivity": "No"}));
        let extractor = finding(&[
            ("insurance", true),
            ("Governing Law", true),
            ("Audit Rights", true),
        ]);
        let decided = outcome(&[
            ("Insurance", true),
            ("Governing Law", true),
            ("Audit Rights", true),
        ]);
        let found = agreement(&labels, &extractor, &decided).unwrap();
        assert_eq!(
            found,
            Agreement {
                compared: 1,
                extractor: 1,
                deliberated: 1,
                differences: Vec::new()
            }
        );
    }

    #[test]
    fn what_deliberation_helped_and_hurt_is_told_apart() {
        let labels = labels(json!({"A": "Yes", "B": "No", "C": "Yes", "D": " no "}));
        let extractor = finding(&[("A", false), ("B", false), ("C", true), ("D", true)]);
        let decided = outcome(&[("A", true), ("B", true), ("C", true), ("D", true)]);
        let found = agreement(&labels, &extractor, &decided).unwrap();
        assert_eq!(
            (found.compared, found.extractor, found.deliberated),
            (4, 2, 2)
        );
        assert_eq!((found.helped(), found.hurt()), (1, 1));
        let differing: Vec<_> = found
            .differences
            .iter()
            .map(|d| (d.clause.as_str(), d.basis.as_str()))
            .collect();
        assert_eq!(differing, [("A", "vote"), ("B", "vote")]);
    }

    #[test]
    fn a_clause_that_the_extractor_names_twice_is_there_if_it_was_found_once() {
        let labels = labels(json!({"A": "Yes"}));
        let found = agreement(
            &labels,
            &finding(&[("A", true), ("A", false)]),
            &outcome(&[("A", true)]),
        )
        .unwrap();
        assert_eq!((found.compared, found.extractor), (1, 1));
    }

    #[test]
    fn without_labels_there_is_nothing_to_compare() {
        assert_eq!(
            agreement(
                &BTreeMap::new(),
                &finding(&[("A", true)]),
                &outcome(&[("A", true)])
            ),
            None
        );
    }
}
