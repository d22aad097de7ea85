//! Risk scores further apart than the policy allows.

use std::cmp::Ordering;

use concord_events::ReceivedFinding;
use concord_wire::payload::ConflictType;
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::{ConflictRule, Found, HIGHEST_IS_CAUTIOUS, Held, RISK_SCORE};

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

    /// The one number in them, where it can be a score.
    fn is_of_numbers(&self) -> bool {
        true
    }

    fn value_in_words(&self, _: &Policy, words: &str) -> Option<Value> {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
        let parts = words.split(|c: char| !is_of_number(c));
        let mut numbers = parts.filter(|part| part.bytes().any(|b| b.is_ascii_digit()));
        let one: f64 = numbers.next()?.trim_end_matches('.').parse().ok()?;
        let is_score = numbers.next().is_none() && (0.0..=100.0).contains(&one);
        is_score.then(|| json!(one))
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

/// Reads a score, also from a text.
pub(crate) fn score(value: &Value) -> Option<f64> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())?;
    (0.0..=100.0).contains(&number).then_some(number)
}
