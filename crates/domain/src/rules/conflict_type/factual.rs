//! The same attribute of the same subject with different values.

use std::collections::BTreeMap;

use concord_events::ReceivedFinding;
use concord_wire::payload::{ConflictType, FactClaim};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::estimate::metric_of;
use super::{ConflictRule, Found, Held, numbers_as_meant};
use crate::rules::canonical::{Allowance, canonical, group, normalise};

/// The same attribute of the same subject with different values.
pub(super) struct Factual;

impl ConflictRule for Factual {
    fn find<'a>(
        &self,
        policy: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        // Of several statements of one agent about the same attribute, the first counts.
        let mut attributes: BTreeMap<(String, String), Vec<(&'a ReceivedFinding, &'a FactClaim)>> =
            BTreeMap::new();
        for received in findings {
            for fact in &received.finding.facts {
                let claims = attributes
                    .entry((normalise(&fact.subject), normalise(&fact.attribute)))
                    .or_default();
                if !claims
                    .iter()
                    .any(|(other, _)| other.agent_id == received.agent_id)
                {
                    claims.push((received, fact));
                }
            }
        }
        let found = attributes
            .into_iter()
            .filter_map(|(name, claims)| of_attribute(policy, &name, &claims));
        found.for_each(offer);
    }

    fn is_of_quantities(&self) -> bool {
        true
    }

    fn allowance(&self, policy: &Policy, _: &str) -> Allowance {
        Allowance::relative(policy.number_tolerance)
    }

    fn numbers(&self, a: &Value, b: &Value) -> Option<(f64, f64)> {
        numbers_as_meant(a, b)
    }

    /// The attribute of its subject, and the attribute of whatever it is.
    fn metrics(&self, subject: &str) -> Vec<String> {
        vec![unescaped(subject), metric_of(subject)]
    }
}

fn of_attribute<'a>(
    policy: &Policy,
    name: &(String, String),
    claims: &[(&'a ReceivedFinding, &'a FactClaim)],
) -> Option<Found<'a>> {
    let values: Vec<_> = claims
        .iter()
        .map(|(_, fact)| canonical(&fact.value, fact.unit.as_deref()))
        .collect();
    let groups = group(&values, &Allowance::relative(policy.number_tolerance));
    if groups.iter().all(|group| *group == 0) {
        return None;
    }
    let (subject, attribute) = name;
    let positions = claims
        .iter()
        .map(|(received, fact)| Held::new(received, &text(fact), &value(fact), vec![]))
        .collect();
    Some(Found {
        kind: ConflictType::FactualDisagreement,
        topic: format!("Different values for {attribute} of {subject}"),
        // A slash in a name is escaped as in a JSON pointer, so that no two attributes share a
        // subject, and with it a debate.
        subject: joined(subject, attribute),
        stake: 0.6,
        held: positions,
    })
}

pub(super) fn joined(subject: &str, attribute: &str) -> String {
    format!("{}/{}", escaped(subject), escaped(attribute))
}

/// The subject of the conflicts that a claim can be part of.
pub(super) fn subject_of(fact: &FactClaim) -> String {
    joined(&normalise(&fact.subject), &normalise(&fact.attribute))
}

pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A name, or several with a slash between them, for a reader.
pub(super) fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The value of a claim, with its unit.
pub(super) fn text(fact: &FactClaim) -> String {
    let value = fact
        .value
        .as_str()
        .map_or_else(|| fact.value.to_string(), str::to_owned);
    fact.unit
        .as_ref()
        .map_or_else(|| value.clone(), |unit| format!("{value} {unit}"))
}

/// The value alone, or with its unit.
fn value(fact: &FactClaim) -> Value {
    fact.unit.as_ref().map_or_else(
        || fact.value.clone(),
        |unit| json!({ "value": fact.value, "unit": unit }),
    )
}
