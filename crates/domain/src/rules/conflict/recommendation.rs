//! Opposing recommendations.

use std::collections::BTreeSet;

use concord_events::ReceivedFinding;
use concord_wire::payload::ConflictType;
use concord_wire::policy::Policy;
use serde_json::json;

use super::ranking::Ranking;
use super::{Found, held};
use crate::rules::canonical::normalise;

pub(super) fn find<'a>(_: &Policy, findings: &[&'a ReceivedFinding], ranking: &mut Ranking<'a>) {
    let given: Vec<(&ReceivedFinding, String)> = findings
        .iter()
        .filter_map(|received| {
            let recommendation = normalise(received.finding.recommendation.as_deref()?);
            (!recommendation.is_empty()).then_some((*received, recommendation))
        })
        .collect();
    let different: BTreeSet<&str> = given
        .iter()
        .map(|(_, recommendation)| recommendation.as_str())
        .collect();
    if different.len() < 2 {
        return;
    }
    let topic = format!(
        "Different recommendations: {}",
        different.into_iter().collect::<Vec<_>>().join(", ")
    );
    let positions = given.iter().map(|(received, recommendation)| {
        held(received, recommendation, &json!(recommendation), vec![])
    });
    ranking.offer(Found {
        kind: ConflictType::RecommendationConflict,
        topic,
        subject: "recommendation".into(),
        stake: 1.0,
        held: positions.collect(),
    });
}
