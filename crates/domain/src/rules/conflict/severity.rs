//! The same topic at different severities.

use std::collections::BTreeMap;

use concord_events::ReceivedFinding;
use concord_wire::payload::{ConflictType, CriticalFinding, Severity};
use concord_wire::policy::Policy;
use serde_json::json;

use super::ranking::Ranking;
use super::{Found, held};
use crate::rules::canonical::normalise;

pub(super) fn find<'a>(_: &Policy, findings: &[&'a ReceivedFinding], ranking: &mut Ranking<'a>) {
    // By topic; of one agent's statements about the same topic the most serious counts.
    let mut topics: BTreeMap<String, Vec<(&'a ReceivedFinding, &'a CriticalFinding)>> =
        BTreeMap::new();
    for received in findings {
        for critical in &received.finding.critical_findings {
            let stated = topics.entry(normalise(&critical.topic)).or_default();
            match stated
                .iter_mut()
                .find(|(other, _)| other.agent_id == received.agent_id)
            {
                Some((_, earlier)) if earlier.severity < critical.severity => *earlier = critical,
                Some(_) => {}
                None => stated.push((received, critical)),
            }
        }
    }
    topics
        .into_iter()
        .filter_map(|(subject, stated)| of_topic(subject, &stated))
        .for_each(|found| ranking.offer(found));
}

fn of_topic<'a>(
    subject: String,
    stated: &[(&'a ReceivedFinding, &'a CriticalFinding)],
) -> Option<Found<'a>> {
    let low = stated.iter().map(|(_, critical)| critical.severity).min()?;
    let high = stated.iter().map(|(_, critical)| critical.severity).max()?;
    if low == high {
        return None;
    }
    let topic = stated
        .first()
        .map_or(subject.as_str(), |(_, critical)| critical.topic.as_str());
    let positions = stated
        .iter()
        .map(|(received, critical)| {
            let text = format!("{}: {}", critical.topic, critical.severity.as_str());
            let detail = Some(critical.detail.as_str()).filter(|detail| !detail.is_empty());
            held(
                received,
                &text,
                &json!(critical.severity),
                detail.into_iter().collect(),
            )
        })
        .collect();
    Some(Found {
        kind: ConflictType::SeverityDisagreement,
        topic: format!(
            "Severity of {topic:?}: {} to {}",
            low.as_str(),
            high.as_str()
        ),
        subject,
        stake: 0.4 + 0.15 * steps(low, high),
        held: positions,
    })
}

fn steps(low: Severity, high: Severity) -> f64 {
    f64::from((high as u8).saturating_sub(low as u8))
}
