//! Estimates of the same quantity that are further apart than the policy allows.
//!
//! Estimates are of the same quantity when they have the same metric and, where they name one, the
//! same subject. They are compared where their units can be converted into each other. There is one
//! conflict for each quantity, and for each group of units where the estimates of one quantity are
//! in several. Estimates in units that cannot be converted are no conflict; [`incomparable`] lists
//! them.

use std::collections::BTreeMap;

use concord_events::{EstimatesInUnit, IncomparableEstimates, ReceivedFinding};
use concord_wire::payload::{ConflictType, Estimate, Position};
use concord_wire::policy::{Policy, Tolerance};
use serde_json::{Value, json};

use super::factual::{escaped, joined, unescaped};
use super::{ConflictRule, Found, Held};
use crate::rules::canonical::{Allowance, Canonical, canonical_estimate, group, normalise};
use crate::rules::conservative::{metric_form, words};

/// Estimates of the same quantity that are further apart than the policy allows.
pub(super) struct EstimateOfMetric;

impl ConflictRule for EstimateOfMetric {
    fn find<'a>(
        &self,
        policy: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        if !policy.estimates.compared {
            return;
        }
        for (quantity, estimates) in quantities(findings) {
            let mut is_first = true;
            for (dimension, estimates) in by_dimension(estimates) {
                let subject = quantity.subject((!is_first).then_some(&*dimension));
                if let Some(found) = of_quantity(policy, &quantity, subject, &estimates) {
                    offer(found);
                    is_first = false;
                }
            }
        }
    }

    fn is_of_numbers(&self) -> bool {
        true
    }

    fn is_of_quantities(&self) -> bool {
        true
    }

    fn comparable(&self, _: &Policy, position: &Position) -> Canonical {
        match &position.value {
            Some(value) if !value.is_null() => canonical_estimate(value, None),
            _ => canonical_estimate(&json!(position.position), None),
        }
    }

    fn allowance(&self, policy: &Policy, subject: &str) -> Allowance {
        Allowance::of_policy(tolerance_of(policy, &self.metric(subject)))
    }

    fn metric(&self, subject: &str) -> String {
        metric_of(subject)
    }

    fn is_compared_by_metric(&self) -> bool {
        true
    }
}

/// The metric in the subject of a conflict.
pub(super) fn metric_of(subject: &str) -> String {
    let mut parts = subject.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    unescaped(second.unwrap_or(first))
}

/// The subject that a conflict about this estimate has, where it names what it is of.
pub(crate) fn subject_of(policy: &Policy, estimate: &Estimate) -> Option<String> {
    let quantity = Quantity::of(&Estimate {
        metric: metric_form(policy, &estimate.metric),
        ..estimate.clone()
    });
    quantity.subject.is_some().then(|| quantity.subject(None))
}

/// How far estimates of this metric may differ.
fn tolerance_of<'p>(policy: &'p Policy, metric: &str) -> &'p Tolerance {
    let metric = metric_form(policy, metric);
    let mut by_metric = policy.estimates.by_metric.iter();
    by_metric
        .find(|(name, _)| metric_form(policy, name) == metric)
        .map_or(&policy.estimates.tolerance, |(_, tolerance)| tolerance)
}

/// What is estimated: a metric, of a subject where one is named. In the form in which they are
/// compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity {
    subject: Option<String>,
    metric: String,
}

impl Quantity {
    fn of(estimate: &Estimate) -> Self {
        let subject = estimate.subject.as_deref().map(words);
        Self {
            subject: subject.filter(|subject| !subject.is_empty()),
            metric: words(&estimate.metric),
        }
    }

    /// The subject of its conflict. A second conflict about the same quantity, in other units, has
    /// their dimension in its subject.
    fn subject(&self, dimension: Option<&str>) -> String {
        match (&self.subject, dimension) {
            (None, None) => escaped(&self.metric),
            (Some(subject), None) => joined(subject, &self.metric),
            (subject, Some(dimension)) => {
                let subject = subject.as_deref().unwrap_or_default();
                format!("{}/{}", joined(subject, &self.metric), escaped(dimension))
            }
        }
    }

    /// For a reader.
    fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} of {subject}", self.metric),
            None => self.metric.clone(),
        }
    }
}

/// An estimate, and its value in the base unit.
struct Estimated<'a> {
    received: &'a ReceivedFinding,
    estimate: &'a Estimate,
    value: f64,
}

/// The estimates of each quantity, by dimension, in the order of their agents.
type ByDimension<'a> = BTreeMap<String, Vec<Estimated<'a>>>;

