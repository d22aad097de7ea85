//! One finding says that a clause is there, another that it is not.
//!
//! An agent states the presence of a clause in `clauses`. Listing a clause in `affected_clauses`
//! states that it is there. An agent that reports clauses at all, but leaves out one that others
//! list as affected, states that it did not find that clause. There is one conflict for each clause
//! type.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use concord_events::ReceivedFinding;
use concord_wire::payload::{Conflict, ConflictType};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::{ConflictRule, Found, Held};
use crate::rules::canonical::{Canonical, canonical, normalise};
use crate::rules::conservative::words;

/// One finding says that a clause is there, another that it is not.
pub(super) struct ClausePresence;

impl ConflictRule for ClausePresence {
    fn find<'a>(
        &self,
        _: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        let said: Vec<ClausesOfFinding<'a>> = findings
            .iter()
            .map(|received| ClausesOfFinding::by(received))
            .collect();
        for (subject, clause) in clauses(findings) {
            if let Some(found) = of_clause(&said, &subject, &clause) {
                offer(found);
            }
        }
    }

    /// As it is stated of a clause: alone, or after its name (`Exclusivity: present`, `the clause is not found`).
    fn value_in_words(&self, _: &Policy, conflict: &Conflict, words: &str) -> Option<Value> {
        let words = normalise(words);
        let (label, present) = SAID.iter().find_map(|(said, present)| {
            let label = words.strip_suffix(said)?;
            let is_word = label.is_empty() || label.ends_with([' ', ':', '=']);
            is_word.then_some((label, present))
        })?;
        is_name_of(&conflict.subject, label).then(|| json!(present))
    }

    fn plain_words(&self, policy: &Policy, conflict: &Conflict, words: &str) -> Option<Value> {
        self.value_in_words(policy, conflict, words)
    }

    fn wanted_instead(&self, value: &Value) -> Option<&'static str> {
        presence(value)
            .is_none()
            .then_some("true (it is there) or false (it was not found)")
    }

    fn in_result(&self, value: &Value) -> Value {
        presence(value).map_or_else(|| value.clone(), |read| json!(read))
    }

    /// "Not found" is the more cautious one: nobody should rely on a clause that one reader did not
    /// find.
    fn compare_caution(&self, _: &Policy, a: &Value, b: &Value) -> Option<Ordering> {
        let is_absent = |value: &Value| value == &Value::Bool(false);
        Some(is_absent(a).cmp(&is_absent(b)))
    }

    fn caution_in_words(&self, _: &Policy) -> Option<String> {
        Some("a clause that one reader did not find is not relied on".to_owned())
    }
}

/// What is said of a clause, and whether it is there then; what ends with another one stands before that.
const SAID: [(&str, bool); 11] = [
    ("not present", false),
    ("not found", false),
    ("absent", false),
    ("missing", false),
    ("referenced as present", true),
    ("present", true),
    ("found", true),
    ("yes", true),
    ("no", false),
    ("true", true),
    ("false", false),
];

/// What may stand before what is said of a clause, besides its name.
const BEFORE_WHAT_IS_SAID: [&str; 6] = ["the", "this", "clause", "is", "was", "it"];
/// What makes the opposite of what is said, unless it is part of the whole name: `no-shop`.
const NEGATIONS: [&str; 5] = ["no", "not", "non", "never", "without"];

/// Whether these words name a clause and say nothing of it.
fn is_name_of(subject: &str, label: &str) -> bool {
    let (name, label) = (words(subject), words(label));
    let parts = |words: &str| -> Vec<String> {
        let parts = words.split(|c: char| !c.is_alphanumeric());
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let known = parts(&name);
    let rest = label.replacen(name.as_str(), " ", 1);
    let is_other = |word: &String| {
        let is_of_name = known.contains(word) && !NEGATIONS.contains(&word.as_str());
        !is_of_name && !BEFORE_WHAT_IS_SAID.contains(&word.as_str())
    };
    !parts(&rest).iter().any(is_other)
}

/// Reads whether a clause is there, also from a text.
pub(crate) fn presence(value: &Value) -> Option<bool> {
    match canonical(value, None) {
        Canonical::Boolean(present) => Some(present),
        Canonical::Text(words) => match words.as_str() {
            "present" | "found" => Some(true),
            "not found" | "absent" | "missing" => Some(false),
            _ => None,
        },
        Canonical::Number { .. } | Canonical::Date(_) => None,
    }
}

/// The clauses, in the form in which they are compared, about whose presence the findings conflict.
pub(crate) fn contested(findings: &[ReceivedFinding]) -> BTreeSet<String> {
    let findings: Vec<&ReceivedFinding> = findings.iter().collect();
    let said: Vec<ClausesOfFinding<'_>> = findings
        .iter()
        .map(|received| ClausesOfFinding::by(received))
        .collect();
    let named = clauses(&findings).into_iter();
    named
        .filter(|(subject, clause)| positions(&said, subject, clause).is_some())
        .map(|(subject, _)| subject)
        .collect()
}

/// A clause that a finding names.
struct Named<'a> {
    /// The spelling of the first finding that names it.
    name: &'a str,
    /// Whether a finding lists it as affected.
    relied_on: bool,
}

