//! A change of regime flags the cases that are open, with what of them it concerns.

use std::collections::BTreeSet;

use concord_events::{AlertRaised, CaseEvent, CaseFlagged};
use concord_wire::payload::{AffectedPart, AlertFlag, DependencyKind};
use concord_wire::{Timestamp, Token};
use serde_json::{Map, Value};

use super::decide::CaseDecision;
use super::state::CaseState;
use crate::aggregates::impact::ImpactState;
use crate::machine::{Decision, Ignored};
use crate::rules::size_budget::json_bytes;

/// How often one case is flagged: what comes after is in the list of alerts alone.
pub const FLAGS_MAX: usize = 16;
/// Most parts of a case that a flag names.
const AFFECTED_MAX: usize = 16;
/// Most bytes of implications that a flag repeats.
const IMPLICATIONS_BYTES_MAX: usize = 8_192;

pub(super) fn flag(state: &CaseState, flag: &AlertFlag) -> CaseDecision {
    let mut known = state.flags.iter();
    let is_known = known.any(|known| known.alert == flag.alert);
    if is_known || state.is_over() || state.flags.len() >= FLAGS_MAX {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(CaseEvent::Flagged(Box::new(CaseFlagged {
        flag: flag.clone(),
    })))
}

/// The flag of a case: the alert, and which topics, metrics, assumptions and analyses of the case its implications name.
pub fn flag_of(
    (alert, at, raised): (&Token, Timestamp, &AlertRaised),
    case: &CaseState,
    analyses: &ImpactState,
) -> AlertFlag {
    let said = &raised.alert;
    let is_short = json_bytes(&said.implications) <= IMPLICATIONS_BYTES_MAX;
    AlertFlag {
        alert: alert.clone(),
        event_type: said.event_type.clone(),
        at,
        raised_by: raised.heard.agent_id.clone(),
        old_regime: said.old_regime.clone(),
        new_regime: said.new_regime.clone(),
        confidence: said.confidence,
        implications: match is_short {
            true => said.implications.clone(),
            false => Map::new(),
        },
        affected: affected(&said.implications, case, analyses),
        gates: raised.gates.clone(),
    }
}

/// What of the case an implication names: whatever has all its words in that of an implication, or of one of its members. So
/// `discount_rate_changes` names the assumption "discount rate".
fn affected(
    implications: &Map<String, Value>,
    case: &CaseState,
    analyses: &ImpactState,
) -> Vec<AffectedPart> {
    let named: Vec<(&String, Vec<BTreeSet<String>>)> = implications
        .iter()
        .map(|(name, value)| {
            let members = value.as_object().into_iter().flat_map(Map::keys);
            (
                name,
                std::iter::once(name)
                    .chain(members)
                    .map(|one| words(one))
                    .collect(),
            )
        })
        .collect();
    let mut found = BTreeSet::new();
    for (kind, part) in parts(case, analyses) {
        let its = words(part);
        let of = |texts: &Vec<BTreeSet<String>>| texts.iter().any(|text| its.is_subset(text));
        let names_it = named.iter().find(|(_, texts)| !its.is_empty() && of(texts));
        if let Some((implication, _)) = names_it {
            found.insert(AffectedPart {
                kind: kind.to_owned(),
                name: part.to_owned(),
                implication: (*implication).clone(),
            });
        }
    }
    found.into_iter().take(AFFECTED_MAX).collect()
}

/// Everything in a case that has a name, with what it is.
fn parts<'a>(
    case: &'a CaseState,
    analyses: &'a ImpactState,
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let findings = || case.findings.iter().map(|received| &received.finding);
    let critical = findings().flat_map(|finding| &finding.critical_findings);
    let topics = critical.map(|one| one.topic.as_str());
    let disputed = case.debated.iter().map(|conflict| conflict.topic.as_str());
    let estimates = findings().flat_map(|finding| &finding.estimates);
    let metrics = estimates.map(|one| one.metric.as_str());
    let assumptions = analyses
        .graph
        .sources()
        .filter(|source| source.kind() == DependencyKind::Assumption)
        .map(|source| source.name());
    let of_analyses = analyses.graph.analyses().map(|(id, _)| id.as_str());
    let named = |kind: &'static str| move |name: &'a str| (kind, name);
    topics
        .chain(disputed)
        .map(named("topic"))
        .chain(metrics.map(named("metric")))
        .chain(assumptions.map(named("assumption")))
        .chain(of_analyses.map(named("analysis")))
}

/// The words of a name, without case and without the s of a plural.
fn words(name: &str) -> BTreeSet<String> {
    let words = name.split(|one: char| !one.is_alphanumeric());
    let words = words.map(|word| word.to_lowercase().trim_end_matches('s').to_owned());
    words.filter(|word| !word.is_empty()).collect()
}
