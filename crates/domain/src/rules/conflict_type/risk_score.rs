//! Risk scores further apart than the policy allows.

use std::cmp::Ordering;

use concord_events::ReceivedFinding;
use concord_wire::payload::{Conflict, ConflictType};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::said::label_words;
use super::{ConflictRule, Found, HIGHEST_IS_CAUTIOUS, Held, RISK_SCORE};
use crate::rules::canonical::{digits, readable};

/// Risk scores further apart than the policy allows.
pub(super) struct RiskScore;

impl ConflictRule for RiskScore {
    fn find<'a>(
        &self,
        policy: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        let scored: Vec<_> = findings
            .iter()
            .filter_map(|received| received.finding.risk_score.map(|score| (*received, score)))
            .collect();
        let low = scored
            .iter()
            .map(|(_, score)| *score)
            .min_by(f64::total_cmp);
        let high = scored
            .iter()
            .map(|(_, score)| *score)
            .max_by(f64::total_cmp);
        let (Some(low), Some(high)) = (low, high) else {
            return;
        };
        // Rounded, because 32.2 - 12.2 is a little more than 20 in binary.
        let spread = ((high - low) * 1e9).round() / 1e9;
        if spread <= policy.risk_spread_max {
            return;
        }
        let positions = scored.into_iter().map(|(received, score)| {
            Held::new(
                received,
                &format!("Risk score: {score}"),
                &json!(score),
                vec![],
            )
        });
        offer(Found {
            kind: ConflictType::RiskScoreDisagreement,
            topic: format!("Risk score spread: {low}-{high}"),
            subject: RISK_SCORE.into(),
            stake: 0.5 + spread / 200.0,
            held: positions.collect(),
        });
    }

    fn is_about_the_result(&self) -> bool {
        true
    }

    fn is_of_numbers(&self) -> bool {
        true
    }

    fn value_in_words(&self, _: &Policy, _: &Conflict, words: &str) -> Option<Value> {
        said_score(words).map(|score| json!(score))
    }

    fn wanted_instead(&self, value: &Value) -> Option<&'static str> {
        score(value).is_none().then_some("a number from 0 to 100")
    }

    fn in_result(&self, value: &Value) -> Value {
        score(value).map_or_else(|| value.clone(), |read| json!(read))
    }

    /// The higher score is the more cautious one.
    fn compare_caution(&self, _: &Policy, a: &Value, b: &Value) -> Option<Ordering> {
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NEG_INFINITY);
        Some(number(a).total_cmp(&number(b)))
    }

    fn caution_in_words(&self, _: &Policy) -> Option<String> {
        Some(HIGHEST_IS_CAUTIOUS.to_owned())
    }
}

/// What may stand before a score in words. After other words a number may be that of a section, a clause or a page.
const BEFORE_A_SCORE: [&str; 33] = [
    "a", "an", "and", "at", "be", "critical", "high", "is", "it", "keep", "low", "lower",
    "lowered", "medium", "moderate", "my", "new", "now", "of", "raise", "raised", "rating",
    "reduce", "reduced", "revise", "revised", "risk", "score", "set", "should", "the", "to",
    "very",
];

/// A remark that begins so says that the score is not just the number.
const NOT_JUST: [&str; 12] = [
    "about",
    "approximately",
    "around",
    "at least",
    "at most",
    "circa",
    "give or take",
    "maximum",
    "minimum",
    "or less",
    "or more",
    "roughly",
];

/// Most words of any other name before a score, as in `Risikowert: 50`.
const NAME_WORDS_MAX: usize = 3;

/// The score that words state: `50`, `Risk score: 50`, `lower it to 50 %, because of the cap`, `50 out of 100`. None where the number could be
/// of something else (`see section 4`, `within 30 days`), where it is not just the score (`at most 30`, `< 30`, `around 30`), and where there are two
/// (`30 to 50`).
fn said_score(words: &str) -> Option<f64> {
    let words = readable(words);
    let (before, number) = words.split_at_checked(words.find(|c: char| c.is_ascii_digit())?)?;
    let length = number.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    let (digits, _) = number.split_at_checked(length.unwrap_or(number.len()))?;
    let digits = digits.trim_end_matches(['.', ',']);
    let score = digits::number(digits)?;
    let is_score = is_before_a_score(before) && is_after_a_score(number.get(digits.len()..)?);
    (is_score && (0.0..=100.0).contains(&score)).then_some(score)
}

fn is_before_a_score(before: &str) -> bool {
    let Some(words) = label_words(before) else {
        return false;
    };
    let is_name = before.trim_end().ends_with([':', '=']) && words.len() <= NAME_WORDS_MAX;
    is_name || words.iter().all(|word| BEFORE_A_SCORE.contains(word))
}

/// Nothing, or what it is of, and then nothing or a remark without a number.
fn is_after_a_score(after: &str) -> bool {
    let after = after.trim_start();
    let of = [
        "%",
        "percent",
        "points",
        "/100",
        "/ 100",
        "out of 100",
        "of 100",
    ];
    let rest = of.iter().find_map(|of| after.strip_prefix(of));
    let rest = rest.unwrap_or(after).trim_start();
    let is_remark = rest.is_empty() || rest.starts_with([',', ';', '.', '(', ')', '!', '–', '—']);
    let remark = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_just = !NOT_JUST.iter().any(|words| remark.starts_with(words));
    is_remark && is_just && !rest.contains(|c: char| c.is_ascii_digit())
}

/// Reads a score, also from a text.
pub(crate) fn score(value: &Value) -> Option<f64> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())?;
    (0.0..=100.0).contains(&number).then_some(number)
}
