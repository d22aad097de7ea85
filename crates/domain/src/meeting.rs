//! The decision package for a meeting: everything that is known of a case, and of cases before it, with the confidences corrected
//! by what the agents' records show, and a recommendation weighted by them.
//!
//! Nothing of it is stored, and it decides nothing: the decision of the case stands as it is. The formulas are in
//! [`FORMULAS`], and each number stands beside what it was computed from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::{DebateOpened, ImpactAssessed, ReceivedFinding};
use concord_wire::payload::track_record::Version;
use concord_wire::payload::{
    Circumstances, Conflict, ConflictOutcome, Credibility, DebateTerms, Position, PrecedentClaim,
    PrecedentGuidance,
};
use concord_wire::{AgentId, DebateId, Timestamp, Token};
use serde::Serialize;

use crate::aggregates::case::{DecisionPackage, PassedGate};
use crate::aggregates::debate::verdicts::domain_of;
use crate::aggregates::track_record::TrackRecordState;
use crate::rules::impact::graph::name_of;
use crate::rules::precedent;

mod calibration;
mod history;
mod support;
mod uncertainty;

pub use calibration::{CalibratedFinding, RecordInDomain, STATED_WORTH, calibrated};
pub use history::{EarlierDecision, History};
pub use support::{Recommendation, SupportedOption};

/// The formulas of the package, for a reader: what is computed, and how.
pub const FORMULAS: [(&str, &str); 6] = [
    (
        "credibility",
        "the product of the factors that apply (concord record show), in the domain of the case in which the agent has most data points",
    ),
    (
        "calibrated confidence",
        "(15 × stated + n × credibility) / (15 + n), with n data points: without a record it is what the agent says, at 15 points half \
         of it is the record",
    ),
    (
        "interval",
        "Wilson's, 95 %: of a calibrated confidence at the n points of the agent, of a share at those of all agents, of a success \
         rate at the decisions of which the outcome is known",
    ),
    (
        "weight of an option",
        "the sum of the calibrated confidences of those who recommend it × precedent factor",
    ),
    (
        "precedent factor",
        "2 × the middle of Wilson's interval of how often the option proved right in earlier decisions like this one; 1 where nothing \
         is known",
    ),
    (
        "risk-adjusted share",
        "share × (1 − risk score / 100 × distance), where the distance of the most cautious option is 0 and that of the least \
         cautious 1",
    ),
];

/// What is read beside the case.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The present: ages are counted back from it.
    pub now: Timestamp,
    /// The circumstances of the case.
    pub circumstances: Circumstances,
    /// The track records of those who gave findings; empty where the reader may not read them.
    pub records: BTreeMap<AgentId, TrackRecordState>,
    /// The debates, in ranking order of their conflicts.
    pub debates: Vec<DebateMatter>,
    /// What a changed decision does to analyses, the oldest first.
    pub impact: Vec<AssessedImpact>,
    /// The analyses that must be done again, as of now.
    pub to_do_again: Vec<Token>,
    /// The gate that the case has ahead, as of now.
    pub gate_ahead: Option<String>,
    /// The gates that the case has passed.
    pub gates_passed: Vec<PassedGate>,
    /// What the reader may not read, in a sentence each.
    pub withheld: Vec<String>,
}

/// A debate of the case, and what was decided before in debates like it.
#[derive(Debug, Clone, PartialEq)]
pub struct DebateMatter {
    /// The conflict.
    pub conflict: Conflict,
    /// Its terms.
    pub terms: DebateTerms,
    /// How it ended, if it has, or what stands provisionally.
    pub outcome: Option<ConflictOutcome>,
    /// How it was opened, if it was.
    pub opened: Option<Arc<DebateOpened>>,
    /// Earlier decisions like it, the newest first.
    pub earlier: Vec<EarlierDecision>,
}

/// A report of what a change does, with its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssessedImpact {
    /// When it was assessed.
    pub at: Timestamp,
    /// The report.
    #[serde(flatten)]
    pub assessed: ImpactAssessed,
}

/// The decision package for a meeting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeetingPackage {
    /// When it was made.
    pub made_at: Timestamp,
    /// What is recommended, weighted by everything below.
    pub recommendation: Recommendation,
    /// What the reader should know is not certain, in a sentence each.
    pub uncertainty: Vec<String>,
    /// The findings that count, with calibrated confidences, ordered by agent id.
    pub findings: Vec<CalibratedFinding>,
    /// What was disputed, in ranking order.
    pub disputes: Vec<Dispute>,
    /// Earlier decisions like these that proved wrong, the newest first.
    pub cautionary: Vec<EarlierDecision>,
    /// What was learned when the outcome of earlier decisions became known, the newest first.
    pub lessons: Vec<Lesson>,
    /// The records of the agents, with factors and trend.
    pub credibility: BTreeMap<AgentId, Vec<RecordInDomain>>,
    /// The version of the formula of credibility.
    pub credibility_version: Version,
    /// What changed decisions do to analyses, the oldest first.
    pub impact: Vec<AssessedImpact>,
    /// The analyses that must be done again, as of now.
    pub to_do_again: Vec<Token>,
    /// The gate that the case has ahead, as of now; the decision has those that were ahead when it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_ahead: Option<String>,
    /// The gates that the case has passed, with who let it pass, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates_passed: Vec<PassedGate>,
    /// What the reader may not read, in a sentence each.
    pub withheld: Vec<String>,
    /// How the numbers are computed.
    pub formulas: BTreeMap<&'static str, &'static str>,
    /// The case: task, policy, decision with its versions, findings in full.
    pub case: DecisionPackage,
}

