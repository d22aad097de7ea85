//! Doing again what led to an event: deciding, and looking for conflicts.

use concord_domain::aggregates::case::{CASE, CaseInput, CaseMachine, CaseState, FINDINGS, Noted};
use concord_domain::aggregates::detection::DetectionInput;
use concord_domain::rules::names;
use concord_domain::{Context, Decision, Machine};
use concord_events::Aggregate;
use concord_events::{
    AggregateEvent, CaseEvent, CaseOpened, DeadlineElapsed, DebateSettled, Detected,
    DetectionEvent, FiredBy, NameMatch, ReceivedFinding, StoredEvent,
};
use concord_wire::payload::{Conflict, ConflictOutcome, LogEntry};
use concord_wire::{CaseId, Timestamp, Token};

/// The debates that a detection led to; none for any other event.
pub(super) fn debates_of(bytes: &[u8], sequence: u64) -> Vec<Token> {
    let Ok(stored) = StoredEvent::<DetectionEvent>::decode(bytes, sequence) else {
        return Vec::new();
    };
    let DetectionEvent::Completed(detected) = stored.event;
    detected
        .debated
        .iter()
        .map(|conflict| conflict.conflict_id.token())
        .collect()
}

/// Looks for the conflicts of a case again, in the state that its events lead to.
pub(super) fn detect(case: &CaseState, detected: &Detected) -> Result<(), String> {
    let Some(mut input) = DetectionInput::of_case(&detected.case_id, case) else {
        return Err("it belongs to a case of which there are no events".to_owned());
    };
    input.rules = detected.rules;
    // What the sentence model has said is read, and the model is not asked again.
    input.scored = names::scored_in(&detected.names);
    if let Some(problem) = names::problem(&input.policy.vocabulary, &input.scored) {
        return Err(problem);
    }
    let again = input.conflicts();
    let stored = (
        &detected.debated,
        &detected.deferred,
        detected.conflicts_omitted,
        &detected.incomparable,
        detected.incomparable_omitted,
        &detected.names,
        detected.names_omitted,
    );
    let found = (
        &again.debated,
        &again.deferred,
        again.omitted,
        &again.incomparable,
        again.incomparable_omitted,
        &again.names,
        again.names_omitted,
    );
    if stored == found {
        return Ok(());
    }
    let ids = |conflicts: &[concord_wire::payload::Conflict]| {
        conflicts
            .iter()
            .map(|conflict| conflict.conflict_id.to_string())
            .collect::<Vec<_>>()
    };
    let (stored, again) = (ids(&detected.debated), ids(&again.debated));
    Err(format!(
        "the stored conflicts {stored:?} are not what is found again: {again:?}"
    ))
}

/// Decides an event of a case again; false where the events do not tell the input that led to it.
pub(super) fn decide(before: &CaseState, stored: &StoredEvent<CaseEvent>) -> Result<bool, String> {
    let Some(input) = input(before, stored) else {
        return Ok(false);
    };
    let context = Context::of_event(stored.meta.at, stored.meta.cause.clone());
    let before = CaseState {
        rules: rules_of(&stored.event),
        ..before.clone()
    };
    match CaseMachine::decide(&before, &context, &input) {
        Decision::Append(event)
            if is_same(unnamed(event.clone(), &stored.event), &stored.event) =>
        {
            Ok(true)
        }
        Decision::Append(event) => {
            let stored = stored.event.name();
            let again = event.name();
            Err(format!(
                "it was decided as {stored}; decided again it is {again} with other contents"
            ))
        }
        Decision::Ignore(why) => Err(format!(
            "decided again it would not be stored: {}",
            why.as_str()
        )),
        Decision::Reject(fault) => Err(format!("decided again it would be refused: {fault}")),
    }
}

/// Whether this version or one before would have stored the event as `stored`.
fn is_same(again: CaseEvent, stored: &CaseEvent) -> bool {
    again == *stored || {
        let again = untold(again);
        again == *stored || before_versions(again, stored)
    }
}

/// The rules by which the decision in an event was made.
fn rules_of(event: &CaseEvent) -> Option<u32> {
    decided(event).map(|decision| decision.rules)
}

/// The decision that an event states.
fn decided(event: &CaseEvent) -> Option<&concord_wire::payload::Decision> {
    match event {
        CaseEvent::Decided(decided) => Some(&decided.decision),
        CaseEvent::DecisionChanged(changed) => Some(&changed.decision),
        CaseEvent::FiguresRecorded(recorded) => Some(&recorded.decision),
        _ => None,
    }
}

/// The event as builds stored it that told nobody how a debate has ended.
fn untold(mut event: CaseEvent) -> CaseEvent {
    match &mut event {
        CaseEvent::DebateSettled(settled) => settled.concluded_for.clear(),
        CaseEvent::DecisionChanged(changed) => changed.concluded_for.clear(),
        CaseEvent::Decided(decided) => decided.concluded_for.clear(),
        _ => {}
    }
    event
}

/// The event without what rests on the outcomes that `stored` has without. Builds that know nothing of that leave it out, also where the outcomes
/// were stored with it by another process.
fn unnamed(mut event: CaseEvent, stored: &CaseEvent) -> CaseEvent {
    let decision = match &mut event {
        CaseEvent::Decided(decided) => &mut decided.decision,
        CaseEvent::DecisionChanged(changed) => &mut changed.decision,
        CaseEvent::FiguresRecorded(recorded) => &mut recorded.decision,
        _ => return event,
    };
    let stored = decided(stored).map_or(&[][..], |decision| &decision.outcomes);
    for (outcome, stored) in decision.outcomes.iter_mut().zip(stored) {
        if stored.dependants.is_empty() {
            outcome.dependants.clear();
        }
    }
    event
}

