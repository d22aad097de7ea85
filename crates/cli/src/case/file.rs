//! Everything that is stored of one case: its own facts, and those of its debates.

use concord_domain::aggregates::case::{CaseMachine, CaseState, DecisionPackage, package};
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_domain::machine::Versioned;
use concord_domain::{Machine, aggregates::detection::DetectionMachine};
use concord_events::{DebateEvent, ReceivedAnswer, StoredEvent};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::{Broker, Consistency, EventStore};
use concord_wire::payload::{Conflict, ConflictOutcome, RoundRecord};
use concord_wire::{AgentId, CaseId, Timestamp, Token};
use serde::Serialize;

use crate::failure::Failure;

/// Everything that is stored of one case.
#[derive(Debug, Serialize)]
pub(crate) struct CaseFile {
    /// The case.
    #[serde(flatten)]
    pub(crate) package: DecisionPackage,
    /// Its debates, in ranking order of their conflicts.
    pub(crate) debates: Vec<DebateFile>,
    /// Its state, for those who ask more.
    #[serde(skip)]
    pub(crate) state: CaseState,
}

/// One debate.
#[derive(Debug, Serialize)]
pub(crate) struct DebateFile {
    /// What is disputed, with the positions at the start.
    pub(crate) conflict: Conflict,
    /// Its rounds, with what was answered.
    pub(crate) rounds: Vec<RoundFile>,
    /// How it ended, when it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<ConflictOutcome>,
}

/// One round of a debate.
#[derive(Debug, Serialize)]
pub(crate) struct RoundFile {
    /// The round, from 1.
    pub(crate) round: u32,
    /// Who was asked.
    pub(crate) asked: Vec<AgentId>,
    /// Until when answers count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Timestamp>,
    /// The answers, in the order of arrival.
    pub(crate) answers: Vec<ReceivedAnswer>,
    /// The round in figures, when it has closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<RoundRecord>,
}

/// The facts of one aggregate and the state they come to.
pub(crate) async fn aggregate<M: Machine>(
    ledger: &NatsEventStore,
    id: &Token,
) -> Result<(M::State, Vec<StoredEvent<M::Event>>), Failure> {
    let records = ledger
        .load::<M::Event>(id, 0, Consistency::Leader)
        .await?
        .records;
    let mut rebuilt = Versioned::<M>::default();
    for record in &records {
        rebuilt.apply(record.clone());
    }
    Ok((rebuilt.state, records))
}

/// The state of a case; none when it was never opened.
pub(crate) async fn state(broker: &Broker, case: &CaseId) -> Result<Option<CaseState>, Failure> {
    let ledger = NatsEventStore::new(broker.clone()).await?;
    let (state, _) = aggregate::<CaseMachine>(&ledger, &case.token()).await?;
    Ok(state.opened.is_some().then_some(state))
}

/// The conflicts of a case that are debated, as soon as they are known.
pub(crate) async fn debated(
    broker: &Broker,
    case: &CaseId,
    state: &CaseState,
) -> Result<Vec<Conflict>, Failure> {
    if !state.debated.is_empty() {
        return Ok(state.debated.clone());
    }
    let ledger = NatsEventStore::new(broker.clone()).await?;
    let (detection, _) = aggregate::<DetectionMachine>(&ledger, &case.token()).await?;
    Ok(detection
        .detected
        .map(|detected| detected.debated)
        .unwrap_or_default())
}

/// Reads a case; none when it was never opened.
pub(crate) async fn read(broker: &Broker, case: &CaseId) -> Result<Option<CaseFile>, Failure> {
    let Some(state) = state(broker, case).await? else {
        return Ok(None);
    };
    let Some(package) = package(case, &state) else {
        return Ok(None);
    };
    let ledger = NatsEventStore::new(broker.clone()).await?;
    let mut debates = Vec::new();
    for conflict in debated(broker, case, &state).await? {
        let (debate, records) =
            aggregate::<DebateMachine>(&ledger, &conflict.conflict_id.token()).await?;
        debates.push(debate_file(conflict, &debate, &records));
    }
    Ok(Some(CaseFile {
        package,
        debates,
        state,
    }))
}

fn debate_file(
    conflict: Conflict,
    debate: &DebateState,
    records: &[StoredEvent<DebateEvent>],
) -> DebateFile {
    let mut rounds: Vec<RoundFile> = Vec::new();
    let begin = |round, asked: &[AgentId], due| RoundFile {
        round,
        asked: asked.to_vec(),
        due,
        answers: Vec::new(),
        record: None,
    };
    for record in records {
        let closed = match &record.event {
            DebateEvent::Opened(opened) => {
                rounds.extend(opened.due.map(|due| begin(1, &opened.asked, Some(due))));
                continue;
            }
            DebateEvent::RoundClosed(closed) => Some(&closed.record),
            DebateEvent::Resolved(resolved) => resolved.outcome.rounds.last(),
            DebateEvent::Escalated(escalated) => escalated
                .discussion
                .as_ref()
                .and_then(|ended| ended.rounds.last()),
            _ => None,
        };
        let last = record.event.answer();
        if let Some(round) = rounds.last_mut() {
            round.answers.extend(last.cloned());
            round.record = closed.cloned().or(round.record.take());
        }
        if let DebateEvent::RoundClosed(closed) = &record.event {
            rounds.push(begin(closed.next_round, &closed.asked, Some(closed.due)));
        }
    }
    DebateFile {
        conflict,
        rounds,
        outcome: debate.outcome.clone(),
    }
}
