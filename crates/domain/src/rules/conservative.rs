//! Which of two positions is the more cautious one. Used to break ties, and where a dispute stays open.

use std::cmp::Ordering;

use concord_wire::payload::ConflictType;
use concord_wire::policy::{CautionRule, Policy};
use serde_json::Value;

use crate::rules::canonical::normalise;

/// `Greater` when `a` is more cautious than `b`; `Equal` where caution does not decide.
///
/// - risk score: the higher;
/// - severity: the more serious;
/// - recommendation: the earlier in the policy's `caution_order`;
/// - clause presence: "not found", for nobody should rely on a clause that one reader did not find;
/// - facts: none is more cautious than another.
pub fn compare(
    kind: ConflictType,
    policy: &Policy,
    a: Option<&Value>,
    b: Option<&Value>,
) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else {
        return Ordering::Equal;
    };
    match kind {
        ConflictType::RiskScoreDisagreement => number(a).total_cmp(&number(b)),
        ConflictType::SeverityDisagreement => severity_rank(a).cmp(&severity_rank(b)),
        ConflictType::RecommendationConflict => {
            recommendation_rank(policy, b).cmp(&recommendation_rank(policy, a))
        }
        ConflictType::ClausePresenceDisagreement => {
            (a == &Value::Bool(false)).cmp(&(b == &Value::Bool(false)))
        }
        ConflictType::FactualDisagreement | ConflictType::Challenge => Ordering::Equal,
    }
}

/// Metrics of which the lower value is the more cautious one. A metric's name is compared by its words, so `price_target`
/// and `target price of ACME` are both a price target.
const LOWEST: [&str; 13] = [
    "price",
    "target",
    "growth",
    "margin",
    "revenue",
    "earnings",
    "cash flow",
    "fcf",
    "multiple",
    "upside",
    "confidence",
    "probability of success",
    "market share",
];
/// Metrics of which the higher value is the more cautious one; they are looked for first.
const HIGHEST: [&str; 9] = [
    "risk",
    "severity",
    "discount rate",
    "wacc",
    "cost",
    "loss",
    "churn",
    "leverage",
    "probability of default",
];

/// `Greater` when `a` is more cautious than `b` about this subject: by the policy's rule for the metric, by the kind of
/// conflict, or by the rules for metrics that everyone has.
pub fn compare_about(
    kind: ConflictType,
    subject: &str,
    policy: &Policy,
    a: Option<&Value>,
    b: Option<&Value>,
) -> Ordering {
    let (Some(one), Some(other)) = (a, b) else {
        return Ordering::Equal;
    };
    let own = policys_rule(subject, policy);
    match own.or_else(|| usual_rule(subject).filter(|_| is_silent(kind))) {
        Some(rule) => by_rule(&rule, one, other),
        None => compare(kind, policy, a, b),
    }
}

/// The rule that decides about this subject, for a reader.
pub fn rule_in_words(kind: ConflictType, subject: &str, policy: &Policy) -> String {
    let own = policys_rule(subject, policy);
    match (
        own.or_else(|| usual_rule(subject).filter(|_| is_silent(kind))),
        kind,
    ) {
        (Some(CautionRule::Lowest), _) => {
            format!("of {subject} the lowest value is the cautious one")
        }
        (Some(CautionRule::Highest), _) => {
            format!("of {subject} the highest value is the cautious one")
        }
        (Some(CautionRule::Order(order)), _) => {
            format!("{subject} in the order {}", order.join(", "))
        }
        (None, ConflictType::RecommendationConflict) => {
            format!(
                "recommendations in the order {}",
                policy.caution_order.join(", ")
            )
        }
        (None, ConflictType::ClausePresenceDisagreement) => {
            "a clause that one reader did not find is not relied on".to_owned()
        }
        (None, _) => "the highest risk or severity is the cautious one".to_owned(),
    }
}

/// Whether the kind of conflict says nothing of caution.
fn is_silent(kind: ConflictType) -> bool {
    matches!(
        kind,
        ConflictType::FactualDisagreement | ConflictType::Challenge
    )
}

fn policys_rule(subject: &str, policy: &Policy) -> Option<CautionRule> {
    let subject = words(subject);
    policy
        .ladder
        .caution
        .iter()
        .find(|(metric, _)| words(metric) == subject)
        .map(|(_, rule)| rule.clone())
}

fn usual_rule(subject: &str) -> Option<CautionRule> {
    let named = format!(" {} ", words(subject));
    let speaks_of = |names: &[&str]| {
        names
            .iter()
            .any(|name| named.contains(&format!(" {name} ")))
    };
    let highest = speaks_of(&HIGHEST).then_some(CautionRule::Highest);
    highest.or_else(|| speaks_of(&LOWEST).then_some(CautionRule::Lowest))
}

/// A metric's name as words.
fn words(name: &str) -> String {
    normalise(&name.replace(['_', '-', '/'], " "))
}

fn by_rule(rule: &CautionRule, a: &Value, b: &Value) -> Ordering {
    match rule {
        CautionRule::Highest => numeric(a)
            .zip(numeric(b))
            .map_or(Ordering::Equal, |(a, b)| a.total_cmp(&b)),
        CautionRule::Lowest => numeric(a)
            .zip(numeric(b))
            .map_or(Ordering::Equal, |(a, b)| b.total_cmp(&a)),
        CautionRule::Order(order) => {
            let rank = |value: &Value| {
                let name = value.as_str().map(normalise).unwrap_or_default();
                order
                    .iter()
                    .position(|other| normalise(other) == name)
                    .unwrap_or(usize::MAX)
            };
            rank(b).cmp(&rank(a))
        }
    }
}

/// A number, also where it was written as a text: `85`, `"$85"`, `"28%"`.
fn numeric(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text,
        _ => return None,
    };
    let digits: String = text
        .chars()
        .filter(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        .collect();
    digits.parse().ok()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NEG_INFINITY)
}

fn severity_rank(value: &Value) -> usize {
    let name = value.as_str().map(normalise).unwrap_or_default();
    ["info", "low", "medium", "high", "critical"]
        .iter()
        .position(|s| *s == name)
        .map_or(0, |rank| rank + 1)
}

/// Place in the policy's order, 0 for the most cautious.
fn recommendation_rank(policy: &Policy, value: &Value) -> usize {
    let name = value.as_str().map(normalise).unwrap_or_default();
    policy
        .caution_order
        .iter()
        .position(|other| normalise(other) == name)
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConflictType as T;
    use serde_json::json;

    #[test]
    fn the_more_cautious_position_is_known_by_type() {
        let policy = Policy::contract_review();
        for (kind, cautious, other) in [
            (T::RiskScoreDisagreement, json!(80), json!(35)),
            (T::SeverityDisagreement, json!("critical"), json!("low")),
            (T::SeverityDisagreement, json!("info"), json!("nonsense")),
            (T::RecommendationConflict, json!("reject"), json!("sign")),
            (
                T::RecommendationConflict,
                json!("sign"),
                json!("something else"),
            ),
            (T::ClausePresenceDisagreement, json!(false), json!(true)),
        ] {
            assert_eq!(
                compare(kind, &policy, Some(&cautious), Some(&other)),
                Ordering::Greater,
                "{kind:?}"
            );
            assert_eq!(
                compare(kind, &policy, Some(&other), Some(&cautious)),
                Ordering::Less,
                "{kind:?}"
            );
        }
        assert_eq!(
            compare(
                T::FactualDisagreement,
                &policy,
                Some(&json!(1)),
                Some(&json!(2))
            ),
            Ordering::Equal
        );
    }
}
