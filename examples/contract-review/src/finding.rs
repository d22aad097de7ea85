//! The finding that a reviewer sends: the result of a review as JSON.

use serde::Serialize;
use serde_json::{Value, json};

use crate::clause::Clause;
use crate::facts::Fact;
use crate::review::{Point, Review};
use crate::rules::Severity;

/// The payload of a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// The result in a sentence or two.
    pub(crate) summary: String,
    /// The risk score, 0 to 100; absent if the reviewer gives no opinion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) risk_score: Option<i32>,
    /// The highest severity reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<Severity>,
    /// The recommendation: `sign`, `negotiate`, `escalate` or `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recommendation: Option<&'static str>,
    /// The points worth reporting, most severe first: `topic`, `severity`, `detail`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) critical_findings: Vec<Value>,
    /// For each clause type `type`, `present` and, if it is present, the first sentence as `text`.
    /// Only a reviewer without an opinion reports this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) clauses: Vec<Value>,
    /// The clause types that were found.
    pub(crate) affected_clauses: Vec<&'static str>,
    /// The facts found: `subject`, `attribute`, `value` and, for a number, `unit`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) facts: Vec<Value>,
    /// Sentences of the contract that support the finding.
    pub(crate) evidence: Vec<String>,
    /// What the finding assumes.
    pub(crate) assumptions: [&'static str; 2],
}

/// Writes the finding of `review` about the contract with this `title`.
pub(crate) fn write(review: &Review<'_>, title: &str) -> Finding {
    let points = review.points();
    let score = review.score();
    let highest = points
        .first()
        .map_or(Severity::Info, |point| point.severity);
    let clauses = review
        .reviewer()
        .known_clauses()
        .map(|clause| presence(review, clause));
    Finding {
        summary: summary(review, title, &points),
        risk_score: score,
        severity: score.map(|_| highest),
        recommendation: review.recommendation(),
        critical_findings: points.iter().map(|point| critical(review, point)).collect(),
        clauses: if score.is_none() {
            clauses.collect()
        } else {
            Vec::new()
        },
        affected_clauses: review.found().keys().map(|clause| clause.name()).collect(),
        facts: review.facts().iter().map(fact_finding).collect(),
        evidence: evidence(review),
        assumptions: [
            "The sentences were read without their order in the contract.",
            "A month counts as 30 days and a year as 12 months.",
        ],
    }
}

fn summary(review: &Review<'_>, title: &str, points: &[Point]) -> String {
    let known = review.reviewer().rules.clauses.len();
    let found = review.found().len();
    let head = format!("{title}: {found} of {known} clause types found");
    let (Some(score), Some(recommendation)) = (review.score(), review.recommendation()) else {
        return format!("{head}.");
    };
    let topics: Vec<&str> = points
        .iter()
        .take(3)
        .map(|point| point.clause.name())
        .collect();
    let list = if topics.is_empty() {
        "nothing of note".to_owned()
    } else {
        topics.join(", ")
    };
    format!("{head}; risk {score}, advice: {recommendation}. Gravest: {list}.")
}

fn critical(review: &Review<'_>, point: &Point) -> Value {
    let detail = match review.sentences(point.clause).first() {
        Some(sentence) => format!("Present: \u{201c}{}\u{201d}", sentence.text()),
        None => "No sentence of this kind was found.".to_owned(),
    };
    json!({ "topic": point.clause.name(), "severity": point.severity, "detail": detail })
}

fn presence(review: &Review<'_>, clause: Clause) -> Value {
    match review.sentences(clause).first() {
        Some(first) => json!({ "type": clause.name(), "present": true, "text": first.text() }),
        None => json!({ "type": clause.name(), "present": false }),
    }
}

fn fact_finding(fact: &Fact<'_>) -> Value {
    let (subject, attribute) = fact.kind.names();
    let value = &fact.value;
    match fact.unit {
        Some(unit) => {
            json!({ "subject": subject, "attribute": attribute, "value": value, "unit": unit })
        }
        None => json!({ "subject": subject, "attribute": attribute, "value": value }),
    }
}

/// The sentences that support the finding. Each clause and fact comes with its first sentence
/// before any comes with its second, so that whoever has to shorten the list cuts repetitions.
fn evidence(review: &Review<'_>) -> Vec<String> {
    let clauses = review.found().values();
    let firsts = clauses
        .clone()
        .filter_map(|sentences| sentences.first().copied());
    let facts = review.facts().iter().map(|fact| fact.sentence);
    let others = clauses.flat_map(|sentences| sentences.iter().skip(1).copied());
    let mut evidence: Vec<String> = Vec::new();
    for sentence in firsts.chain(facts).chain(others) {
        if !evidence.iter().any(|quote| quote == sentence.text()) {
            evidence.push(sentence.text().to_owned());
        }
    }
    evidence
}