/// The estimates by what they are of. Of several estimates of one agent of the same quantity, the
/// first counts.
fn quantities<'a>(findings: &[&'a ReceivedFinding]) -> BTreeMap<Quantity, ByDimension<'a>> {
    let mut quantities: BTreeMap<Quantity, ByDimension<'a>> = BTreeMap::new();
    for received in findings {
        for estimate in &received.finding.estimates {
            let stated = quantities.entry(Quantity::of(estimate)).or_default();
            let is_known = |one: &Estimated<'_>| one.received.agent_id == received.agent_id;
            if stated.values().flatten().any(is_known) {
                continue;
            }
            let unit = estimate.unit.as_deref();
            if let Canonical::Number { value, dimension } =
                canonical_estimate(&json!(estimate.value), unit)
            {
                stated.entry(dimension).or_default().push(Estimated {
                    received,
                    estimate,
                    value,
                });
            }
        }
    }
    quantities
}

/// The dimensions in which most agents have estimated first, then in the order of their names.
fn by_dimension(estimates: ByDimension<'_>) -> Vec<(String, Vec<Estimated<'_>>)> {
    let mut sorted: Vec<_> = estimates.into_iter().collect();
    sorted.sort_by_key(|(_, estimates)| std::cmp::Reverse(estimates.len()));
    sorted
}

fn of_quantity<'a>(
    policy: &Policy,
    quantity: &Quantity,
    subject: String,
    estimates: &[Estimated<'a>],
) -> Option<Found<'a>> {
    let by_value = |a: &&Estimated<'a>, b: &&Estimated<'a>| a.value.total_cmp(&b.value);
    let low = estimates.iter().min_by(by_value)?;
    let high = estimates.iter().max_by(by_value)?;
    let values: Vec<Canonical> = estimates
        .iter()
        .map(|one| canonical_estimate(&value(one.estimate), None))
        .collect();
    let allowed = Allowance::of_policy(tolerance_of(policy, &quantity.metric));
    if group(&values, &allowed).iter().all(|group| *group == 0) {
        return None;
    }
    let held = estimates.iter().map(|one| {
        Held::new(
            one.received,
            &text(one.estimate),
            &value(one.estimate),
            vec![],
        )
    });
    Some(Found {
        kind: ConflictType::EstimateDisagreement,
        topic: format!(
            "Estimates of {}: {} to {}",
            quantity.name(),
            text(low.estimate),
            text(high.estimate)
        ),
        subject,
        stake: 0.5 + 0.3 * share_apart(low.value, high.value),
        held: held.collect(),
    })
}

/// How far two numbers are apart, as a share of the larger one, at most 1.
fn share_apart(low: f64, high: f64) -> f64 {
    let larger = low.abs().max(high.abs());
    // Each is divided by itself, because the difference of two large numbers may be no number.
    let share = high / larger - low / larger;
    if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The estimates of which several agents have given some, in units that cannot be converted into
/// each other; none where the policy does not compare them.
pub(crate) fn incomparable(
    policy: &Policy,
    findings: &[&ReceivedFinding],
) -> Vec<IncomparableEstimates> {
    if !policy.estimates.compared {
        return Vec::new();
    }
    let several = |(quantity, estimates): (Quantity, ByDimension<'_>)| {
        (estimates.len() > 1).then(|| IncomparableEstimates {
            subject: quantity.subject(None),
            units: by_dimension(estimates)
                .into_iter()
                .map(|(_, estimates)| in_unit(&estimates))
                .collect(),
        })
    };
    quantities(findings)
        .into_iter()
        .filter_map(several)
        .collect()
}

fn in_unit(estimates: &[Estimated<'_>]) -> EstimatesInUnit {
    let first = estimates.first();
    EstimatesInUnit {
        unit: first.and_then(|one| one.estimate.unit.as_deref().map(normalise)),
        agents: estimates
            .iter()
            .map(|one| one.received.agent_id.clone())
            .collect(),
    }
}

/// Whether an estimate can be part of a conflict with this subject.
pub(super) fn is_about(estimate: &Estimate, subject: &str) -> bool {
    let quantity = Quantity::of(estimate).subject(None);
    let with_unit = |(whole, _): (&str, &str)| whole == quantity.trim_start_matches('/');
    quantity == subject
        || subject
            .trim_start_matches('/')
            .rsplit_once('/')
            .is_some_and(with_unit)
}

/// What an estimate is of, as it is written.
pub(super) fn name(estimate: &Estimate) -> String {
    match &estimate.subject {
        Some(subject) => format!("{} of {subject}", estimate.metric),
        None => estimate.metric.clone(),
    }
}

/// The value of an estimate, with its unit.
fn text(estimate: &Estimate) -> String {
    match &estimate.unit {
        Some(unit) => format!("{} {unit}", estimate.value),
        None => estimate.value.to_string(),
    }
}

/// The value alone, or with its unit.
pub(crate) fn value(estimate: &Estimate) -> Value {
    match &estimate.unit {
        Some(unit) => json!({ "value": estimate.value, "unit": unit }),
        None => json!(estimate.value),
    }
}
