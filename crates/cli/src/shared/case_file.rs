//! Everything that is stored of one case: its events, and those of its debates.

use std::collections::BTreeSet;

use concord_domain::aggregates::case::{
    CaseMachine, CaseState, DecisionPackage, PassedGate, gates_passed, package,
};
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::machine::Versioned;
use concord_events::subject::SystemSubject;
use concord_events::{
    Aggregate, CaseEvent, DebateEvent, IncomparableEstimates, NameMatch, ReceivedAnswer,
    StoredEvent,
};
use concord_runtime::Broker;
use concord_wire::payload::{Conflict, ConflictOutcome, Level, RoundRecord};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp, Token};
use serde::Serialize;

use crate::shared::archive_reader;
use crate::shared::event_source::{EventQuery, EventSource};
use crate::shared::failure::Failure;

/// A case with its debates, as `concord case show --json` prints it.
#[derive(Debug, Serialize)]
pub struct CaseFile {
    /// The decision package of the case.
    #[serde(flatten)]
    pub package: DecisionPackage,
    /// The debates, in ranking order of their conflicts.
    pub debates: Vec<DebateFile>,
    /// The versions of the decision that came to be because analyses were done again, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures_recorded: Vec<FiguresVersion>,
    /// The gates that it has passed, with who let it pass, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates_passed: Vec<PassedGate>,
    /// Estimates of the same quantity in units that cannot be converted into each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomparable: Vec<IncomparableEstimates>,
    /// Names in the findings that were taken for words of the policy's vocabulary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameMatch>,
    /// Whether the policy asks for the sentence model, and the conflict detector had none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub model_absent: bool,
    /// The state of the case; it is not printed.
    #[serde(skip)]
    pub state: CaseState,
}

/// A version of the decision that has new figures of analyses, and is otherwise as the one before.
#[derive(Debug, Serialize)]
pub struct FiguresVersion {
    /// The number of the version.
    pub version: u32,
    /// When the figures were recorded.
    pub at: Timestamp,
    /// The run that has brought them.
    pub run: u32,
    /// The analyses with new figures.
    pub analyses: Vec<Token>,
}

/// A debate with its rounds.
#[derive(Debug, Serialize)]
pub struct DebateFile {
    /// The conflict, with the positions at the start.
    pub conflict: Conflict,
    /// The analyses that rest on what is disputed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// The rounds, with the answers.
    pub rounds: Vec<RoundFile>,
    /// The level of the ladder that it is on, while it has no outcome; none in a discussion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The outcome, when the debate has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ConflictOutcome>,
}

/// One round of a debate.
#[derive(Debug, Serialize)]
pub struct RoundFile {
    /// The number of the round, from 1.
    pub round: u32,
    /// The agents that were asked.
    pub asked: Vec<AgentId>,
    /// The time until which answers count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The answers, in the order of arrival.
    pub answers: Vec<ReceivedAnswer>,
    /// The figures of the round, when it has closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RoundRecord>,
}

/// The state of a case; none when it was never opened.
pub(crate) async fn state(broker: &Broker, case: &CaseId) -> Result<Option<CaseState>, Failure> {
    let source = EventSource::new(broker).await?;
    let (state, _) = source.aggregate::<CaseMachine>(&case.token()).await?;
    Ok(state.opened.is_some().then_some(state))
}

/// The state of one of several cases; none, with a note, where it has gone to an archive that nobody named since it was found.
pub(crate) async fn state_of_several(
    broker: &Broker,
    case: &CaseId,
) -> Result<Option<CaseState>, Failure> {
    let state = state(broker, case).await;
    archive_reader::unless_archived(broker, case, state).await
}

/// The state of a case; a failure that names it where it was never opened.
pub(crate) async fn existing(broker: &Broker, case: &CaseId) -> Result<CaseState, Failure> {
    state(broker, case).await?.ok_or_else(|| unknown(case))
}

/// The ids of the cases, the oldest first. The subjects of their first events name them, so no body is read.
pub(crate) async fn opened(broker: &Broker) -> Result<Vec<CaseId>, Failure> {
    let query = EventQuery::of_kind(Aggregate::Case).named(&["opened"]);
    let (mut ids, mut seen) = (Vec::new(), BTreeSet::new());
    let source = EventSource::new(broker).await?;
    source
        .for_each(&query.without_bodies(), "reading cases", |stored| {
            if let Ok(SystemSubject::Event { id, .. }) = broker.subjects().parse(&stored.subject) {
                // A message that no service wrote may name a case a second time, or one that does not exist.
                ids.extend(
                    CaseId::new(id.as_str())
                        .ok()
                        .filter(|id| seen.insert(id.clone())),
                );
            }
            Ok(())
        })
        .await?;
    Ok(ids)
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
    let source = EventSource::new(broker).await?;
    let (detection, _) = source.aggregate::<DetectionMachine>(&case.token()).await?;
    Ok(detection
        .detected
        .map(|detected| detected.debated)
        .unwrap_or_default())
}

/// Reads a case; none when it was never opened.
pub async fn read(broker: &Broker, case: &CaseId) -> Result<Option<CaseFile>, Failure> {
    let source = EventSource::new(broker).await?;
    let (state, events) = source.aggregate::<CaseMachine>(&case.token()).await?;
    let Some(package) = package(case, &state) else {
        return Ok(None);
    };
    let mut debates = Vec::new();
    for conflict in debated(broker, case, &state).await? {
        let (debate, events) = source
            .aggregate::<DebateMachine>(&conflict.conflict_id.token())
            .await?;
        debates.push(debate_file(conflict, &debate, &events));
    }
    let (detection, _) = source.aggregate::<DetectionMachine>(&case.token()).await?;
    let detected = detection.detected;
    let model_absent = detected.as_ref().is_some_and(|one| one.model_absent);
    let (incomparable, names) = detected
        .map(|detected| (detected.incomparable, detected.names))
        .unwrap_or_default();
    Ok(Some(CaseFile {
        package,
        debates,
        figures_recorded: figures_recorded(&events),
        gates_passed: gates_passed(&events),
        incomparable,
        names,
        model_absent,
        state,
    }))
}

