//! Analyses: who publishes is in the case, each version is what its message leads to, and no change of a debate is forgotten by whoever
//! used another value.

use concord_coordinator::route::shared::SharedInput;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::impact::{
    ImpactInput, ImpactMachine, all_standings, moved, with_decisions,
};
use concord_domain::assurance::replay;
use concord_domain::machine::Versioned;
use concord_domain::rules::impact::graph::Source;
use concord_domain::rules::impact::report::assess;
use concord_domain::rules::impact::resting::{named, resting_on};
use concord_events::{CaseEvent, DebateEvent, ImpactEvent, StoredEvent};
use concord_wire::{DebateId, Token};

use super::{Archive, in_case, reruns, said};
use crate::check::again::decided_again;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<ImpactMachine>(&archive.analyses, violations, |record| {
        match &record.event {
            ImpactEvent::Published(_) => said(archive, record, published)
                .into_iter()
                .flat_map(|input| filled_in(archive, record, input))
                .collect(),
            ImpactEvent::Assessed(assessed) => vec![ImpactInput::Moved(Box::new(moved(assessed)))],
            ImpactEvent::RerunStarted(started) => reruns::started(archive, record, started),
            ImpactEvent::RerunStepEnded(ended) => reruns::step_ended(archive, record, ended),
            ImpactEvent::Estimated(_) => Vec::new(),
        }
    });
    resting(archive, violations);
    for (id, records) in &archive.analyses {
        for record in records {
            if let ImpactEvent::Published(published) = &record.event {
                let author = &published.heard.agent_id;
                in_case(archive, id, author, record.sequence, violations);
            }
        }
        assessed(archive, id, records, violations);
    }
}

/// A debate about a detected conflict was opened with the analyses that rested on it at some time before.
fn resting(archive: &Archive, violations: &mut Vec<String>) {
    let debates = archive.debates.values().flatten();
    for (record, opened) in debates.filter_map(|record| match &record.event {
        DebateEvent::Opened(opened) if opened.terms.challenge.is_none() => Some((record, opened)),
        _ => None,
    }) {
        let (case_id, conflict) = (&opened.case_id, &opened.conflict);
        let of_case = archive.cases.get(&case_id.token());
        let taken_up = opened.terms.refers_to.as_ref().zip(of_case);
        let taken_up: Vec<DebateId> = taken_up.map_or_else(Vec::new, |(earlier, of_case)| {
            let case = replay::rebuild::<CaseMachine>(of_case).0.state;
            case.taken_up(earlier).cloned().collect()
        });
        let mut known = Versioned::<ImpactMachine>::default();
        let analyses = archive.analyses.get(&case_id.token()).into_iter().flatten();
        let mut rested = vec![Vec::new()];
        for analysis in analyses.take_while(|one| one.sequence < record.sequence) {
            known.apply(analysis.clone());
            rested.push(named(&resting_on(
                &known.state.graph,
                case_id,
                conflict,
                &taken_up,
            )));
        }
        if !rested.contains(&opened.terms.dependants) {
            violations.push(format!(
                "shared: {} was opened with {:?}, which did not rest on it",
                conflict.conflict_id, opened.terms.dependants
            ));
        }
    }
}

/// The same with the values that stood in the case at any time before: the coordinator has read it at one of them.
fn filled_in(
    archive: &Archive,
    record: &StoredEvent<ImpactEvent>,
    input: ImpactInput,
) -> Vec<ImpactInput> {
    let ImpactInput::Publish(received) = input else {
        return vec![input];
    };
    let mut case = Versioned::<CaseMachine>::default();
    let of_case = archive.cases.get(&record.meta.id).into_iter().flatten();
    let before = of_case.take_while(|one| one.sequence < record.sequence);
    let filled = before.filter_map(|one| {
        case.apply(one.clone());
        let mut received = received.clone();
        received.analysis = with_decisions(&case.state, received.analysis).ok()?;
        Some(ImpactInput::Publish(received))
    });
    filled.collect()
}

fn published(input: SharedInput) -> Option<(Token, ImpactInput)> {
    match input {
        SharedInput::Analysis(received) => {
            Some((received.case_id.token(), ImpactInput::Publish(received)))
        }
        _ => None,
    }
}

/// Whoever used a value that does not stand in the end is named by a report, unless it was published after the case had its last outcome.
fn assessed(
    archive: &Archive,
    id: &Token,
    records: &[StoredEvent<ImpactEvent>],
    violations: &mut Vec<String>,
) {
    let Some(of_case) = archive.cases.get(id) else {
        return;
    };
    let case = replay::rebuild::<CaseMachine>(of_case).0.state;
    let graph = replay::rebuild::<ImpactMachine>(records)
        .0
        .into_state()
        .graph;
    let outcomes = of_case.iter().filter(|record| {
        matches!(
            record.event,
            CaseEvent::DebateSettled(_) | CaseEvent::Decided(_) | CaseEvent::DecisionChanged(_)
        )
    });
    let Some(first) = outcomes.map(|record| record.sequence).min() else {
        return;
    };
    let known = |record: &&StoredEvent<ImpactEvent>| record.sequence < first;
    let standings = all_standings(&case, &graph);
    for impact in assess(&graph, &standings, &[]) {
        let analysis = &impact.analysis_id;
        let mut published = records.iter().filter(|record| {
            matches!(&record.event, ImpactEvent::Published(one) if one.analysis.analysis_id == *analysis)
        });
        // What was published or changed afterwards may rest on what stood by then.
        if !published.all(|record| known(&record)) {
            continue;
        }
        let uses = graph.get(analysis).into_iter();
        let uses: Vec<Source> = uses.flat_map(|one| one.sources()).collect();
        let is_direct = uses.iter().any(|source| standings.contains_key(source));
        let mut reports = records.iter().filter_map(|record| match &record.event {
            ImpactEvent::Assessed(assessed) => Some(&assessed.report),
            _ => None,
        });
        let is_named = reports.any(|report| {
            report
                .impacts
                .iter()
                .any(|one| one.analysis_id == *analysis)
        });
        let is_analysis = |source: &Source| matches!(source, Source::Analysis(_));
        let only_assumptions = !uses.iter().any(is_analysis);
        if is_direct && only_assumptions && !is_named {
            violations.push(format!(
                "shared: {analysis} of {id} rests on a value that does not stand, and no report names it"
            ));
        }
    }
}
