//! What a debate is about, and what a reader holds on it.

use std::fmt;

use serde_json::{Value, json};

use crate::clause::Clause;
use crate::facts;
use crate::profile::{Profile, Turn};
use crate::question::{Conflict, Kind};
use crate::reading::Reading;

/// Why a question cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The conflict names nothing this panel knows.
    UnknownSubject(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSubject(subject) => {
                write!(out, "conflict.subject {subject:?} is not known here")
            }
        }
    }
}

impl std::error::Error for Error {}

/// What a question is about, in the reader's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Matter {
    Score,
    Presence(Clause),
    Gravity(Clause),
    Advice,
    Fact(String),
    /// Something outside the reader's rules, on which it keeps what it holds.
    Foreign,
}

impl Matter {
    pub(crate) fn of(conflict: &Conflict) -> Result<Self, Error> {
        let subject = conflict
            .subject
            .as_deref()
            .or(conflict.topic.as_deref())
            .unwrap_or_default();
        let clause = || Clause::parse(subject);
        match conflict.kind {
            Kind::RiskScoreDisagreement => Ok(Self::Score),
            Kind::RecommendationConflict => Ok(Self::Advice),
            Kind::ClausePresenceDisagreement => clause()
                .map(Self::Presence)
                .ok_or_else(|| Error::UnknownSubject(subject.to_owned())),
            Kind::SeverityDisagreement => Ok(clause().map_or(Self::Foreign, Self::Gravity)),
            Kind::FactualDisagreement => Ok(Self::Fact(subject.to_owned())),
        }
    }

    /// What `reading` holds on the matter, in comparable form.
    pub(crate) fn value(&self, reading: &Reading<'_>) -> Option<Value> {
        match self {
            Self::Score => reading.judges().then(|| json!(reading.score())),
            Self::Advice => reading
                .judges()
                .then(|| json!(reading.recommendation().to_string())),
            Self::Presence(clause) => Some(json!(reading.has(*clause))),
            Self::Gravity(clause) => reading
                .severity(*clause)
                .map(|severity| json!(severity.to_string())),
            Self::Fact(name) => reading
                .facts()
                .iter()
                .find(|fact| names(fact.attribute) == *name)
                .map(|fact| match fact.unit {
                    Some(unit) => json!({ "value": fact.value, "unit": unit }),
                    None => fact.value.clone(),
                }),
            Self::Foreign => None,
        }
    }

    /// The clause types that bear on the matter.
    pub(crate) fn scope(&self, profile: &Profile) -> Vec<Clause> {
        match self {
            Self::Score | Self::Advice => profile.interests().collect(),
            Self::Presence(clause) => vec![*clause],
            Self::Gravity(clause) => {
                let mut concerns = profile.temper.concerns.iter();
                match concerns
                    .find(|concern| concern.clause == *clause)
                    .map(|concern| concern.turn)
                {
                    Some(Turn::With(other, _) | Turn::Without(other, _)) => vec![*clause, other],
                    _ => vec![*clause],
                }
            }
            Self::Fact(_) | Self::Foreign => Vec::new(),
        }
    }
}

/// The name of an attribute as conflicts spell it: `<subject>/<attribute>`.
pub(crate) fn names(attribute: facts::Attribute) -> String {
    let (subject, attribute) = attribute.names();
    format!("{subject}/{attribute}")
}

/// Whether two structured positions say the same.
pub(crate) fn agree(left: &Value, right: &Value) -> bool {
    if left.is_null() || right.is_null() {
        return false;
    }
    facts::same(parts(left), parts(right))
}

fn parts(value: &Value) -> (&Value, Option<&str>) {
    value.get("value").map_or((value, None), |inner| {
        (inner, value.get("unit").and_then(Value::as_str))
    })
}

/// A structured position in words.
pub(crate) fn words(value: &Value) -> String {
    let (value, unit) = parts(value);
    let text = match value {
        Value::Bool(true) => "present".to_owned(),
        Value::Bool(false) => "absent".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    unit.map_or_else(|| text.clone(), |unit| format!("{text} {unit}"))
}