fn figures_recorded(events: &[StoredEvent<CaseEvent>]) -> Vec<FiguresVersion> {
    let of_event = |stored: &StoredEvent<CaseEvent>| match &stored.event {
        CaseEvent::FiguresRecorded(recorded) => Some(FiguresVersion {
            version: recorded.decision.version,
            at: stored.meta.at,
            run: recorded.run,
            analyses: recorded.changed.clone(),
        }),
        _ => None,
    };
    events.iter().filter_map(of_event).collect()
}

/// Reads a case as it was with this version of its decision.
pub async fn read_version(
    broker: &Broker,
    case: &CaseId,
    version: u32,
) -> Result<CaseFile, Failure> {
    let source = EventSource::new(broker).await?;
    let (_, events) = source.aggregate::<CaseMachine>(&case.token()).await?;
    let mut rebuilt = Versioned::<CaseMachine>::default();
    for event in events {
        rebuilt.apply(event);
        let decision = rebuilt.state.decision.as_ref();
        // Decisions of before there were numbers count as the first version.
        if decision.is_some_and(|decision| decision.version.max(1) == version) {
            break;
        }
    }
    let state = rebuilt.into_state();
    if state.opened.is_none() {
        return Err(unknown(case));
    }
    let latest = state
        .decision
        .as_ref()
        .map(|decision| decision.version.max(1));
    if latest != Some(version) {
        let has = latest.map_or_else(
            || "it is not decided yet".to_owned(),
            |latest| format!("its decision has version 1 to {latest}"),
        );
        return Err(Failure::usage(format!(
            "case {case} has no version {version}: {has}"
        )));
    }
    let mut file = read(broker, case).await?.ok_or_else(|| unknown(case))?;
    as_of(&mut file.debates, &state);
    file.package = package(case, &state).ok_or_else(|| unknown(case))?;
    file.figures_recorded.retain(|one| one.version <= version);
    file.gates_passed.truncate(state.gates_passed);
    file.state = state;
    Ok(file)
}

/// Leaves of the debates those that the case had in this state, with the outcomes that it knew then. What was said in them is as it is now.
fn as_of(debates: &mut Vec<DebateFile>, state: &CaseState) {
    let id = |conflict: &Conflict| conflict.conflict_id.clone();
    let had: BTreeSet<DebateId> = state.debated.iter().map(id).collect();
    debates.retain(|debate| had.contains(&debate.conflict.conflict_id));
    for debate in debates {
        debate.outcome = state.outcomes.get(&debate.conflict.conflict_id).cloned();
    }
}

fn debate_file(
    conflict: Conflict,
    debate: &DebateState,
    events: &[StoredEvent<DebateEvent>],
) -> DebateFile {
    let mut rounds: Vec<RoundFile> = Vec::new();
    let begin = |round, asked: &[AgentId], due| RoundFile {
        round,
        asked: asked.to_vec(),
        due,
        answers: Vec::new(),
        record: None,
    };
    for record in events {
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
    let opened = debate.opened.as_ref();
    let ladder = debate.ladder.as_deref();
    DebateFile {
        conflict,
        dependants: opened.map_or_else(Vec::new, |opened| opened.terms.dependants.clone()),
        rounds,
        level: ladder
            .filter(|_| debate.outcome.is_none())
            .map(|ladder| ladder.level),
        outcome: debate.outcome.clone(),
    }
}

/// The failure for a case that was never opened.
pub(crate) fn unknown(case: &CaseId) -> Failure {
    Failure::failed(format!(
        "there is no case {case}; `concord case list` shows those there are"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conflict(id: &str) -> Conflict {
        let conflict = json!({
            "conflict_id": id, "type": "challenge", "topic": "Risk score", "subject": "risk_score", "weight": 1.0,
            "positions": [],
        });
        serde_json::from_value(conflict).unwrap()
    }

    fn outcome(id: &str, status: &str) -> ConflictOutcome {
        let outcome = json!({
            "conflict_id": id, "status": status, "resolved_at": "2026-01-01T00:00:00.000Z", "rounds": [], "positions": [],
        });
        serde_json::from_value(outcome).unwrap()
    }

    #[test]
    fn an_earlier_version_shows_no_debate_and_no_outcome_of_later() {
        let debate = |id: &str, outcome| DebateFile {
            conflict: conflict(id),
            dependants: Vec::new(),
            rounds: Vec::new(),
            level: None,
            outcome: Some(outcome),
        };
        let mut debates = vec![
            debate("d-1", outcome("d-1", "overridden")),
            debate("d-2", outcome("d-2", "ruling")),
        ];
        let mut state = CaseState::default();
        state.debated.push(conflict("d-1"));
        let id = DebateId::new("d-1").unwrap();
        state.outcomes.insert(id, outcome("d-1", "provisional"));
        as_of(&mut debates, &state);
        let shown: Vec<_> = debates
            .iter()
            .map(|one| (one.conflict.conflict_id.as_str(), one.outcome.clone()))
            .collect();
        assert_eq!(shown, [("d-1", Some(outcome("d-1", "provisional")))]);
    }
}
