//! One says a clause is there, another that it is not.
//!
//! An agent says so in `clauses`. It also says that a clause is there by listing it in `affected_clauses`; and an agent
//! that reports clauses at all says, by leaving out one that others rely on, that it did not find it. There is one
//! conflict a clause type, whoever the extractor is.

use std::collections::BTreeMap;

use concord_protocol::event::ReceivedFinding;
use concord_protocol::payload::ConflictType;
use concord_protocol::policy::Policy;
use serde_json::json;

use super::{Found, position};
use crate::compare::normalise;

pub(super) fn find(_: &Policy, findings: &[&ReceivedFinding]) -> Vec<Found> {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for received in findings {
        let stated = received.finding.clauses.iter().map(|clause| clause.kind.as_str());
        let relied_on = received.finding.affected_clauses.iter().map(String::as_str);
        for name in stated.chain(relied_on) {
            names.entry(normalise(name)).or_insert(name);
        }
    }
    names.into_iter().filter_map(|(subject, name)| of_clause(findings, subject, name)).collect()
}

fn of_clause(findings: &[&ReceivedFinding], subject: String, name: &str) -> Option<Found> {
    let relied_on = findings.iter().any(|received| relies_on(received, &subject));
    let held: Vec<_> =
        findings.iter().filter_map(|received| Some((*received, holds(received, &subject, relied_on)?))).collect();
    let contested = held.iter().any(|(_, present)| *present) && held.iter().any(|(_, present)| !*present);
    contested.then(|| Found {
        kind: ConflictType::ClausePresenceDisagreement,
        topic: format!("Clause {name:?} presence"),
        stake: 0.7,
        positions: held
            .into_iter()
            .map(|(received, present)| {
                let text = if present { "present" } else { "not found" };
                position(received, text, json!(present), evidence(received, &subject))
            })
            .collect(),
        subject: name.to_owned(),
    })
}

fn relies_on(received: &ReceivedFinding, subject: &str) -> bool {
    received.finding.affected_clauses.iter().any(|name| normalise(name) == subject)
}

/// Whether the finder says that the clause is there; none when it says nothing about it.
fn holds(received: &ReceivedFinding, subject: &str, relied_on_by_someone: bool) -> Option<bool> {
    let stated: Vec<bool> = received
        .finding
        .clauses
        .iter()
        .filter(|clause| normalise(&clause.kind) == subject)
        .map(|clause| clause.present)
        .collect();
    if !stated.is_empty() {
        return Some(stated.contains(&true));
    }
    if relies_on(received, subject) {
        return Some(true);
    }
    (relied_on_by_someone && !received.finding.clauses.is_empty()).then_some(false)
}

/// The clause's own words first, then the finding's evidence.
fn evidence(received: &ReceivedFinding, subject: &str) -> Vec<String> {
    let clauses = received.finding.clauses.iter().filter(|clause| normalise(&clause.kind) == subject);
    let words = clauses.filter_map(|clause| clause.text.clone());
    words.chain(received.finding.evidence.iter().cloned()).collect()
}
