//! Analyses: who publishes is in the case, each version is what its message leads to, and no change of a debate is forgotten by whoever
//! used another value.

use concord_coordinator::route::shared::SharedInput;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::impact::{ImpactInput, ImpactMachine, all_standings, moved};
use concord_domain::assurance::replay;
use concord_domain::rules::impact::graph::Source;
use concord_domain::rules::impact::report::assess;
use concord_events::{CaseEvent, ImpactEvent, StoredEvent};
use concord_wire::Token;

use super::{Archive, in_case, said};
use crate::check::again::decided_again;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<ImpactMachine>(&archive.analyses, violations, |record| {
        match &record.event {
            ImpactEvent::Published(_) => said(archive, record, published),
            ImpactEvent::Assessed(assessed) => vec![ImpactInput::Moved(Box::new(moved(assessed)))],
            ImpactEvent::RerunStarted(_) | ImpactEvent::RerunStepEnded(_) => Vec::new(),
        }
    });
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
    let graph = replay::rebuild::<ImpactMachine>(records).0.state.graph;
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
