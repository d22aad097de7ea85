//! What is held back is told: each version at most once, at one of the checkpoints that the case has come to, and nothing that stands is
//! left when the case is over.

use std::collections::BTreeMap;

use concord_domain::aggregates::case::{CaseMachine, everyone_in};
use concord_domain::aggregates::synthesis::{SynthesisMachine, SynthesisState};
use concord_domain::machine::{Machine, Versioned};
use concord_events::{
    Aggregate, CaseEvent, InsightsTold, MemoryEvent, StoredEvent, SynthesisEvent,
};
use concord_wire::payload::{CheckpointReason, Reach, Snapshot};
use concord_wire::{AgentId, Token};

use super::super::archive::Archive;

/// What was held back of a case: by agent and topic, the sequence and the version.
type Held = BTreeMap<(AgentId, Token), Vec<(u64, u64)>>;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (case, records) in &archive.cases {
        let mut known = Versioned::<CaseMachine>::default();
        records
            .iter()
            .for_each(|record| known.apply(record.clone()));
        let Some(opened) = &known.state.opened else {
            continue;
        };
        let nothing = Vec::new();
        let syntheses = archive.syntheses.get(case).unwrap_or(&nothing);
        if !opened.policy.importance.filtered {
            if !syntheses.is_empty() {
                violations.push(format!(
                    "synthesis: {case} holds nothing back by its policy"
                ));
            }
            continue;
        }
        let everyone = everyone_in(opened);
        let mut state = SynthesisState::default();
        for record in syntheses {
            if let SynthesisEvent::Consolidated(told) = &record.event {
                is_at_checkpoint(archive, (case, records), (record, told), violations);
                if told.told.iter().any(|one| !everyone.contains(one)) {
                    let at = record.sequence;
                    violations.push(format!(
                        "synthesis: somebody outside {case} is told at {at}"
                    ));
                }
            }
            SynthesisMachine::apply(&mut state, record.clone());
        }
        let held = held(archive, case);
        each_once(syntheses, &held, violations);
        if known.state.is_over() {
            none_is_lost(archive, (case, &state), &held, violations);
        }
    }
}

/// What the memories say of the entries of a case that are held back.
fn held(archive: &Archive, case: &Token) -> Held {
    let mut held = Held::new();
    for record in archive.memories.values().flatten() {
        let MemoryEvent::Put(put) = &record.event;
        let is_of_case = put.case_id.as_ref().is_some_and(|id| id.token() == *case);
        let reach = put.reach.as_ref().map(|reach| reach.reach);
        if is_of_case && reach == Some(Reach::Held) {
            let place = (put.heard.agent_id.clone(), put.entry.topic.clone());
            let versions = held.entry(place).or_default();
            versions.push((record.sequence, put.version));
        }
    }
    held
}

/// A checkpoint follows from what it says it is.
fn is_at_checkpoint(
    archive: &Archive,
    (case, records): (&Token, &[StoredEvent<CaseEvent>]),
    (record, told): (&StoredEvent<SynthesisEvent>, &InsightsTold),
    violations: &mut Vec<String>,
) {
    let cause = archive.events.get(&record.meta.cause);
    let of_case = records
        .iter()
        .find(|one| one.meta.event_id == record.meta.cause)
        .map(|one| &one.event);
    let aggregate = cause.map(|(aggregate, _, _)| *aggregate);
    let is_so = match told.reason {
        CheckpointReason::Detected => aggregate == Some(Aggregate::Detection),
        CheckpointReason::Decided => matches!(of_case, Some(CaseEvent::Decided(_))),
        CheckpointReason::GatePassed => matches!(of_case, Some(CaseEvent::GatePassed(_))),
        CheckpointReason::CaseOver => of_case.is_some(),
        CheckpointReason::Period => aggregate == Some(Aggregate::Deadline),
        CheckpointReason::Full | CheckpointReason::Late => aggregate == Some(Aggregate::Memory),
    };
    if !is_so {
        let (at, reason) = (record.sequence, told.reason);
        violations.push(format!(
            "synthesis: {case} at {at} is told for {reason}, and {aggregate:?} has led to it"
        ));
    }
}

/// What is told was held back, as it was written, and is told once.
fn each_once(records: &[StoredEvent<SynthesisEvent>], held: &Held, violations: &mut Vec<String>) {
    let mut told = BTreeMap::new();
    for record in records {
        let SynthesisEvent::Consolidated(one) = &record.event else {
            continue;
        };
        for insight in &one.insights {
            let place = (insight.agent.clone(), insight.topic.clone());
            let versions = held.get(&place);
            let this = (insight.since.0, insight.version);
            let is_held = versions.is_some_and(|versions| versions.contains(&this));
            let (topic, version, at) = (&insight.topic, insight.version, record.sequence);
            if !is_held {
                violations.push(format!(
                    "synthesis: {topic} {version} at {at} was not held back"
                ));
            }
            if let Some(before) = told.insert((place, version), at) {
                violations.push(format!(
                    "synthesis: {topic} {version} is told at {before} and at {at}"
                ));
            }
        }
    }
}

/// Of each topic, what stands was told if it was held back.
fn none_is_lost(
    archive: &Archive,
    (case, state): (&Token, &SynthesisState),
    held: &Held,
    violations: &mut Vec<String>,
) {
    if !state.is_over || !state.held.is_empty() {
        let left = state.held.len();
        violations.push(format!(
            "synthesis: {case} is over, and {left} are held back"
        ));
    }
    for ((agent, topic), versions) in held {
        let Some((sequence, version)) = versions.last() else {
            continue;
        };
        let written = archive.memories.get(&agent.token()).into_iter().flatten();
        let is_replaced = written.into_iter().any(|record| {
            let MemoryEvent::Put(put) = &record.event;
            put.entry.topic == *topic && record.sequence > *sequence
        });
        let told = state.told.get(&(topic.clone(), agent.clone()));
        if !is_replaced && told != Some(version) {
            let since = Snapshot(*sequence);
            violations.push(format!(
                "synthesis: {topic} of {agent} as of {since} is held back, and {case} is over without it"
            ));
        }
    }
}