/// All clauses that are named, by the form in which they are compared.
fn clauses<'a>(findings: &[&'a ReceivedFinding]) -> BTreeMap<String, Named<'a>> {
    let mut clauses: BTreeMap<String, Named<'a>> = BTreeMap::new();
    for received in findings {
        let stated = received
            .finding
            .clauses
            .iter()
            .map(|clause| (clause.kind.as_str(), false));
        let relied_on = received
            .finding
            .affected_clauses
            .iter()
            .map(|name| (name.as_str(), true));
        for (name, relied_on) in stated.chain(relied_on) {
            let clause = clauses.entry(normalise(name)).or_insert(Named {
                name,
                relied_on: false,
            });
            clause.relied_on |= relied_on;
        }
    }
    clauses
}

/// What a finding states about clauses. Looked up by clause, because there may be many of both.
struct ClausesOfFinding<'a> {
    received: &'a ReceivedFinding,
    by_clause: BTreeMap<String, ClauseStatement<'a>>,
}

/// What a finding states about one clause.
#[derive(Default)]
struct ClauseStatement<'a> {
    stated: Option<bool>,
    relied_on: bool,
    words: Vec<&'a str>,
}

impl<'a> ClausesOfFinding<'a> {
    fn by(received: &'a ReceivedFinding) -> Self {
        let mut by_clause: BTreeMap<String, ClauseStatement<'a>> = BTreeMap::new();
        for clause in &received.finding.clauses {
            let said = by_clause.entry(normalise(&clause.kind)).or_default();
            said.stated = Some(said.stated == Some(true) || clause.present);
            said.words.extend(clause.text.as_deref());
        }
        for name in &received.finding.affected_clauses {
            by_clause.entry(normalise(name)).or_default().relied_on = true;
        }
        Self {
            received,
            by_clause,
        }
    }

    /// Whether the finding states that the clause is there; `None` when it states nothing about it.
    fn holds(&self, subject: &str, relied_on_by_someone: bool) -> Option<bool> {
        match self.by_clause.get(subject) {
            Some(ClauseStatement {
                stated: Some(present),
                ..
            }) => Some(*present),
            Some(ClauseStatement {
                relied_on: true, ..
            }) => Some(true),
            _ => {
                (relied_on_by_someone && !self.received.finding.clauses.is_empty()).then_some(false)
            }
        }
    }

    /// The text of the clause that the finding quotes.
    fn words(&self, subject: &str) -> Vec<&'a str> {
        self.by_clause
            .get(subject)
            .map(|said| said.words.clone())
            .unwrap_or_default()
    }
}

/// Each finding's statement about a clause; `None` where they do not conflict.
fn positions<'s, 'a>(
    said: &'s [ClausesOfFinding<'a>],
    subject: &str,
    clause: &Named<'_>,
) -> Option<Vec<(&'s ClausesOfFinding<'a>, bool)>> {
    let held = said
        .iter()
        .filter_map(|said| Some((said, said.holds(subject, clause.relied_on)?)));
    let held: Vec<_> = held.collect();
    let contested =
        held.iter().any(|(_, present)| *present) && held.iter().any(|(_, present)| !*present);
    contested.then_some(held)
}

fn of_clause<'a>(
    said: &[ClausesOfFinding<'a>],
    subject: &str,
    clause: &Named<'_>,
) -> Option<Found<'a>> {
    let positions = positions(said, subject, clause)?
        .into_iter()
        .map(|(said, present)| {
            let text = if present { "present" } else { "not found" };
            Held::new(said.received, text, &json!(present), said.words(subject))
        });
    Some(Found {
        kind: ConflictType::ClausePresenceDisagreement,
        topic: format!("Clause {:?} presence", clause.name),
        stake: 0.7,
        held: positions.collect(),
        subject: clause.name.to_owned(),
    })
}
