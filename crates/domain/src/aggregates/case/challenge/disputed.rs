//! What a challenge disputes of a finding.

use concord_wire::payload::{Challenge, ConflictType, Estimate, Finding};
use concord_wire::policy::{NameKind, Policy};
use serde_json::{Value, json};

use super::FINDING;
use crate::rules::canonical::{Allowance, canonical_estimate, same};
use crate::rules::conflict_type::{
    RECOMMENDATION, RISK_SCORE, SEVERITY, escaped, estimate_subject, estimate_value, number_of,
};
use crate::rules::conservative::{has_rule, metric_form, words};
use crate::rules::impact::graph::name_of;

/// What is disputed of a finding.
pub(super) struct Disputed {
    /// The name that it has in the result, and where the result has none the name that the finding uses: what is ruled is looked up by it.
    pub(super) subject: String,
    /// What the finding says of it itself.
    pub(super) stated: Option<Value>,
}

impl Disputed {
    /// By the metric of a challenge, however it is spelled.
    pub(super) fn of(policy: &Policy, finding: &Finding, metric: Option<&str>) -> Self {
        let Some(metric) = metric else {
            return Self {
                subject: FINDING.to_owned(),
                stated: None,
            };
        };
        let (subject, stated) = match words(metric).as_str() {
            "risk score" => (RISK_SCORE, finding.risk_score.map(|score| json!(score))),
            SEVERITY => (SEVERITY, finding.severity.map(|severity| json!(severity))),
            RECOMMENDATION => {
                let stated = finding.recommendation.as_ref();
                (RECOMMENDATION, stated.map(|words| json!(words)))
            }
            _ => return Self::named(policy, finding, metric),
        };
        Self {
            subject: subject.to_owned(),
            stated,
        }
    }

    /// An estimate or a clause of the finding.
    fn named(policy: &Policy, finding: &Finding, metric: &str) -> Self {
        let word = |name| policy.vocabulary.word(NameKind::Topic, name);
        let form = |name| words(word(name).unwrap_or(name));
        let (of_metric, clause) = (metric_form(policy, metric), form(metric));
        let estimates = &finding.estimates;
        let whole = estimates
            .iter()
            .find(|one| is_named(policy, one, &name_of(metric)));
        if let Some(estimate) = whole {
            return Self {
                subject: estimate_subject(policy, estimate)
                    .unwrap_or_else(|| estimate.metric.clone()),
                stated: Some(estimate_value(estimate)),
            };
        }
        let mut by_metric = estimates.iter();
        let by_metric = by_metric.find(|one| metric_form(policy, &one.metric) == of_metric);
        if let Some(estimate) = by_metric {
            return Self {
                subject: escaped(&estimate.metric),
                stated: Some(estimate_value(estimate)),
            };
        }
        let clauses = finding.clauses.iter();
        let clauses = clauses.map(|clause| (clause.kind.as_str(), clause.present));
        let relied_on = finding.affected_clauses.iter();
        let relied_on = relied_on.map(|name| (name.as_str(), true));
        let found = clauses
            .chain(relied_on)
            .find(|(name, _)| form(name) == clause);
        let own = found.map_or(metric, |(name, _)| name);
        Self {
            subject: word(own).unwrap_or(own).to_owned(),
            stated: found.map(|(_, present)| json!(present)),
        }
    }
}

/// Whether a name says what this estimate is of, and its metric.
fn is_named(policy: &Policy, estimate: &Estimate, name: &str) -> bool {
    let subject = estimate.subject.as_deref().map(words).unwrap_or_default();
    let rest = name.strip_prefix(&subject).unwrap_or_default();
    let metric = rest.strip_prefix(' ').filter(|_| !subject.is_empty());
    metric
        .is_some_and(|metric| metric_form(policy, metric) == metric_form(policy, &estimate.metric))
}

/// The quantity that a finding states in words alone: in those that are disputed, or in its summary. Only of a metric of which one value is more
/// cautious than another, so that the cautious one stands when nobody rules. None where the two say different things.
pub(super) fn stated_in_words(
    policy: &Policy,
    subject: &str,
    challenge: &Challenge,
    finding: &Finding,
) -> Option<Value> {
    let is_of_result = [RISK_SCORE, SEVERITY, RECOMMENDATION].contains(&subject);
    challenge.metric.as_ref().filter(|_| !is_of_result)?;
    let read = |words: &str| {
        let stated = number_of(subject, words)?;
        has_rule(ConflictType::Challenge, subject, policy, &stated).then_some(stated)
    };
    let (disputed, own) = (read(&challenge.disputed_finding), read(&finding.summary));
    let are_same = |one: &Value, other: &Value| {
        let (one, other) = (
            canonical_estimate(one, None),
            canonical_estimate(other, None),
        );
        same(&one, &other, &Allowance::relative(1e-9))
    };
    match (disputed, own) {
        (Some(disputed), Some(own)) if !are_same(&disputed, &own) => None,
        (disputed, own) => disputed.or(own),
    }
}
