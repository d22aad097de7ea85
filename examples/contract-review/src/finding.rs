//! A reading, written down as a finding.

use serde::Serialize;
use serde_json::Value;

use crate::clause::Clause;
use crate::profile::Role;
use crate::reading::{Point, Reading};
use crate::severity::Severity;

/// The payload of a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it comes to, in a sentence or two.
    pub summary: String,
    /// The risk, 0 to 100; absent for a reader that does not judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<i32>,
    /// The gravest severity reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// The points worth reporting, gravest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical_findings: Vec<CriticalFinding>,
    /// Of every clause type whether it is present; only the extractor says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<ClauseFinding>,
    /// The clause types the finding relies on.
    pub affected_clauses: Vec<String>,
    /// Facts read from the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactFinding>,
    /// Sentences of the contract, the first of every clause before the second of any.
    pub evidence: Vec<String>,
    /// What the finding takes for granted.
    pub assumptions: Vec<String>,
}

/// A point worth reporting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CriticalFinding {
    /// The clause type.
    pub topic: String,
    /// How grave it is.
    pub severity: String,
    /// Why, with a quote where there is one.
    pub detail: String,
}

/// Whether a clause type is present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClauseFinding {
    /// The clause type.
    #[serde(rename = "type")]
    pub clause: String,
    /// Whether it is present.
    pub present: bool,
    /// The first sentence it was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactFinding {
    /// What it is about.
    pub subject: String,
    /// Which property of it.
    pub attribute: String,
    /// The value.
    pub value: Value,
    /// The unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Writes `reading` down.
#[must_use]
pub fn write(reading: &Reading<'_>, title: &str) -> Finding {
    let points = reading.points();
    let judges = reading.judges();
    let severity = points
        .first()
        .map_or(Severity::Info, |point| point.severity);
    Finding {
        summary: summary(reading, title, &points),
        risk_score: judges.then(|| reading.score()),
        severity: judges.then(|| severity.to_string()),
        recommendation: judges.then(|| reading.recommendation().to_string()),
        critical_findings: points
            .iter()
            .map(|point| critical(reading, point))
            .collect(),
        clauses: clauses(reading),
        affected_clauses: reading
            .found()
            .keys()
            .map(|clause| clause.name().to_owned())
            .collect(),
        facts: facts(reading),
        evidence: evidence(reading),
        assumptions: vec![
            "The sentences were read without their order in the contract.".to_owned(),
            "A month counts as 30 days and a year as 12 months.".to_owned(),
        ],
    }
}

fn summary(reading: &Reading<'_>, title: &str, points: &[Point]) -> String {
    let role = reading.profile().temper.role;
    let known = reading.profile().interests().count();
    let found = reading.found().len();
    let head = format!("{title}: {found} of {known} clause types found");
    if role == Role::ClauseExtractor {
        return format!("{head}.");
    }
    let gravest: Vec<&str> = points
        .iter()
        .take(3)
        .map(|point| point.clause.name())
        .collect();
    let list = if gravest.is_empty() {
        "nothing of note".to_owned()
    } else {
        gravest.join(", ")
    };
    format!(
        "{head}; risk {}, advice: {}. Gravest: {list}.",
        reading.score(),
        reading.recommendation()
    )
}

fn critical(reading: &Reading<'_>, point: &Point) -> CriticalFinding {
    let detail = match reading.sentences(point.clause).first() {
        Some(sentence) => format!("Present: \u{201c}{}\u{201d}", sentence.text()),
        None => "No sentence of this kind was found.".to_owned(),
    };
    CriticalFinding {
        topic: point.clause.name().to_owned(),
        severity: point.severity.to_string(),
        detail,
    }
}

fn clauses(reading: &Reading<'_>) -> Vec<ClauseFinding> {
    if reading.profile().temper.role != Role::ClauseExtractor {
        return Vec::new();
    }
    let entry = |clause: Clause| ClauseFinding {
        clause: clause.name().to_owned(),
        present: reading.has(clause),
        text: reading
            .sentences(clause)
            .first()
            .map(|sentence| sentence.text().to_owned()),
    };
    reading.profile().interests().map(entry).collect()
}

fn facts(reading: &Reading<'_>) -> Vec<FactFinding> {
    let entry = |fact: &crate::facts::Fact<'_>| {
        let (subject, attribute) = fact.attribute.names();
        FactFinding {
            subject: subject.to_owned(),
            attribute: attribute.to_owned(),
            value: fact.value.clone(),
            unit: fact.unit.map(str::to_owned),
        }
    };
    reading.facts().iter().map(entry).collect()
}

/// The sentences relied on. Every clause and fact comes with its first sentence before any comes
/// with its second, so that whoever has to shorten the list cuts repetitions.
fn evidence(reading: &Reading<'_>) -> Vec<String> {
    let firsts = reading
        .found()
        .values()
        .filter_map(|sentences| sentences.first().copied());
    let facts = reading.facts().iter().map(|fact| fact.sentence);
    let others = reading
        .found()
        .values()
        .flat_map(|sentences| sentences.iter().skip(1).copied());
    let mut evidence: Vec<String> = Vec::new();
    for sentence in firsts.chain(facts).chain(others) {
        if !evidence.iter().any(|quote| quote == sentence.text()) {
            evidence.push(sentence.text().to_owned());
        }
    }
    evidence
}