/// A dispute of the case: how it ended, who disagrees, and what came of disputes like it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dispute {
    /// The debate.
    pub debate_id: DebateId,
    /// What is disputed, in words.
    pub topic: String,
    /// The field in which track records count.
    pub domain: String,
    /// How it ended, or what stands provisionally; absent while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ConflictOutcome>,
    /// Positions at the end that were not chosen.
    pub dissent: Vec<Position>,
    /// Earlier decisions like it.
    pub history: History,
    /// What those that were known when it was opened say about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<PrecedentGuidance>,
    /// What agents claim about earlier cases, beside what is known.
    pub claims: Vec<PrecedentClaim>,
}

/// What was learned from an earlier decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lesson {
    /// The earlier debate.
    pub debate_id: DebateId,
    /// What was disputed.
    pub topic: String,
    /// What proved right, in words.
    pub proved: String,
    /// How that is known.
    pub explanation: String,
}

/// The package of a case.
pub fn meeting_package(case: DecisionPackage, sources: Sources) -> MeetingPackage {
    let version = case.policy.ladder.credibility.max(Version::Comprehensive);
    // Of several spellings of one domain the last, as with those of a record.
    let domains: BTreeMap<String, String> = sources
        .debates
        .iter()
        .map(|debate| domain_of(&debate.terms, &debate.conflict))
        .map(|domain| (name_of(&domain), domain))
        .collect();
    let domains: BTreeSet<String> = domains.into_values().collect();
    let credibility = calibration::records(&case, &sources, &domains, version);
    let findings = calibration::findings(&case, &credibility);
    let believed: BTreeMap<AgentId, Credibility> = credibility
        .iter()
        .filter_map(|(agent, known)| {
            Some((agent.clone(), calibration::best(known)?.credibility.clone()))
        })
        .collect();
    let debates = sources.debates.into_iter();
    let disputes: Vec<Dispute> = debates
        .map(|debate| dispute(debate, &case.findings, &believed))
        .collect();
    let earlier = history::all(&disputes);
    let package = MeetingPackage {
        made_at: sources.now,
        recommendation: support::recommendation(&case, &findings, &disputes),
        uncertainty: Vec::new(),
        findings,
        cautionary: earlier
            .iter()
            .filter(|one| one.was_right == Some(false))
            .map(|one| (*one).clone())
            .collect(),
        lessons: earlier.iter().filter_map(|one| one.lesson()).collect(),
        disputes,
        credibility,
        credibility_version: version,
        impact: sources.impact,
        to_do_again: sources.to_do_again,
        gate_ahead: sources.gate_ahead,
        gates_passed: sources.gates_passed,
        withheld: sources.withheld,
        formulas: FORMULAS.into_iter().collect(),
        case,
    };
    MeetingPackage {
        uncertainty: uncertainty::of(&package),
        ..package
    }
}

fn dispute(
    debate: DebateMatter,
    findings: &[ReceivedFinding],
    believed: &BTreeMap<AgentId, Credibility>,
) -> Dispute {
    let opened = debate.opened.as_deref();
    let supporters = debate
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.resolution.as_ref())
        .map(|resolution| resolution.supporters.clone());
    let held = match &debate.outcome {
        Some(outcome) if !outcome.positions.is_empty() => &outcome.positions,
        _ => &debate.conflict.positions,
    };
    let dissents = |held: &&Position| {
        supporters
            .as_ref()
            .is_none_or(|s| !s.contains(&held.agent_id))
    };
    Dispute {
        debate_id: debate.conflict.conflict_id.clone(),
        topic: debate.conflict.topic.clone(),
        domain: domain_of(&debate.terms, &debate.conflict),
        dissent: held.iter().filter(dissents).cloned().collect(),
        history: History::of(debate.earlier),
        guidance: opened.and_then(|one| precedent::guidance_of(one, &one.conflict.positions)),
        claims: opened.map_or_else(Vec::new, |one| precedent::claims(one, findings, believed)),
        outcome: debate.outcome,
    }
}

/// Whether a record is too small for credibility to decide anything.
fn is_thin(known: &Credibility) -> bool {
    known.data_points < crate::rules::credibility::DATA_POINTS_MIN
}

#[cfg(test)]
mod tests;
