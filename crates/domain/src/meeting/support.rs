//! The recommendation, weighted by calibrated confidences and by what proved right before.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use concord_wire::AgentId;
use concord_wire::payload::SuccessRate;
use concord_wire::payload::track_record::Interval;
use concord_wire::policy::{NameKind, Policy};
use serde::Serialize;

use super::Dispute;
use super::calibration::CalibratedFinding;
use super::history::{EarlierDecision, all};
use crate::aggregates::case::DecisionPackage;
use crate::rules::conflict_type::{is_abstention, recommendation_word};
use crate::rules::credibility::{Z, wilson};
use crate::rules::precedent::rate;

/// What is recommended, and what speaks for each option.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// What the decision of the case says; absent where it says nothing, or is not made yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
    /// The option with the greatest share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted: Option<String>,
    /// The option with the greatest risk-adjusted share; of equals the more cautious.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_adjusted: Option<String>,
    /// The risk score of the decision, 0 to 100; options are not adjusted where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<f64>,
    /// The options, the greatest risk-adjusted share first.
    pub options: Vec<SupportedOption>,
}

impl Recommendation {
    /// Whether the weighing leads to another result than the decision of the case, which has this policy.
    pub fn differs(&self, policy: &Policy) -> bool {
        let both = self.decided.as_ref().zip(self.risk_adjusted.as_ref());
        let word = |words| recommendation_word(policy, words);
        both.is_some_and(|(decided, ours)| word(decided) != word(ours))
    }
}

/// An option, and what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SupportedOption {
    /// The recommendation.
    pub recommendation: String,
    /// Who recommends it.
    pub held_by: Vec<AgentId>,
    /// The sum of their calibrated confidences.
    pub calibrated: f64,
    /// How often it proved right in earlier decisions.
    pub precedents: SuccessRate,
    /// What the sum is multiplied by for that.
    pub precedent_factor: f64,
    /// The product.
    pub weight: f64,
    /// Its share of all weights, 0 to 1.
    pub share: f64,
    /// 95 % interval of the share.
    pub interval: Interval,
    /// How far it is from the most cautious option, 0 to 1.
    pub distance: f64,
    /// The share, adjusted for the risk.
    pub risk_adjusted: f64,
}

/// Weighs what was recommended.
pub(super) fn recommendation(
    case: &DecisionPackage,
    findings: &[CalibratedFinding],
    disputes: &[Dispute],
) -> Recommendation {
    let outcome = case.decision.as_ref().map(|decision| &decision.outcome);
    let risk_score = outcome.and_then(|outcome| outcome.risk_score);
    let mut options = options(case, findings, &all(disputes));
    let total: f64 = options.iter().map(|option| option.weight).sum();
    let points: f64 = findings.iter().map(|finding| finding.data_points).sum();
    for option in &mut options {
        option.share = if total > 0.0 {
            option.weight / total
        } else {
            0.0
        };
        option.interval = wilson(option.share, points, Z);
        let risk = risk_score.unwrap_or(0.0) / 100.0;
        option.risk_adjusted = option.share * (1.0 - risk * option.distance);
    }
    let more = |a: f64, b: f64| b.total_cmp(&a);
    let order = |a: &SupportedOption, b: &SupportedOption| -> Ordering {
        more(a.risk_adjusted, b.risk_adjusted).then(a.distance.total_cmp(&b.distance))
    };
    options.sort_by(order);
    let heaviest = options
        .iter()
        .reduce(|best, one| if one.share > best.share { one } else { best });
    Recommendation {
        decided: outcome.and_then(|outcome| outcome.recommendation.clone()),
        weighted: heaviest.map(|option| option.recommendation.clone()),
        risk_adjusted: options.first().map(|option| option.recommendation.clone()),
        risk_score,
        options,
    }
}

/// The options in the order of their names, with weights and without shares. Names that the policy's vocabulary takes for one word are one
/// option, under that word.
fn options(
    case: &DecisionPackage,
    findings: &[CalibratedFinding],
    earlier: &[&EarlierDecision],
) -> Vec<SupportedOption> {
    let policy = &case.policy;
    let mut held: BTreeMap<String, Vec<&CalibratedFinding>> = BTreeMap::new();
    for finding in findings {
        if let Some(recommended) = &finding.recommendation {
            held.entry(recommendation_word(policy, recommended))
                .or_default()
                .push(finding);
        }
    }
    // As in the result of the case: whoever abstains recommends that only where nobody recommends anything else.
    let is_option = |name: &String| !is_abstention(policy, name);
    if held.keys().any(is_option) {
        held.retain(|name, _| is_option(name));
    }
    let distances = distances(policy, held.keys());
    let option = |(name, holders): (String, Vec<&CalibratedFinding>)| {
        let calibrated: f64 = holders.iter().map(|finding| finding.calibrated).sum();
        let precedents = proved(policy, &name, earlier);
        let factor = match precedents.known {
            0 => 1.0,
            _ => 2.0 * precedents.interval.centre(),
        };
        let written = holders
            .first()
            .and_then(|one| one.recommendation.as_deref());
        let written = written.unwrap_or_default();
        let known = policy.vocabulary.word(NameKind::Recommendation, written);
        SupportedOption {
            recommendation: known.unwrap_or(written).to_owned(),
            held_by: holders.iter().map(|one| one.agent_id.clone()).collect(),
            calibrated,
            precedents,
            precedent_factor: factor,
            weight: calibrated * factor,
            share: 0.0,
            interval: wilson(0.0, 0.0, Z),
            distance: distances.get(&name).copied().unwrap_or(0.0),
            risk_adjusted: 0.0,
        }
    };
    held.into_iter().map(option).collect()
}

/// How often an option proved right, of the decisions that chose it or in which it proved right.
fn proved(policy: &Policy, option: &str, earlier: &[&EarlierDecision]) -> SuccessRate {
    let word = |words: &str| recommendation_word(policy, words);
    let of_option = |one: &&EarlierDecision| {
        let proved = one.proved.as_deref().map(word)?;
        let was_chosen = word(&one.position) == option;
        let was_right = proved == option || was_chosen && one.was_right == Some(true);
        let is_wrong = was_chosen && one.was_right == Some(false);
        (was_right || is_wrong).then_some(was_right)
    };
    rate(earlier.iter().filter_map(of_option))
}

/// How far each option is from the most cautious one, by the policy's order; options that it does not name are the least cautious.
fn distances<'a>(
    policy: &Policy,
    options: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, f64> {
    let order: Vec<String> = policy
        .caution_order
        .iter()
        .map(|named| recommendation_word(policy, named))
        .collect();
    let place = |option: &String| {
        let named = order.iter().position(|other| other == option);
        named.unwrap_or(order.len())
    };
    let mut places: Vec<(usize, &String)> = options.map(|option| (place(option), option)).collect();
    places.sort();
    let mut ranks: Vec<usize> = places.iter().map(|(place, _)| *place).collect();
    ranks.dedup();
    let last = ranks.len().saturating_sub(1).max(1);
    let distance = |place: usize| {
        let rank = ranks.iter().position(|other| *other == place).unwrap_or(0);
        // There are few options: the numbers are exact.
        f64::from(u32::try_from(rank).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(last).unwrap_or(u32::MAX))
    };
    places
        .iter()
        .map(|(place, option)| ((*option).clone(), distance(*place)))
        .collect()
}
