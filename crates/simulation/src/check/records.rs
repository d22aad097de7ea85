//! Track records: that a debate was opened with the credibility that its parties' records give, openers and all.

use std::sync::Arc;

use concord_domain::aggregates::case::{CaseMachine, everyone_in};
use concord_domain::aggregates::debate::verdicts::{self, Verdict, domain_of};
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_domain::aggregates::track_record::{Observe, Tell, TrackRecordMachine, credibility_of};
use concord_domain::machine::Versioned;
use concord_events::{Aggregate, DebateEvent, DebateOpened, StoredEvent, TrackRecordEvent};
use concord_wire::payload::Credibility;
use concord_wire::payload::track_record::Query;
use concord_wire::{AgentId, CaseId, Timestamp, Token};

use super::archive::Archive;

/// What the debate's end, or what proved right later, says of the agent whose record this is: decided by every state in which
/// the debate may have been read.
pub(super) fn causes(archive: &Archive, record: &StoredEvent<TrackRecordEvent>) -> Vec<Verdict> {
    let Some((Aggregate::Debate, sequence, bytes)) = archive.events.get(&record.meta.cause) else {
        return Vec::new();
    };
    let Ok(cause) = StoredEvent::<DebateEvent>::decode(bytes, *sequence) else {
        return Vec::new();
    };
    let states = read_after(archive, &cause.meta.id, *sequence);
    let verdicts = states.iter().flat_map(|state| {
        let Some(opened) = &state.opened else {
            return Vec::new();
        };
        match &cause.event {
            DebateEvent::Resolved(resolved) => {
                let ladder = state.ladder.as_ref();
                let provisional = ladder.and_then(|ladder| ladder.provisional.as_ref());
                verdicts::of_resolution(opened, provisional, resolved, record.meta.at)
            }
            DebateEvent::OutcomeKnown(known) => verdicts::of_outcome(opened, known),
            _ => Vec::new(),
        }
    });
    verdicts
        .filter(|(agent, _)| agent.token() == record.meta.id)
        .collect()
}

/// The same with whom this observation tells of it: who was in the case counts as it was at that instant, and is checked by
/// [`told`].
pub(super) fn telling(record: &StoredEvent<TrackRecordEvent>, observe: Observe) -> Observe {
    let TrackRecordEvent::Observed(observed) = &record.event;
    let tell = observed.told.as_ref().map(|told| Tell {
        to: told.to.clone(),
        topic: told.topic.clone(),
        version: told.version,
    });
    Observe { tell, ..observe }
}

/// That everyone who was in the case at some time before an observation of it is told what it does to the agent's credibility, and the
/// agent itself.
fn told(archive: &Archive, violations: &mut Vec<String>) {
    for (id, records) in &archive.records {
        for record in records {
            let TrackRecordEvent::Observed(observed) = &record.event;
            let Some(case) = &observed.case_id else {
                continue;
            };
            let to = observed.told.as_ref().map(|told| &told.to);
            let states = case_states(archive, case, record.sequence);
            if !states.iter().any(|everyone| Some(everyone) == to) {
                violations.push(format!(
                    "records: record/{id} at {} tells {to:?} of what it does, who are not those in the case {case}",
                    record.sequence
                ));
            }
        }
    }
}

/// Who was in a case, in each of its states before a place in the stream.
fn case_states(archive: &Archive, case: &CaseId, before: u64) -> Vec<Vec<AgentId>> {
    let mut known = Versioned::<CaseMachine>::default();
    let records = archive.cases.get(&case.token()).into_iter().flatten();
    let mut states = Vec::new();
    for record in records.take_while(|record| record.sequence < before) {
        known.apply(record.clone());
        states.extend(known.state.opened.as_deref().map(everyone_in));
    }
    states
}

/// The states of a debate from this event on.
fn read_after(archive: &Archive, id: &Token, sequence: u64) -> Vec<Arc<DebateState>> {
    let mut known = Versioned::<DebateMachine>::default();
    let mut states = Vec::new();
    for record in archive.debates.get(id).into_iter().flatten() {
        known.apply(record.clone());
        if record.sequence >= sequence {
            states.push(Arc::clone(&known.state));
        }
    }
    states
}

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    told(archive, violations);
    for (id, records) in &archive.debates {
        for record in records {
            let DebateEvent::Opened(opened) = &record.event else {
                continue;
            };
            for (agent, kept) in &opened.credibility {
                if !is_of_the_record(archive, opened, record, agent, kept) {
                    violations.push(format!(
                        "records: debate/{id} was opened with a credibility of {agent} that their record does not give: {kept:?}"
                    ));
                }
            }
        }
    }
}

/// Whether some beginning of the agent's record, of what was stored before the debate, gives this credibility.
fn is_of_the_record(
    archive: &Archive,
    opened: &DebateOpened,
    record: &StoredEvent<DebateEvent>,
    agent: &AgentId,
    kept: &Credibility,
) -> bool {
    let mut known = Versioned::<TrackRecordMachine>::default();
    let given = |known: &Versioned<TrackRecordMachine>, now| {
        let query = Query {
            now,
            domain: domain_of(&opened.terms, &opened.conflict),
            regime: opened.terms.circumstances.regime.clone(),
            context: opened.terms.circumstances.judging(&opened.conflict.subject),
        };
        let credibility = credibility_of(&known.state, opened.policy.ladder.credibility, &query);
        // A debate keeps what decides.
        Credibility {
            factors: Vec::new(),
            held_back: None,
            ..credibility
        }
    };
    let now: Timestamp = record.meta.at;
    if given(&known, now) == *kept {
        return true;
    }
    let observed = archive.records.get(&agent.token()).into_iter().flatten();
    for observation in observed.take_while(|one| one.sequence < record.sequence) {
        known.apply(observation.clone());
        if given(&known, now) == *kept {
            return true;
        }
    }
    false
}
