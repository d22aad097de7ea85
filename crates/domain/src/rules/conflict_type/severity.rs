//! The same topic at different severities.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use concord_events::ReceivedFinding;
use concord_wire::payload::{Conflict, ConflictType, CriticalFinding, Severity};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::{ConflictRule, Found, HIGHEST_IS_CAUTIOUS, Held};
use crate::rules::canonical::normalise;

/// The same topic at different severities.
pub(super) struct SeverityOfTopic;

impl ConflictRule for SeverityOfTopic {
    fn find<'a>(
        &self,
        _: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        // By topic. Of several statements of one agent about the same topic, the most serious
        // counts.
        let mut topics: BTreeMap<String, Vec<(&'a ReceivedFinding, &'a CriticalFinding)>> =
            BTreeMap::new();
        for received in findings {
            for critical in &received.finding.critical_findings {
                let stated = topics.entry(normalise(&critical.topic)).or_default();
                match stated
                    .iter_mut()
                    .find(|(other, _)| other.agent_id == received.agent_id)
                {
                    Some((_, earlier)) if earlier.severity < critical.severity => {
                        *earlier = critical
                    }
                    Some(_) => {}
                    None => stated.push((received, critical)),
                }
            }
        }
        topics
            .into_iter()
            .filter_map(|(subject, stated)| of_topic(subject, &stated))
            .for_each(offer);
    }

    /// As they are stated: the severity, or the topic and the severity.
    fn value_in_words(&self, _: &Policy, _: &Conflict, words: &str) -> Option<Value> {
        let stated = words
            .rsplit_once(':')
            .map_or(words, |(_, severity)| severity);
        let stated = json!(normalise(stated));
        (rank(&stated) > 0).then_some(stated)
    }

    fn plain_words(&self, policy: &Policy, conflict: &Conflict, words: &str) -> Option<Value> {
        self.value_in_words(policy, conflict, words)
    }

    fn wanted_instead(&self, value: &Value) -> Option<&'static str> {
        (rank(value) == 0).then_some("one of info, low, medium, high and critical")
    }

    /// The more serious severity is the more cautious one.
    fn compare_caution(&self, _: &Policy, a: &Value, b: &Value) -> Option<Ordering> {
        Some(rank(a).cmp(&rank(b)))
    }

    fn caution_in_words(&self, _: &Policy) -> Option<String> {
        Some(HIGHEST_IS_CAUTIOUS.to_owned())
    }
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
            Held::new(
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

/// Reads a severity, however it is spelled.
pub(crate) fn severity(value: &Value) -> Option<Severity> {
    let name = normalise(value.as_str()?);
    serde_json::from_value(json!(name)).ok()
}

/// The place of a severity in their order; 0 for an unknown name.
fn rank(value: &Value) -> usize {
    severity(value).map_or(0, |severity| severity as usize + 1)
}
