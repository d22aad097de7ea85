//! Opposing recommendations.

use std::collections::BTreeSet;

use concord_protocol::event::ReceivedFinding;
use concord_protocol::payload::ConflictType;
use concord_protocol::policy::Policy;
use serde_json::json;

use super::{Found, position};
use crate::compare::normalise;

pub(super) fn find(_: &Policy, findings: &[&ReceivedFinding]) -> Vec<Found> {
    let given: Vec<(&ReceivedFinding, String)> = findings
        .iter()
        .filter_map(|received| {
            let recommendation = normalise(received.finding.recommendation.as_deref()?);
            (!recommendation.is_empty()).then_some((*received, recommendation))
        })
        .collect();
    let different: BTreeSet<&str> = given.iter().map(|(_, recommendation)| recommendation.as_str()).collect();
    if different.len() < 2 {
        return Vec::new();
    }
    let topic = format!("Different recommendations: {}", different.into_iter().collect::<Vec<_>>().join(", "));
    let positions = given
        .into_iter()
        .map(|(received, recommendation)| {
            position(received, &recommendation, json!(recommendation), received.finding.evidence.clone())
        })
        .collect();
    vec![Found {
        kind: ConflictType::RecommendationConflict,
        topic,
        subject: "recommendation".into(),
        stake: 1.0,
        positions,
    }]
}
