//! Compares positions by caution: to break ties, and to choose where a conflict stays open.

use std::cmp::Ordering;

use concord_wire::payload::ConflictType;
use concord_wire::policy::{CautionRule, NameKind, Policy};
use serde_json::Value;

use crate::rules::canonical::normalise;
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
/// its words in the singular, so `price_target` and `target prices of ACME` are both price targets.
const LOWEST: [&str; 12] = [
    "price",
    "margin",
    "revenue",
    "earning",
    "cash flow",
    "fcf",
    "multiple",
    "upside",
    "confidence",
    "probability of success",
    "market share",
    "saving",
];
/// Metrics of which the higher value is the more cautious one.
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
/// Of something of which the higher value is cautious (`cost growth`) these are too; the lower one of anything else.
const OF_SOMETHING: [&str; 2] = ["target", "growth"];
/// Before these stands what it is, and after them of what: the cost of revenue is a cost.
const BEFORE_ITS_OBJECT: [&str; 7] = ["of", "in", "on", "to", "for", "from", "per"];
/// Before this stands no more than a remark: a risk-adjusted price is a price.
const AFTER_A_REMARK: &str = " adjusted ";

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
    let names = of_result.metrics(subject);
    if let Some((_, rule)) = policys_rule(&names, policy) {
        return by_rule(of_result, &rule, one, other);
    }
    // Not where votes are counted: what was counted with a text is counted again in the same way.
    let (read_one, read_other) = (of_result.in_result(one), of_result.in_result(other));
    of_result
        .compare_caution(policy, &read_one, &read_other)
        .or_else(|| usual_rule(&names).map(|(_, rule)| by_rule(of_result, &rule, one, other)))
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
    let names = of_result.metrics(subject);
    let in_words = |(name, rule): (&str, CautionRule)| match rule {
        CautionRule::Lowest => format!("of {name} the lowest value is the cautious one"),
        CautionRule::Highest => format!("of {name} the highest value is the cautious one"),
        CautionRule::Order(order) => format!("{name} in the order {}", order.join(", ")),
    };
    policys_rule(&names, policy)
        .map(in_words)
        .or_else(|| of_result.caution_in_words(policy))
        .or_else(|| usual_rule(&names).map(in_words))
        .unwrap_or_else(|| HIGHEST_IS_CAUTIOUS.to_owned())
}

/// Whether there is a rule about this subject by which of two values like this one is the more cautious one.
pub(crate) fn has_rule(kind: ConflictType, subject: &str, policy: &Policy, value: &Value) -> bool {
    let names = rule_about(kind, subject, [value]).metrics(subject);
    policys_rule(&names, policy).is_some() || usual_rule(&names).is_some()
}

/// The policy's rule for the nearest of these names, and that name.
fn policys_rule<'n>(names: &'n [String], policy: &Policy) -> Option<(&'n str, CautionRule)> {
    names.iter().find_map(|name| {
        let asked = metric_form(policy, name);
        let mut rules = policy.ladder.caution.iter();
        let (_, rule) = rules.find(|(metric, _)| metric_form(policy, metric) == asked)?;
        Some((name.as_str(), rule.clone()))
    })
}

/// The usual rule for one of these names, and that name: an attribute alone says more than with the name of what has it.
fn usual_rule(names: &[String]) -> Option<(&str, CautionRule)> {
    let mut names = names.iter().rev();
    names.find_map(|name| Some((name.as_str(), usual_rule_for(name)?)))
}

/// Of the words that have a rule the last one decides: a price risk is a risk.
fn usual_rule_for(name: &str) -> Option<CautionRule> {
    let name = words(name);
    let named: Vec<&str> = name.split_whitespace().map(singular).collect();
    let whole = named.join(" ");
    let (_, whole) = whole.rsplit_once(AFTER_A_REMARK).unwrap_or(("", &whole));
    let object = |word: &&str| BEFORE_ITS_OBJECT.contains(word);
    let before: Vec<&str> = whole.split(' ').take_while(|word| !object(word)).collect();
    let of_something = || last_of(&OF_SOMETHING, whole).map(|_| CautionRule::Lowest);
    last_rule(&before.join(" "))
        .or_else(|| last_rule(whole))
        .or_else(of_something)
}

fn last_rule(named: &str) -> Option<CautionRule> {
    match (last_of(&HIGHEST, named), last_of(&LOWEST, named)) {
        (None, None) => None,
        (highest, lowest) if highest > lowest => Some(CautionRule::Highest),
        _ => Some(CautionRule::Lowest),
    }
}

/// Where the last of these names ends.
fn last_of(names: &[&str], named: &str) -> Option<usize> {
    let named = format!(" {named} ");
    let end = |name: &&str| Some(named.rfind(&format!(" {name} "))? + name.len());
    names.iter().filter_map(end).max()
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

/// A word in the singular, in as far as two forms of one word become the same.
pub(crate) fn singular(word: &str) -> &str {
    let of_losses = word.strip_suffix("es").filter(|stem| stem.ends_with("ss"));
    let stem = of_losses.or_else(|| {
        let stem = word.strip_suffix('s')?;
        (stem.len() > 2 && !stem.ends_with('s')).then_some(stem)
    });
    stem.unwrap_or(word)
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

#[cfg(test)]
mod tests;
