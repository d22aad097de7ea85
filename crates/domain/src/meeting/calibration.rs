//! Confidences, corrected by what the records of the agents show.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::ReceivedFinding;
use concord_wire::AgentId;
use concord_wire::payload::Credibility;
use concord_wire::payload::track_record::{Interval, Query, Version};
use serde::Serialize;

use super::{Sources, is_thin};
use crate::aggregates::case::{DecisionPackage, with_share};
use crate::aggregates::track_record::{TrackRecordState, credibility_of};
use crate::rules::credibility::{Z, wilson};
use crate::rules::impact::graph::name_of;

/// As many data points as an agent's own word is worth: the number from which a record decides debates.
pub const STATED_WORTH: f64 = crate::rules::credibility::DATA_POINTS_MIN;

/// The record of an agent in one domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordInDomain {
    /// The domain.
    pub domain: String,
    /// The credibility there, with its factors.
    pub credibility: Credibility,
}

/// A finding with its calibrated confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibratedFinding {
    /// Who concluded it.
    pub agent_id: AgentId,
    /// What was concluded.
    pub summary: String,
    /// What follows from it for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<String>,
    /// What is recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// How sure the agent says that it is, 0 to 1.
    pub stated: f64,
    /// The same with the confirmations that count, corrected by its record.
    pub calibrated: f64,
    /// 95 % interval around it: 0 to 1 without a record.
    pub interval: Interval,
    /// The domain of the record; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The data points of the record.
    pub data_points: f64,
    /// What supports it.
    pub evidence: Vec<String>,
    /// The assumptions that it rests on.
    pub assumptions: Vec<String>,
}

/// A stated confidence, corrected by a credibility that rests on this many data points.
pub fn calibrated(stated: f64, credibility: f64, data_points: f64) -> f64 {
    let points = data_points.max(0.0);
    let value = (STATED_WORTH * stated + points * credibility) / (STATED_WORTH + points);
    debug_assert!(
        value >= stated.min(credibility) - 1e-9 && value <= stated.max(credibility) + 1e-9,
        "the result lies between what is said and what is known"
    );
    value
}

/// The records of those who gave findings: in the domains of the case, or in all of their own where the case has none.
pub(super) fn records(
    case: &DecisionPackage,
    sources: &Sources,
    domains: &BTreeSet<String>,
    version: Version,
) -> BTreeMap<AgentId, Vec<RecordInDomain>> {
    let of_agent = |agent: &AgentId| {
        let record = sources.records.get(agent)?;
        let asked = if domains.is_empty() {
            own_domains(record)
        } else {
            domains.clone()
        };
        let in_domain = |domain: String| {
            let query = Query {
                now: sources.now,
                domain: domain.clone(),
                regime: sources.circumstances.regime.clone(),
                context: sources.circumstances.context.clone(),
            };
            let credibility = credibility_of(record, version, &query);
            RecordInDomain {
                domain,
                credibility,
            }
        };
        let known: Vec<RecordInDomain> = asked
            .into_iter()
            .map(in_domain)
            .filter(|one| one.credibility.data_points > 0.0)
            .collect();
        Some((agent.clone(), known))
    };
    let agents = case.findings.iter().map(|received| &received.agent_id);
    agents.filter_map(of_agent).collect()
}

/// The domains with observations, each as it was written last.
fn own_domains(record: &TrackRecordState) -> BTreeSet<String> {
    let written: BTreeMap<String, &String> = record
        .observations()
        .map(|one| (name_of(&one.domain), &one.domain))
        .collect();
    written.into_values().cloned().collect()
}

/// The findings with calibrated confidences.
pub(super) fn findings(
    case: &DecisionPackage,
    records: &BTreeMap<AgentId, Vec<RecordInDomain>>,
) -> Vec<CalibratedFinding> {
    let one = |received: &ReceivedFinding| {
        let known = records
            .get(&received.agent_id)
            .and_then(|known| best(known));
        let points = known.map_or(0.0, |one| one.credibility.data_points);
        let share = case.counted.get(&received.agent_id);
        let sure = share.map_or(received.confidence, |share| {
            with_share(received.confidence, *share)
        });
        let score = known.map_or(sure, |one| one.credibility.score);
        let value = calibrated(sure, score, points);
        CalibratedFinding {
            agent_id: received.agent_id.clone(),
            summary: received.finding.summary.clone(),
            impact: received.finding.impact.clone(),
            recommendation: received.finding.recommendation.clone(),
            stated: received.confidence,
            calibrated: value,
            interval: wilson(value, points, Z),
            domain: known.map(|one| one.domain.clone()),
            data_points: points,
            evidence: received.finding.evidence.clone(),
            assumptions: received.finding.assumptions.clone(),
        }
    };
    case.findings.iter().map(one).collect()
}

/// The record with most data points; of equals the first.
pub(super) fn best(known: &[RecordInDomain]) -> Option<&RecordInDomain> {
    let points = |one: &RecordInDomain| one.credibility.data_points;
    known.iter().reduce(|best, one| {
        if points(one) > points(best) {
            one
        } else {
            best
        }
    })
}

impl RecordInDomain {
    /// Whether there are too few data points for it to decide anything.
    pub fn is_thin(&self) -> bool {
        is_thin(&self.credibility)
    }
}
