//! The form of the rule files, and how they are loaded.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clause::Clause;
use crate::facts::{FactKind, Pick};
use crate::patterns::Patterns;
use crate::reviewer::ROLES;
use crate::text::Sentence;
use crate::wording::Unit;

/// Why a reviewer cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No role has this name.
    #[error("unknown role {0:?}; the roles are {roles}", roles = ROLES.map(|(name, _)| name).join(", "))]
    UnknownRole(String),
    /// The file is not TOML, or it has a field, a name or a pattern that is not valid.
    #[error("rules/{file} is not valid: {source}")]
    Invalid {
        /// The name of the file.
        file: String,
        /// What is wrong, and in which line.
        source: toml::de::Error,
    },
    /// A clause type has two rules, so that one of them would never count.
    #[error("rules/{file} has two rules for {clause:?}; write their patterns into one")]
    Duplicate {
        /// The name of the file.
        file: String,
        /// The name of the clause type.
        clause: &'static str,
    },
    /// A recommendation could never be given, because a harsher one begins at the same score or
    /// below.
    #[error("rules/{file}: recommend_from must rise from negotiate to escalate to reject")]
    Thresholds {
        /// The name of the file.
        file: String,
    },
}

/// The rules of one reviewer: the content of `rules/<role>.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// The confidence, 0 to 1, of a finding without any clause. It rises with the clauses found.
    pub(crate) base_confidence: f64,
    /// How the reviewer scores a contract. Without it the reviewer reports clauses and gives no
    /// opinion.
    pub(crate) assessment: Option<Assessment>,
    /// One rule for each clause type that the reviewer knows. Points of equal severity are reported
    /// in this order.
    pub(crate) clauses: Vec<ClauseRule>,
    /// The facts that the reviewer reads.
    pub(crate) facts: Vec<FactRule>,
}

/// The check that a quoted sentence has to pass: the content of `rules/evidence.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvidenceCheck {
    /// What every reviewer accepts as a clause.
    pub(crate) clauses: Vec<ClauseRule>,
    /// What every reviewer accepts as the statement of a fact.
    pub(crate) facts: Vec<FactRule>,
}

/// How severe a point is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Worth knowing.
    Info,
    /// Acceptable.
    Low,
    /// To be watched.
    Medium,
    /// To be changed before signing.
    High,
    /// A reason not to sign.
    Critical,
}

/// How a reviewer scores a contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assessment {
    /// The risk score, 0 to 100, before the points of the clauses are added.
    pub(crate) base_score: i32,
    /// The lowest severity that is reported.
    pub(crate) report_from: Severity,
    /// Below all of these the recommendation is `sign`.
    pub(crate) recommend_from: Thresholds,
}

/// The risk scores, 0 to 100, from which the reviewer gives each recommendation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Thresholds {
    pub(crate) negotiate: i32,
    pub(crate) escalate: i32,
    pub(crate) reject: i32,
}

impl Thresholds {
    fn rise(&self) -> bool {
        self.negotiate < self.escalate && self.escalate < self.reject
    }
}

/// How one clause type is recognised, and what it means for the contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClauseRule {
    pub(crate) clause: Clause,
    /// The points that it adds to the risk score. A protection has negative points.
    #[serde(default)]
    pub(crate) points: Points,
    /// The severity of the clause. A clause without one is not reported.
    #[serde(default)]
    pub(crate) severity: Severities,
    /// What changes the severity of a clause that was found.
    pub(crate) severity_change: Option<SeverityChange>,
    /// Patterns of which one has to match the sentence.
    pub(crate) any_of: Patterns,
    /// Patterns of which one has to match as well; an empty list asks for nothing.
    #[serde(default)]
    pub(crate) and_any_of: Patterns,
    /// Patterns of which none may match.
    #[serde(default)]
    pub(crate) none_of: Patterns,
}

impl ClauseRule {
    /// Returns true if `sentence` is a clause of this type.
    pub(crate) fn is_match(&self, sentence: &Sentence) -> bool {
        self.any_of.is_match(sentence)
            && (self.and_any_of.is_empty() || self.and_any_of.is_match(sentence))
            && !self.none_of.is_match(sentence)
    }
}

/// Points of risk for a clause that was found, and for one that is missing.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Points {
    pub(crate) found: i32,
    pub(crate) missing: i32,
}

/// The severity of a clause that was found, and of one that is missing.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Severities {
    pub(crate) found: Option<Severity>,
    pub(crate) missing: Option<Severity>,
}

/// A change of severity to `to`, if the condition `when` holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeverityChange {
    pub(crate) to: Severity,
    pub(crate) when: Condition,
}

/// What changes the severity of a clause.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    /// This other clause was found.
    Found(Clause),
    /// This other clause is missing.
    Missing(Clause),
    /// A sentence of the clause matches one of these patterns.
    Wording(Patterns),
}

/// How a reviewer reads one fact.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactRule {
    pub(crate) fact: FactKind,
    /// Which value counts if the contract states several.
    #[serde(default)]
    pub(crate) pick: Pick,
    /// The unit of a length of time. Without it the unit of the contract stays.
    pub(crate) unit: Option<Unit>,
    /// Patterns of which one has to match the sentence.
    pub(crate) any_of: Patterns,
    /// Patterns of which none may match.
    #[serde(default)]
    pub(crate) none_of: Patterns,
}

impl FactRule {
    /// Returns true if `sentence` states the fact.
    pub(crate) fn is_match(&self, sentence: &Sentence) -> bool {
        self.any_of.is_match(sentence) && !self.none_of.is_match(sentence)
    }
}

/// Reads a rule file from its text; `file` names it in errors.
///
/// # Errors
///
/// If the text is not TOML, has an unknown field or name, or has a pattern that is not a regular
/// expression.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|source| Error::Invalid {
        file: file.to_owned(),
        source,
    })
}

/// Checks that every recommendation of `rules` can be given.
///
/// # Errors
///
/// If the thresholds do not rise.
pub(crate) fn check_thresholds(file: &str, rules: &Rules) -> Result<(), Error> {
    match &rules.assessment {
        Some(Assessment { recommend_from, .. }) if !recommend_from.rise() => {
            Err(Error::Thresholds {
                file: file.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Checks that no clause type has two rules.
///
/// # Errors
///
/// If one has.
pub(crate) fn check_unique(file: &str, rules: &[ClauseRule]) -> Result<(), Error> {
    let mut seen = Vec::new();
    for rule in rules {
        if seen.contains(&rule.clause) {
            return Err(Error::Duplicate {
                file: file.to_owned(),
                clause: rule.clause.name(),
            });
        }
        seen.push(rule.clause);
    }
    Ok(())
}
