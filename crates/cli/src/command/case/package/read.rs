//! Reads what a decision package is made of: the case, and what the reader may read of what is known from before.

use std::collections::BTreeSet;

use concord_domain::aggregates::case::Phase;
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::impact::rerun::plan_now;
use concord_domain::aggregates::impact::{ImpactMachine, all_standings, reports};
use concord_domain::aggregates::precedent::{self, PrecedentMachine};
use concord_domain::aggregates::track_record::TrackRecordMachine;
use concord_domain::aggregates::watch::{self, WatchMachine};
use concord_domain::meeting::{
    AssessedImpact, DebateMatter, EarlierDecision, MeetingPackage, Sources, meeting_package,
};
use concord_domain::rules::precedent::matter_of;
use concord_runtime::Broker;
use concord_runtime::service::clock;
use concord_wire::payload::track_record::Circumstances;
use concord_wire::payload::{Conflict, Precedent, PrecedentMatter, ProvedPosition};
use concord_wire::{CaseId, DebateId};

use crate::shared::case_file::{self, CaseFile, unknown};
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;

/// Most earlier decisions of one dispute that are looked at.
const EARLIER_MAX: usize = precedent::DEBATES_MAX;

/// The package of a case.
pub(super) async fn package(broker: &Broker, case: &CaseId) -> Result<MeetingPackage, Failure> {
    let file = case_file::read(broker, case)
        .await?
        .ok_or_else(|| unknown(case))?;
    let source = EventSource::new(broker).await?;
    let mut sources = Sources {
        now: clock::now(),
        circumstances: circumstances(&source, &file).await?,
        ..Sources::default()
    };
    let conflicts = file.debates.iter().map(|debate| &debate.conflict);
    let own: BTreeSet<DebateId> = conflicts
        .clone()
        .map(|conflict| conflict.conflict_id.clone())
        .collect();
    for conflict in conflicts {
        let mut matter = matter(&source, conflict, &own, &mut sources.withheld).await?;
        let in_case = file.state.outcomes.get(&conflict.conflict_id);
        // A debate that waits at a gate has not ended, and the case knows what stands of it until then.
        matter.outcome = matter.outcome.or_else(|| in_case.cloned());
        sources.debates.push(matter);
    }
    for received in &file.package.findings {
        let id = received.agent_id.token();
        match source.aggregate::<TrackRecordMachine>(&id).await {
            Ok((record, _)) => {
                sources.records.insert(received.agent_id.clone(), record);
            }
            Err(failure) => {
                withhold(failure, "The agents' track records", &mut sources.withheld)?;
                break;
            }
        }
    }
    let (analyses, events) = source.aggregate::<ImpactMachine>(&case.token()).await?;
    let reports = reports(events).into_iter();
    sources.impact = reports
        .map(|(at, assessed)| AssessedImpact { at, assessed })
        .collect();
    let plan = plan_now(
        &analyses.graph,
        &all_standings(&file.state, &analyses.graph),
    );
    let required = plan.required.into_iter();
    sources.to_do_again = required.map(|step| step.analysis_id).collect();
    let gate = file.state.gate();
    let gate = gate.filter(|_| file.state.phase != Phase::Cancelled);
    sources.gate_ahead = gate.map(str::to_owned);
    sources.gates_passed = file.gates_passed;
    Ok(meeting_package(file.package, sources))
}

/// The circumstances of the case, in the regime in which a debate of it would be held now.
async fn circumstances(source: &EventSource, file: &CaseFile) -> Result<Circumstances, Failure> {
    let opened = file.state.opened.as_ref();
    let mut stated = opened
        .map(|opened| opened.circumstances.clone())
        .unwrap_or_default();
    let watch = match source.aggregate::<WatchMachine>(&watch::id()).await {
        Ok((watch, _)) => watch,
        // Who may not read it may not read the track records either, which are all that it is read for.
        Err(failure) if failure.is_unauthorized() => return Ok(stated),
        Err(failure) => return Err(failure),
    };
    let present = watch.regime_of(file.state.opened_sequence, stated.regime.as_deref());
    stated.regime = present.or(stated.regime);
    Ok(stated)
}

/// Notes once what the reader may not read; any other failure ends the work.
fn withhold(failure: Failure, what: &str, withheld: &mut Vec<String>) -> Result<(), Failure> {
    if !failure.is_unauthorized() {
        return Err(failure);
    }
    let line =
        format!("{what} are not shown: operators, auditors, arbiters and reviewers may read them.");
    if !withheld.contains(&line) {
        withheld.push(line);
    }
    Ok(())
}

async fn matter(
    source: &EventSource,
    conflict: &Conflict,
    own: &BTreeSet<DebateId>,
    withheld: &mut Vec<String>,
) -> Result<DebateMatter, Failure> {
    let id = conflict.conflict_id.token();
    let (debate, _) = source.aggregate::<DebateMachine>(&id).await?;
    let known = match &debate.opened {
        Some(opened) => precedents(source, &matter_of(opened), own).await,
        None => Ok(Vec::new()),
    };
    let known = match known {
        Ok(known) => known,
        Err(failure) => {
            withhold(failure, "Earlier decisions like these", withheld)?;
            Vec::new()
        }
    };
    let opened = debate.opened;
    let terms = opened.as_ref().map(|opened| opened.terms.clone());
    Ok(DebateMatter {
        conflict: conflict.clone(),
        terms: terms.unwrap_or_default(),
        opened,
        outcome: debate.outcome,
        earlier: known.into_iter().map(turned_out).collect(),
    })
}

/// Debates of other cases like this one, the newest first.
async fn precedents(
    source: &EventSource,
    matter: &PrecedentMatter,
    own: &BTreeSet<DebateId>,
) -> Result<Vec<Precedent>, Failure> {
    let exact = precedent::id_of(matter.kind, &matter.subject);
    let (exact, _) = source.aggregate::<PrecedentMachine>(&exact).await?;
    let field = precedent::field_id_of(matter);
    let (field, _) = source.aggregate::<PrecedentMachine>(&field).await?;
    let found = precedent::alike_elsewhere(matter, (&exact, &field), own, EARLIER_MAX);
    Ok(found.into_iter().cloned().collect())
}

/// How an earlier decision turned out. Its entry says it, so the debate itself is not read: it may be archived.
fn turned_out(one: Precedent) -> EarlierDecision {
    let was_right = one.proved.as_ref().and_then(ProvedPosition::was_right);
    let (proved, explanation) = one
        .proved
        .map(|proved| (proved.position, proved.explanation))
        .unzip();
    EarlierDecision {
        debate_id: one.debate_id,
        topic: one.topic,
        position: one.position,
        status: one.status,
        at: one.at,
        proved,
        explanation,
        was_right,
    }
}
