//! The types of conflict: the rule by which each type is found, and what the algorithms need to
//! know about it.
//!
//! [`rule_of`] is the table. A new type is a variant of [`ConflictType`], a file in this folder,
//! and a row in the table.

use std::cmp::Ordering;

use concord_events::ReceivedFinding;
use concord_wire::Fault;
use concord_wire::payload::{Conflict, ConflictType, Position, Resolution};
use concord_wire::policy::Policy;
use serde_json::Value;

use crate::rules::canonical::{
    Allowance, Canonical, canonical, in_unit_of, normalise, number_in_base_unit,
};
use crate::rules::size_budget::truncate::{self, Room};

pub(crate) mod about;
mod clause_presence;
mod comparable;
mod estimate;
mod factual;
mod recommendation;
mod risk_score;
mod said;
mod severity;

pub(crate) use clause_presence::{contested as contested_clauses, presence};
pub(crate) use comparable::{check_proved, check_resolution, is_same_resolution, meant};
pub(crate) use estimate::{
    incomparable as incomparable_estimates, subject_of as estimate_subject, value as estimate_value,
};
pub(crate) use factual::escaped;
pub(crate) use recommendation::{is_abstention, word as recommendation_word};
pub(crate) use risk_score::score;
pub(crate) use said::{check_party, number_of};
pub(crate) use severity::severity;

/// The subject of conflicts and challenges about the risk score.
pub(crate) const RISK_SCORE: &str = "risk_score";
/// The subject of conflicts and challenges about the recommendation.
pub(crate) const RECOMMENDATION: &str = "recommendation";
/// The subject of challenges about the severity of a finding.
pub(crate) const SEVERITY: &str = "severity";

/// One type of conflict.
pub(crate) trait ConflictRule: Sync {
    /// Calls `offer` with each conflict of this type among the findings, which are in the order of
    /// their senders.
    fn find<'a>(
        &self,
        policy: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    );

    /// Whether it is about the score or the recommendation, of which a case has one. Such conflicts
    /// are never left out.
    fn is_about_the_result(&self) -> bool {
        false
    }

    /// A position in comparable form: its value where it has one, else its words.
    fn comparable(&self, _policy: &Policy, position: &Position) -> Canonical {
        compared(position)
    }

    /// The value that a position in words states: `Risk score: 50` states 50. None where the words state none by this rule.
    fn value_in_words(&self, _policy: &Policy, _: &Conflict, _words: &str) -> Option<Value> {
        None
    }

    /// Whether what it is about may be a quantity that is no part of the result: words state it where numbers were held.
    fn is_of_quantities(&self) -> bool {
        false
    }

    /// The value that words state and nothing else; none where they could be about something else. It is no other one than a value beside them.
    fn plain_words(&self, _: &Policy, conflict: &Conflict, words: &str) -> Option<Value> {
        said::number_in_words(conflict, words)
    }

    /// What a resolution's value must be, in words, where this one is something else; the result of a case could not have it.
    fn wanted_instead(&self, _value: &Value) -> Option<&'static str> {
        None
    }

    /// How far two numbers about this subject may differ and still be the same position.
    fn allowance(&self, _policy: &Policy, _subject: &str) -> Allowance {
        Allowance::default()
    }

    /// Whether positions of this type are numbers.
    fn is_of_numbers(&self) -> bool {
        false
    }

    /// Whether caution is a matter of the metric, wherever it is compared.
    fn is_compared_by_metric(&self) -> bool {
        false
    }

    /// Two values as numbers that can be compared; none where they cannot.
    fn numbers(&self, a: &Value, b: &Value) -> Option<(f64, f64)> {
        numbers(a, b)
    }

    /// The metric that a conflict with this subject is about.
    fn metric(&self, subject: &str) -> String {
        subject.to_owned()
    }

    /// The names under which a rule of caution for a conflict with this subject may stand, the nearest first.
    fn metrics(&self, subject: &str) -> Vec<String> {
        vec![self.metric(subject)]
    }

    /// The value as the result reads it: the score 90 of the text `"90"`. What the result cannot read stays as it is.
    fn in_result(&self, value: &Value) -> Value {
        value.clone()
    }

    /// `Greater` when `a` is more cautious than `b`; `None` where caution decides nothing about
    /// conflicts of this type.
    fn compare_caution(&self, _policy: &Policy, _a: &Value, _b: &Value) -> Option<Ordering> {
        None
    }

    /// The rule of [`compare_caution`](Self::compare_caution), for a reader.
    fn caution_in_words(&self, _policy: &Policy) -> Option<String> {
        None
    }
}

