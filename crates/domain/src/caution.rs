//! Which of two positions is the more cautious one. Used to break ties, and where a dispute stays open.

use std::cmp::Ordering;

use concord_protocol::payload::ConflictType;
use concord_protocol::policy::Policy;
use serde_json::Value;

use crate::compare::normalise;

/// `Greater` when `a` is more cautious than `b`; `Equal` where caution does not decide.
///
/// - risk score: the higher;
/// - severity: the more serious;
/// - recommendation: the earlier in the policy's `caution_order`;
/// - clause presence: "not found", for nobody should rely on a clause that one reader did not find;
/// - facts: none is more cautious than another.
pub fn compare(kind: ConflictType, policy: &Policy, a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return Ordering::Equal };
    match kind {
        ConflictType::RiskScoreDisagreement => number(a).total_cmp(&number(b)),
        ConflictType::SeverityDisagreement => severity_rank(a).cmp(&severity_rank(b)),
        ConflictType::RecommendationConflict => recommendation_rank(policy, b).cmp(&recommendation_rank(policy, a)),
        ConflictType::ClausePresenceDisagreement => (a == &Value::Bool(false)).cmp(&(b == &Value::Bool(false))),
        ConflictType::FactualDisagreement => Ordering::Equal,
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NEG_INFINITY)
}

fn severity_rank(value: &Value) -> usize {
    let name = value.as_str().map(normalise).unwrap_or_default();
    ["info", "low", "medium", "high", "critical"].iter().position(|s| *s == name).map_or(0, |rank| rank + 1)
}

/// Place in the policy's order, 0 for the most cautious.
fn recommendation_rank(policy: &Policy, value: &Value) -> usize {
    let name = value.as_str().map(normalise).unwrap_or_default();
    policy.caution_order.iter().position(|other| normalise(other) == name).unwrap_or(usize::MAX)
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
            (T::RecommendationConflict, json!("sign"), json!("something else")),
            (T::ClausePresenceDisagreement, json!(false), json!(true)),
        ] {
            assert_eq!(compare(kind, &policy, Some(&cautious), Some(&other)), Ordering::Greater, "{kind:?}");
            assert_eq!(compare(kind, &policy, Some(&other), Some(&cautious)), Ordering::Less, "{kind:?}");
        }
        assert_eq!(compare(T::FactualDisagreement, &policy, Some(&json!(1)), Some(&json!(2))), Ordering::Equal);
    }
}