/// Whether a build that gave decisions no versions would have stored this event as `stored`.
fn before_versions(event: CaseEvent, stored: &CaseEvent) -> bool {
    match (event, stored) {
        (CaseEvent::Decided(mut again), CaseEvent::Decided(stored)) => {
            let decision = &mut again.decision;
            (decision.version, decision.open, decision.provisional) = Default::default();
            again == *stored
        }
        (CaseEvent::DecisionChanged(again), CaseEvent::DebateSettled(stored)) => {
            let entry = LogEntry {
                decision_version: None,
                replaces_version: None,
                ..*again.entry
            };
            let settled = DebateSettled {
                outcome: again.outcome,
                entry: Some(Box::new(entry.sealed())),
                concluded_for: Vec::new(),
            };
            again.change.replaces == 0 && settled == *stored
        }
        _ => false,
    }
}

/// The detection that gave the case these conflicts (those debated, those deferred, and how many more) and these scored names.
fn detected(
    before: &CaseState,
    stored: &StoredEvent<CaseEvent>,
    opened: &CaseOpened,
    (debated, deferred, conflicts_omitted): (&[Conflict], &[Conflict], u32),
    scored: &[NameMatch],
) -> Option<CaseInput> {
    let detected = Detected {
        case_id: CaseId::new(stored.meta.id.as_str()).ok()?,
        opened_by: opened.opener_of_debates(),
        policy: opened.policy.clone(),
        gate: before.reviewing_gate().map(str::to_owned),
        circumstances: opened.circumstances.clone(),
        // The case keeps the confirmations themselves.
        confirmed: Default::default(),
        // The case does not keep how the debates share their answers, and decides nothing by it.
        answers_per_round: Vec::new(),
        debated: new_conflicts(before, debated),
        deferred: deferred.to_vec(),
        conflicts_omitted,
        // Nor by what could not be compared.
        incomparable: Vec::new(),
        incomparable_omitted: 0,
        names: scored.to_vec(),
        names_omitted: 0,
        model_absent: false,
        opens_debates: true,
        // Nor by which rules they were found.
        rules: 0,
    };
    Some(CaseInput::Detected(Box::new(detected)))
}

/// The input that led to this event of a case; none where the events do not tell.
fn input(before: &CaseState, stored: &StoredEvent<CaseEvent>) -> Option<CaseInput> {
    let opened = before.opened.as_ref()?;
    let elapsed = |name: &'static str, due: Timestamp| {
        CaseInput::Elapsed(DeadlineElapsed {
            aggregate: Aggregate::Case,
            id: stored.meta.id.clone(),
            name: Token::fixed(name),
            due,
            fired_by: FiredBy::Scheduler,
            lateness_ms: 0,
        })
    };
    let finding = |received: &ReceivedFinding| CaseInput::Finding(Box::new(received.clone()));
    Some(match &stored.event {
        CaseEvent::Opened(_) => return None,
        CaseEvent::FindingRecorded(recorded) => finding(&recorded.received),
        CaseEvent::FindingSetAside(aside) => finding(&aside.received),
        CaseEvent::FindingsClosed(closed) => match &closed.last {
            Some(last) => finding(last),
            None => elapsed(FINDINGS, opened.findings_due),
        },
        CaseEvent::ConflictsReceived(received) => {
            let (debated, deferred) = (&received.debated, &received.deferred);
            let conflicts = (&debated[..], &deferred[..], received.conflicts_omitted);
            detected(before, stored, opened, conflicts, &received.scored)?
        }
        CaseEvent::DebateSettled(settled) => resolved(&settled.outcome),
        CaseEvent::DecisionChanged(changed) => resolved(&changed.outcome),
        CaseEvent::DecisionAwaited(_) => elapsed(CASE, opened.case_due),
        CaseEvent::Decided(decided) => match (&decided.last, decided.decision.reason.as_str()) {
            (Some(last), _) => resolved(last),
            (None, "timeout") => elapsed(CASE, opened.case_due),
            (None, _) => {
                let decision = &decided.decision;
                let (debated, deferred) = (&decision.conflicts, &decision.deferred);
                let conflicts = (&debated[..], &deferred[..], decision.conflicts_omitted);
                detected(before, stored, opened, conflicts, &decided.scored)?
            }
        },
        CaseEvent::EstimateNoted(noted) => CaseInput::Note(Box::new(Noted {
            agent: noted.agent.clone(),
            topic: noted.topic.clone(),
            version: noted.version,
            estimate: noted.estimate.clone(),
        })),
        CaseEvent::Cancelled(cancelled) => CaseInput::Cancel {
            by: cancelled.by.clone(),
            why: cancelled.why.clone(),
        },
        // These inputs are messages of people and challengers, and messages are kept for a time only; figures are those of a run.
        CaseEvent::Challenged(_)
        | CaseEvent::FiguresRecorded(_)
        | CaseEvent::ReviewRecorded(_)
        | CaseEvent::GateReviewed(_)
        | CaseEvent::Confirmed(_)
        | CaseEvent::Joined(_)
        | CaseEvent::Flagged(_)
        | CaseEvent::GatePassed(_) => return None,
    })
}

fn resolved(outcome: &ConflictOutcome) -> CaseInput {
    CaseInput::Resolved(Box::new(outcome.clone()))
}

/// The conflicts that a detection has found. Challenges are among the debated ones before the detection.
fn new_conflicts(before: &CaseState, debated: &[Conflict]) -> Vec<Conflict> {
    let is_known = |one: &&Conflict| {
        let mut earlier = before.debated.iter();
        earlier.any(|earlier| earlier.conflict_id == one.conflict_id)
    };
    debated
        .iter()
        .filter(|one| !is_known(one))
        .cloned()
        .collect()
}