/// A position in the form in which positions are compared that no other rule concerns.
fn compared(position: &Position) -> Canonical {
    match &position.value {
        Some(value) if !value.is_null() => canonical(value, None),
        _ => Canonical::Text(normalise(&position.position)),
    }
}

/// The table of the types of conflict.
pub(crate) fn rule_of(kind: ConflictType) -> &'static dyn ConflictRule {
    match kind {
        ConflictType::RecommendationConflict => &recommendation::Recommendation,
        ConflictType::RiskScoreDisagreement => &risk_score::RiskScore,
        ConflictType::SeverityDisagreement => &severity::SeverityOfTopic,
        ConflictType::ClausePresenceDisagreement => &clause_presence::ClausePresence,
        ConflictType::FactualDisagreement => &factual::Factual,
        ConflictType::EstimateDisagreement => &estimate::EstimateOfMetric,
        ConflictType::Challenge => &Challenge,
    }
}

/// The rule of what a conflict is about in the result: a challenge's subject says that, and values that say whether a clause is there.
pub(crate) fn rule_about<'v>(
    kind: ConflictType,
    subject: &str,
    values: impl IntoIterator<Item = &'v Value>,
) -> &'static dyn ConflictRule {
    let kind = match (kind, normalise(subject).as_str()) {
        (ConflictType::Challenge, RISK_SCORE) => ConflictType::RiskScoreDisagreement,
        (ConflictType::Challenge, RECOMMENDATION) => ConflictType::RecommendationConflict,
        (ConflictType::Challenge, SEVERITY) => ConflictType::SeverityDisagreement,
        (ConflictType::Challenge, _) if values.into_iter().any(Value::is_boolean) => {
            ConflictType::ClausePresenceDisagreement
        }
        (kind, _) => kind,
    };
    rule_of(kind)
}

fn rule_of_result(conflict: &Conflict) -> &'static dyn ConflictRule {
    let positions = conflict.positions.iter();
    let values = positions.filter_map(|position| position.value.as_ref());
    rule_about(conflict.kind, &conflict.subject, values)
}

/// The value that words state as a position in a conflict; where they state none by themselves, that of a position that is held with them.
pub(crate) fn value_in_words(conflict: &Conflict, policy: &Policy, words: &str) -> Option<Value> {
    let rule = rule_of_result(conflict);
    let stated = match rule.is_of_quantities() {
        true => said::quantity_in_words(conflict, words),
        false => rule.value_in_words(policy, conflict, words),
    };
    stated.or_else(|| said::value_held(conflict, words))
}

/// Checks that the value of a person's resolution is one that the result of the case can have.
pub(crate) fn check_value(conflict: &Conflict, value: Option<&Value>) -> Result<(), Fault> {
    let wanted = value.and_then(|value| rule_of_result(conflict).wanted_instead(value));
    let (Some(value), Some(wanted)) = (value, wanted) else {
        return Ok(());
    };
    Err(Fault::invalid(
        "/payload/value",
        format!(
            "{value} is no value that the result can have of {:?}: it must be {wanted}.",
            conflict.subject
        ),
        format!("Give {wanted}, or leave the value out and say it in words."),
    ))
}

/// A resolution that was given in words, with the value that they state.
pub fn valued(conflict: &Conflict, policy: &Policy, resolution: Resolution) -> Resolution {
    let in_words = || value_in_words(conflict, policy, &resolution.position);
    Resolution {
        value: resolution.value.clone().or_else(in_words),
        ..resolution
    }
}

