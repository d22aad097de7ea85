//! Compares positions by caution: to break ties, and to choose where a conflict stays open.

use std::cmp::Ordering;

use concord_wire::payload::ConflictType;
use concord_wire::policy::{CautionRule, NameKind, Policy};
use serde_json::Value;

use crate::rules::canonical::{normalise, sign};
use crate::rules::conflict_type::{ConflictRule, HIGHEST_IS_CAUTIOUS, rule_about, rule_of};

/// `Greater` when `a` is more cautious than `b` by the rule of the
/// [type](crate::rules::conflict_type) of conflict, of estimates by that for the metric; `Equal`
/// where caution does not decide.
pub fn compare(
    kind: ConflictType,
    subject: &str,
    policy: &Policy,
    a: Option<&Value>,
    b: Option<&Value>,
) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else {
        return Ordering::Equal;
    };
    if rule_of(kind).is_compared_by_metric() {
        return compare_about(kind, subject, policy, Some(a), Some(b));
    }
    rule_of(kind)
        .compare_caution(policy, a, b)
        .unwrap_or(Ordering::Equal)
}

/// Metrics of which the lower value is the more cautious one. The name of a metric is compared by
/// its words, so `price_target` and `target price of ACME` are both price targets.
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

/// `Greater` when `a` is more cautious than `b` about this subject: by the policy's rule for the
/// metric, else by the type of conflict, else by the usual rules for metrics.
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
    let of_result = rule_about(kind, subject, [one, other]);
    let subject = &of_result.metric(subject);
    if let Some(rule) = policys_rule(subject, policy) {
        return by_rule(of_result, &rule, one, other);
    }
    // Not where votes are counted: what was counted with a text is counted again in the same way.
    let (read_one, read_other) = (of_result.in_result(one), of_result.in_result(other));
    of_result
        .compare_caution(policy, &read_one, &read_other)
        .or_else(|| usual_rule(subject).map(|rule| by_rule(of_result, &rule, one, other)))
        .unwrap_or(Ordering::Equal)
}

/// The rule that decides about this subject between values like this one, in words for a reader.
pub fn rule_in_words(
    kind: ConflictType,
    subject: &str,
    policy: &Policy,
    value: Option<&Value>,
) -> String {
    let of_result = rule_about(kind, subject, value);
    let subject = &of_result.metric(subject);
    let in_words = |rule| match rule {
        CautionRule::Lowest => format!("of {subject} the lowest value is the cautious one"),
        CautionRule::Highest => format!("of {subject} the highest value is the cautious one"),
        CautionRule::Order(order) => format!("{subject} in the order {}", order.join(", ")),
    };
    policys_rule(subject, policy)
        .map(in_words)
        .or_else(|| of_result.caution_in_words(policy))
        .or_else(|| usual_rule(subject).map(in_words))
        .unwrap_or_else(|| HIGHEST_IS_CAUTIOUS.to_owned())
}

fn policys_rule(subject: &str, policy: &Policy) -> Option<CautionRule> {
    let subject = metric_form(policy, subject);
    policy
        .ladder
        .caution
        .iter()
        .find(|(metric, _)| metric_form(policy, metric) == subject)
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

/// The name of a metric in the words of the policy's vocabulary, in the form in which metrics are
/// compared.
pub(crate) fn metric_form(policy: &Policy, name: &str) -> String {
    words(
        policy
            .vocabulary
            .word(NameKind::Metric, name)
            .unwrap_or(name),
    )
}

/// The name of a metric as words.
pub(crate) fn words(name: &str) -> String {
    normalise(&name.replace(['_', '-', '/'], " "))
}

fn by_rule(of_result: &dyn ConflictRule, rule: &CautionRule, a: &Value, b: &Value) -> Ordering {
    let numbers = || of_result.numbers(a, b);
    match rule {
        CautionRule::Highest => numbers().map_or(Ordering::Equal, |(a, b)| a.total_cmp(&b)),
        CautionRule::Lowest => numbers().map_or(Ordering::Equal, |(a, b)| b.total_cmp(&a)),
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

/// Reads a number, also from a text: `85`, `"$85"`, `"28%"`.
pub(crate) fn numeric(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text,
        _ => return None,
    };
    let digits: String = sign::plain(text)
        .chars()
        .filter(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        .collect();
    digits.parse().ok()
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
                compare(kind, "", &policy, Some(&cautious), Some(&other)),
                Ordering::Greater,
                "{kind:?}"
            );
            assert_eq!(
                compare(kind, "", &policy, Some(&other), Some(&cautious)),
                Ordering::Less,
                "{kind:?}"
            );
        }
        for (subject, cautious, other) in [
            ("risk_score", json!(80), json!(35)),
            ("severity", json!("critical"), json!("low")),
            ("Recommendation", json!("reject"), json!("sign")),
            ("liability cap", json!(false), json!(true)),
            ("risk_score", json!("90"), json!(86)),
            ("risk_score", json!(86), json!("a lot")),
            ("liability cap", json!("not found"), json!(true)),
            (
                "target price",
                json!({ "value": 10, "unit": "USD million" }),
                json!({ "value": 12e6, "unit": "USD" }),
            ),
            (
                "operating margin",
                json!(25),
                json!({ "value": 28, "unit": "%" }),
            ),
            (
                "operating margin",
                json!("25 %"),
                json!({ "value": 0.28, "unit": "fraction" }),
            ),
        ] {
            let (cautious, other) = (Some(&cautious), Some(&other));
            let of_challenges = |a, b| compare_about(T::Challenge, subject, &policy, a, b);
            assert_eq!(
                of_challenges(cautious, other),
                Ordering::Greater,
                "{subject}"
            );
            assert_eq!(of_challenges(other, cautious), Ordering::Less, "{subject}");
        }
        assert_eq!(
            compare(
                T::FactualDisagreement,
                "",
                &policy,
                Some(&json!(1)),
                Some(&json!(2))
            ),
            Ordering::Equal
        );
    }

    #[test]
    fn a_rule_for_a_metric_holds_for_a_challenge_of_one_subjects_too() {
        let mut other_way = Policy::contract_review();
        let caution = &mut other_way.ladder.caution;
        caution.insert("operating_margin".to_owned(), CautionRule::Highest);
        for subject in ["operating margin", "acme/operating margin"] {
            let (a, b) = (json!(30), json!(25));
            let compared = compare_about(T::Challenge, subject, &other_way, Some(&a), Some(&b));
            assert_eq!(compared, Ordering::Greater, "{subject}");
        }
    }
}
