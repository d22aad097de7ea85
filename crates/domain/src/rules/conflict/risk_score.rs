//! Risk scores further apart than the policy allows.

use concord_events::ReceivedFinding;
use concord_wire::payload::ConflictType;
use concord_wire::policy::Policy;
use serde_json::json;

use super::ranking::Ranking;
use super::{Found, held};

pub(super) fn find<'a>(
    policy: &Policy,
    findings: &[&'a ReceivedFinding],
    ranking: &mut Ranking<'a>,
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
        held(
            received,
            &format!("Risk score: {score}"),
            &json!(score),
            vec![],
        )
    });
    ranking.offer(Found {
        kind: ConflictType::RiskScoreDisagreement,
        topic: format!("Risk score spread: {low}-{high}"),
        subject: "risk_score".into(),
        stake: 0.5 + spread / 200.0,
        held: positions.collect(),
    });
}