/// What the value of a position must be that was given in words only, where they state none that the result of the case or what rests on it can
/// have: they decide nothing of it. None where they do, and where the debate is about neither.
pub fn value_wanted(
    conflict: &Conflict,
    policy: &Policy,
    (words, value): (&str, Option<&Value>),
) -> Option<&'static str> {
    if value.is_some() || value_in_words(conflict, policy, words).is_some() {
        return None;
    }
    let rule = rule_of_result(conflict);
    let is_quantity = rule.is_of_quantities() && comparable::is_quantity(conflict);
    match is_quantity {
        true => Some(QUANTITY),
        false => rule.wanted_instead(&Value::Null),
    }
}

/// Whether a position states no value where numbers or clauses are compared, or what else the result has a value of: nobody can say whether those
/// who hold another one were right.
pub(crate) fn is_valueless(conflict: &Conflict, policy: &Policy, one: &Resolution) -> bool {
    value_wanted(conflict, policy, (&one.position, one.value.as_ref())).is_some()
}

/// What the value of a quantity must be, in words.
const QUANTITY: &str = "a number in a unit of what was held";

/// A challenge is asked for. It is never found among findings.
struct Challenge;

impl ConflictRule for Challenge {
    fn find<'a>(&self, _: &Policy, _: &[&'a ReceivedFinding], _: &mut dyn FnMut(Found<'a>)) {}

    fn is_of_quantities(&self) -> bool {
        true
    }

    /// An estimate may be challenged by what it is of: `acme/operating margin`.
    fn metric(&self, subject: &str) -> String {
        estimate::metric_of(subject)
    }

    fn numbers(&self, a: &Value, b: &Value) -> Option<(f64, f64)> {
        numbers_as_meant(a, b)
    }
}

/// Two values as numbers in one base unit; none where one is no number, or they cannot be converted.
fn numbers(a: &Value, b: &Value) -> Option<(f64, f64)> {
    let (a, dimension) = number_in_base_unit(a)?;
    let (b, of_other) = number_in_base_unit(b)?;
    (dimension == of_other).then_some((a, b))
}

/// The same, where a number without a unit is meant in that of the other one.
fn numbers_as_meant(a: &Value, b: &Value) -> Option<(f64, f64)> {
    let (one, other) = (in_unit_of(a, [b.clone()]), in_unit_of(b, [a.clone()]));
    numbers(&one, &other)
}

/// How risk scores and severities are compared, for a reader.
pub(crate) const HIGHEST_IS_CAUTIOUS: &str = "the highest risk or severity is the cautious one";

/// A conflict as a rule finds it, before it has an id and a weight.
pub(crate) struct Found<'a> {
    pub(crate) kind: ConflictType,
    pub(crate) topic: String,
    pub(crate) subject: String,
    /// How much the result depends on it, 0 to 1.
    pub(crate) stake: f64,
    /// What each party holds, ordered by agent id.
    pub(crate) held: Vec<Held<'a>>,
}

/// The position of one party, and what it rests on.
pub(crate) struct Held<'a> {
    /// The position without evidence and reasoning. The room for them is not known yet.
    pub(crate) position: Position,
    /// The finding on which the position rests.
    received: &'a ReceivedFinding,
    /// What the finding says about this point. It is shown before the finding's evidence.
    words: Vec<&'a str>,
}

impl<'a> Held<'a> {
    /// The position of the finding's sender about one point.
    fn new(received: &'a ReceivedFinding, text: &str, value: &Value, words: Vec<&'a str>) -> Self {
        debug_assert!(
            (0.0..=1.0).contains(&received.confidence),
            "a confidence is 0 to 1, not {}",
            received.confidence
        );
        let position = Position {
            agent_id: received.agent_id.clone(),
            position: truncate::words(text),
            value: Some(truncate::value(value)),
            confidence: received.confidence,
            evidence: Vec::new(),
            reasoning: None,
            evidence_omitted: 0,
        };
        Self {
            position,
            received,
            words,
        }
    }

    /// The position with as much of the finding's evidence as there is room for.
    pub(crate) fn with_room(&self, room: Room) -> Position {
        let finding = &self.received.finding;
        let evidence = self
            .words
            .iter()
            .copied()
            .chain(finding.evidence.iter().map(String::as_str));
        let support = truncate::support(Some(&finding.summary), evidence, room);
        Position {
            evidence: support.evidence,
            reasoning: support.reasoning,
            evidence_omitted: support.omitted,
            ..self.position.clone()
        }
    }
}

#[cfg(test)]
mod tests;
