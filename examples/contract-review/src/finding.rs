//! The finding that a reviewer sends: the result of a review as JSON.

use serde::Serialize;
use serde_json::Value;

use crate::clause::Clause;
use crate::facts::Fact;
use crate::review::{Point, Review};
use crate::reviewer::Role;
use crate::severity::Severity;

/// The payload of a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The result in a sentence or two.
    pub summary: String,
    /// The risk score, 0 to 100; absent if the reviewer gives no opinion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<i32>,
    /// The highest severity reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The recommendation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// The points worth reporting, most severe first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical_findings: Vec<CriticalFinding>,
    /// For each clause type whether it is present; only the clause extractor reports this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<ClauseFinding>,
    /// The clause types the finding relies on.
    pub affected_clauses: Vec<String>,
    /// The facts found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactFinding>,
    /// Sentences of the contract that support the finding.
    pub evidence: Vec<String>,
    /// What the finding assumes.
    pub assumptions: Vec<String>,
}

/// A point worth reporting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CriticalFinding {
    /// The clause type.
    pub topic: String,
    /// The severity.
    pub severity: String,
    /// The reason, with a quote if the clause was found.
    pub detail: String,
}

/// The presence of a clause type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClauseFinding {
    /// The clause type.
    #[serde(rename = "type")]
    pub clause: String,
    /// True if it is present.
    pub present: bool,
    /// The first sentence in which it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A fact of the contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactFinding {
    /// What the fact is about.
    pub subject: String,
    /// The property of the subject.
    pub attribute: String,
    /// The value.
    pub value: Value,
    /// The unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Writes the finding of `review` about the contract with this `title`.
#[must_use]
pub fn write(review: &Review<'_>, title: &str) -> Finding {
    let points = review.points();
    let severity = points
        .first()
        .map_or(Severity::Info, |point| point.severity);
    let score = review.score();
    let clauses = review.found().keys();
    Finding {
        summary: summary(review, title, &points),
        risk_score: score,
        severity: score.map(|_| severity.to_string()),
        recommendation: review.recommendation().map(|advice| advice.to_string()),
        critical_findings: points.iter().map(|point| critical(review, point)).collect(),
        clauses: presence(review),
        affected_clauses: clauses.map(|clause| clause.name().to_owned()).collect(),
        facts: review.facts().iter().map(fact_finding).collect(),
        evidence: evidence(review),
        assumptions: vec![
            "The sentences were read without their order in the contract.".to_owned(),
            "A month counts as 30 days and a year as 12 months.".to_owned(),
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

fn critical(review: &Review<'_>, point: &Point) -> CriticalFinding {
    let detail = match review.sentences(point.clause).first() {
        Some(sentence) => format!("Present: \u{201c}{}\u{201d}", sentence.text()),
        None => "No sentence of this kind was found.".to_owned(),
    };
    CriticalFinding {
        topic: point.clause.name().to_owned(),
        severity: point.severity.to_string(),
        detail,
    }
}

fn presence(review: &Review<'_>) -> Vec<ClauseFinding> {
    let reviewer = review.reviewer();
    if reviewer.role != Role::ClauseExtractor {
        return Vec::new();
    }
    let entry = |clause: Clause| {
        let first = review.sentences(clause).first();
        ClauseFinding {
            clause: clause.name().to_owned(),
            present: first.is_some(),
            text: first.map(|sentence| sentence.text().to_owned()),
        }
    };
    reviewer.known_clauses().map(entry).collect()
}

fn fact_finding(fact: &Fact<'_>) -> FactFinding {
    let (subject, attribute) = fact.kind.names();
    FactFinding {
        subject: subject.to_owned(),
        attribute: attribute.to_owned(),
        value: fact.value.clone(),
        unit: fact.unit.map(str::to_owned),
    }
}

/// The sentences that support the finding. Each clause and fact comes with its first sentence before
/// any comes with its second, so that whoever has to shorten the list cuts repetitions.
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
