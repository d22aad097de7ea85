//! What a debate is about, and what a reviewer holds on it.

use serde_json::{Value, json};

use crate::clause::Clause;
use crate::facts;
use crate::question::{Conflict, Kind};
use crate::review::Review;
use crate::reviewer::Reviewer;
use crate::rules::Condition;

/// Why a question cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The conflict names nothing that the panel knows.
    #[error("conflict.subject {0:?} is not known here")]
    UnknownSubject(String),
}

/// What a question is about, in terms of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    RiskScore,
    Recommendation,
    Presence(Clause),
    Severity(Clause),
    /// A fact by its name, `<subject>/<attribute>`.
    Fact(String),
    /// A topic outside the rules, on which the reviewer keeps its position.
    Unknown,
}

impl Subject {
    pub(crate) fn of(conflict: &Conflict) -> Result<Self, Error> {
        let named = conflict.subject.as_deref();
        let name = named.or(conflict.topic.as_deref()).unwrap_or_default();
        let clause = Clause::parse(name);
        match conflict.kind {
            Kind::RiskScoreDisagreement => Ok(Self::RiskScore),
            Kind::RecommendationConflict => Ok(Self::Recommendation),
            Kind::ClausePresenceDisagreement => clause
                .map(Self::Presence)
                .ok_or_else(|| Error::UnknownSubject(name.to_owned())),
            Kind::SeverityDisagreement => Ok(clause.map_or(Self::Unknown, Self::Severity)),
            Kind::FactualDisagreement => Ok(Self::Fact(name.to_owned())),
        }
    }

    /// What `review` holds on the subject, in a form that can be compared.
    pub(crate) fn value(&self, review: &Review<'_>) -> Option<Value> {
        match self {
            Self::RiskScore => review.score().map(|score| json!(score)),
            Self::Recommendation => review.recommendation().map(|advice| json!(advice)),
            Self::Presence(clause) => Some(json!(review.has(*clause))),
            Self::Severity(clause) => review.severity(*clause).map(|severity| json!(severity)),
            Self::Fact(name) => review.fact(name).map(|fact| match fact.unit {
                Some(unit) => json!({ "value": fact.value, "unit": unit }),
                None => fact.value.clone(),
            }),
            Self::Unknown => None,
        }
    }

    /// The clause types that matter for the subject.
    pub(crate) fn clauses(&self, reviewer: &Reviewer) -> Vec<Clause> {
        match self {
            Self::RiskScore | Self::Recommendation => reviewer.known_clauses().collect(),
            Self::Presence(clause) => vec![*clause],
            Self::Severity(clause) => {
                let change = reviewer
                    .rule(*clause)
                    .and_then(|rule| rule.severity_change.as_ref());
                match change.map(|change| &change.when) {
                    Some(Condition::Found(other) | Condition::Missing(other)) => {
                        vec![*clause, *other]
                    }
                    Some(Condition::Wording(_)) | None => vec![*clause],
                }
            }
            Self::Fact(_) | Self::Unknown => Vec::new(),
        }
    }
}

/// Returns true if two positions, in comparable form, mean the same.
pub(crate) fn agree(left: &Value, right: &Value) -> bool {
    !left.is_null() && !right.is_null() && facts::is_same(parts(left), parts(right))
}

/// The value and the unit of a position.
fn parts(value: &Value) -> (&Value, Option<&str>) {
    value.get("value").map_or((value, None), |inner| {
        (inner, value.get("unit").and_then(Value::as_str))
    })
}

/// A position in words.
pub(crate) fn in_words(value: &Value) -> String {
    let (value, unit) = parts(value);
    let text = match value {
        Value::Bool(true) => "present".to_owned(),
        Value::Bool(false) => "absent".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match unit {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    }
}
