//! The ladder: levels, rulings, deadlines of levels, gates, and that every disagreement comes to an end or to a person.

use std::collections::BTreeSet;

use concord_domain::aggregates::case::{CaseMachine, CaseState, Phase};
use concord_domain::aggregates::debate::MessageBody;
use concord_domain::aggregates::debate::{DebateInput, DebateMachine, DebateState};
use concord_domain::assurance::replay::rebuild;
use concord_domain::machine::{Machine, Versioned};
use concord_events::{CaseEvent, DebateEvent, ReviewQueueEvent, StoredEvent};
use concord_runtime::Routed;
use concord_wire::payload::{Level, Status};
use concord_wire::{DebateId, Token};

use super::archive::Archive;
use super::queue;
use crate::report::LadderCounts;
use crate::world::World;

/// Debates whose deadlines an operator holds.
pub(crate) fn held(world: &World) -> Vec<String> {
    let archive = Archive::read(world);
    let states = archive
        .debates
        .iter()
        .map(|(id, records)| (id, rebuild::<DebateMachine>(records).0.state));
    let held = |state: &DebateState| {
        state.outcome.is_none()
            && state
                .ladder
                .as_ref()
                .is_some_and(|ladder| ladder.held.is_some())
    };
    states
        .filter(|(_, state)| held(state))
        .map(|(id, _)| id.to_string())
        .collect()
}

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (id, records) in &archive.debates {
        let mut found = Vec::new();
        Climb::of(archive, id).follow(records, &mut found);
        violations.extend(
            found
                .into_iter()
                .map(|what| format!("ladder: debate/{id} {what}")),
        );
    }
    for (id, records) in &archive.cases {
        let state = rebuild::<CaseMachine>(records).0.state;
        let mut found = Vec::new();
        gates(archive, &state, &mut found);
        violations.extend(
            found
                .into_iter()
                .map(|what| format!("ladder: case/{id} {what}")),
        );
    }
}

/// One debate's way up.
struct Climb<'a> {
    archive: &'a Archive,
    id: &'a Token,
    /// Where the expert's brief came from, and evidence that came after it without a new brief.
    stale_since: Option<u64>,
    resolved: u32,
}

impl<'a> Climb<'a> {
    fn of(archive: &'a Archive, id: &'a Token) -> Self {
        Self {
            archive,
            id,
            stale_since: None,
            resolved: 0,
        }
    }

    fn follow(mut self, records: &[StoredEvent<DebateEvent>], found: &mut Vec<String>) {
        let mut known = Versioned::<DebateMachine>::default();
        for record in records {
            let before = level(&known.state);
            self.step(&known.state, record, found);
            known.apply(record.clone());
            let (after, at) = (level(&known.state), record.sequence);
            if after < before {
                found.push(format!("falls from level {before:?} to {after:?} at {at}"));
            }
            left_open(&known.state, record, found);
        }
        if self.resolved > 1 {
            found.push(format!("is resolved {} times", self.resolved));
        }
        self.end(&known.state, found);
    }

    fn step(
        &mut self,
        before: &DebateState,
        record: &StoredEvent<DebateEvent>,
        found: &mut Vec<String>,
    ) {
        match &record.event {
            DebateEvent::Assigned(_) => self.stale_since = None,
            DebateEvent::EvidenceGiven(given)
                if before.ladder.as_ref().is_some_and(|l| l.expert.is_some()) =>
            {
                self.stale_since = if given.brief.is_some() {
                    None
                } else {
                    Some(record.sequence)
                };
            }
            DebateEvent::Resolved(resolved) => {
                self.resolved += 1;
                if resolved.outcome.level < level(before) {
                    let (from, to, at) = (level(before), resolved.outcome.level, record.sequence);
                    found.push(format!(
                        "is resolved at level {to:?} when it is on {from:?} at {at}"
                    ));
                }
                if resolved.outcome.status == Status::Ruling {
                    let wrong = self.ruling(before, record).err();
                    found.extend(
                        wrong.map(|what| format!("is ruled on at {}: {what}", record.sequence)),
                    );
                }
            }
            _ => {}
        }
    }

    /// A ruling that counts is that of the expert who has the debate, on the brief as it is, before time has run out.
    fn ruling(
        &self,
        before: &DebateState,
        record: &StoredEvent<DebateEvent>,
    ) -> Result<(), String> {
        let DebateEvent::Resolved(resolved) = &record.event else {
            return Ok(());
        };
        let ladder = before.ladder.as_ref().filter(|_| before.outcome.is_none());
        let ladder = ladder
            .filter(|ladder| ladder.level == Level::Person)
            .ok_or("it waits for no person")?;
        let heard = resolved.heard.as_ref().ok_or("nobody has said anything")?;
        let said = self
            .archive
            .said_under(&heard.message_id)
            .filter_map(|message| message.envelope.as_ref());
        let routed = said
            .filter_map(|envelope| concord_debate_facilitator::route::from_message(envelope).ok());
        let mut rulings = routed.filter_map(|routed| match routed {
            Routed::Step {
                input: DebateInput::Message(said),
                ..
            } if said.digest == heard.digest => Some(said),
            _ => None,
        });
        let by = rulings.find(|said| Some(&said.agent_id) == ladder.expert.as_ref());
        let by = by.ok_or("not by the expert who has the debate")?;
        let MessageBody::Ruling(ruling) = &by.body else {
            return Err("by what is no ruling".into());
        };
        if ladder.digest.as_ref() != Some(&ruling.digest) {
            return Err("not on the brief as it is".into());
        }
        if let Some(at) = self.stale_since {
            return Err(format!("the brief is older than the evidence at {at}"));
        }
        let given = self
            .archive
            .queues
            .values()
            .flatten()
            .filter(|event| event.sequence < record.sequence);
        let to = given.filter_map(|event| match &event.event {
            ReviewQueueEvent::Assigned(assigned) => Some((&assigned.debate_id, &assigned.expert)),
            ReviewQueueEvent::Reassigned(reassigned) => {
                Some((&reassigned.debate_id, &reassigned.to))
            }
            _ => None,
        });
        let debate = DebateId::new(self.id.as_str()).map_err(|_| "it is no debate")?;
        if to.into_iter().any(|to| to == (&debate, &by.agent_id)) {
            Ok(())
        } else {
            Err("the queue has not given it".into())
        }
    }

    /// At the end everything is resolved, or waits at a gate with nothing armed.
    fn end(&self, state: &DebateState, found: &mut Vec<String>) {
        if state.outcome.is_some() {
            return;
        }
        let waits = DebateMachine::deadlines(state);
        match &state.ladder {
            Some(ladder) if ladder.level == Level::Gate && waits.is_empty() => {}
            Some(ladder) => found.push(format!(
                "is on level {} at the end, waiting for {waits:?}",
                ladder.level
            )),
            None => found.push("is being discussed at the end".into()),
        }
    }
}

fn level(state: &DebateState) -> Option<Level> {
    state.ladder.as_ref().map(|ladder| ladder.level)
}

/// What a debate waits for belongs to the level that it is on.
fn left_open(after: &DebateState, record: &StoredEvent<DebateEvent>, found: &mut Vec<String>) {
    let belong: &[&str] = match level(after).filter(|_| after.outcome.is_none()) {
        _ if after.outcome.is_some() => &[],
        None => return,
        Some(Level::Agents) => &["acknowledge", "evidence", "evaluation"],
        Some(Level::Mediation) => &["compare", "mediation"],
        Some(Level::Person) => &["person-half", "person-nearly", "person"],
        Some(Level::Fallback) => &["provisional"],
        Some(Level::Gate) => &[],
    };
    for deadline in record
        .meta
        .deadlines
        .iter()
        .filter(|open| !belong.contains(&open.name.as_str()))
    {
        let (name, at) = (&deadline.name, record.sequence);
        found.push(format!(
            "has {name} open at {at}, which is none of its level {:?}",
            level(after)
        ));
    }
}

fn is_resolved(records: &[StoredEvent<DebateEvent>]) -> bool {
    records
        .iter()
        .any(|record| matches!(record.event, DebateEvent::Resolved(_)))
}

/// What a gate has reviewed is resolved, and no gate waits for what has ended.
fn gates(archive: &Archive, state: &CaseState, found: &mut Vec<String>) {
    for id in state.reviewed.keys() {
        let debate = archive.debates.get(&id.token());
        if debate.is_some_and(|records| !is_resolved(records)) {
            found.push(format!("has reviewed {id}, which is not resolved"));
        }
    }
    let waiting = waiting_in(archive, state);
    for id in waiting {
        if state.phase == Phase::Cancelled {
            found.push(format!("is cancelled, and {id} waits for a gate"));
            continue;
        }
        let can_be = state.unreviewed().any(|outcome| outcome.conflict_id == id);
        let passed_over = state.gate().is_none()
            && state
                .opened
                .as_ref()
                .is_some_and(|opened| opened.policy.ladder.pass_unreviewed);
        if !can_be || !(state.gate().is_some() || passed_over) {
            found.push(format!("has {id} wait for a gate that cannot review it"));
        }
    }
    if state.phase != Phase::Decided || state.gate().is_none() {
        return;
    }
    let open = state
        .debated
        .iter()
        .map(|conflict| &conflict.conflict_id)
        .filter(|id| !state.outcomes.contains_key(id) && !state.never_debated.contains(*id));
    let open: BTreeSet<&DebateId> = open.collect();
    for id in open {
        match archive.debates.get(&id.token()) {
            Some(records) if is_resolved(records) => {
                found.push(format!("cannot pass its gate: {id} has ended unheard"))
            }
            Some(_) => {}
            None => found.push(format!("cannot pass its gate: {id} was never opened")),
        }
    }
}

/// Debates of a case that wait at a gate.
fn waiting_in(archive: &Archive, state: &CaseState) -> Vec<DebateId> {
    let of_case = archive.debates.values().filter(|records| !is_resolved(records)).filter(|records| {
        let opened = records.first().map(|record| &record.event);
        matches!(opened, Some(DebateEvent::Opened(opened)) if Some(&opened.case_id) == state.case_id.as_ref())
    });
    let waits = |records: &&Vec<StoredEvent<DebateEvent>>| {
        records
            .iter()
            .any(|record| matches!(record.event, DebateEvent::AwaitsGate(_)))
    };
    let ids = of_case
        .filter(waits)
        .filter_map(|records| DebateId::new(records.first()?.meta.id.as_str()).ok());
    ids.collect()
}

/// How much of everything there was.
pub(super) fn counts(archive: &Archive) -> LadderCounts {
    let mut counts = LadderCounts::default();
    for record in archive.cases.values().flatten() {
        match &record.event {
            CaseEvent::Challenged(_) => counts.challenges += 1,
            CaseEvent::GateReviewed(reviewed) => {
                counts.reviews += 1;
                counts.debated_again += u64::from(reviewed.again.is_some());
            }
            CaseEvent::GatePassed(_) => counts.gates += 1,
            CaseEvent::Cancelled(_) => counts.cancelled += 1,
            _ => {}
        }
    }
    for record in archive.queues.values().flatten() {
        match &record.event {
            ReviewQueueEvent::Assigned(_) => counts.assigned += 1,
            ReviewQueueEvent::Returned(_) => counts.returned += 1,
            ReviewQueueEvent::Overflowed(_) => counts.overflowed += 1,
            ReviewQueueEvent::Reassigned(_) => counts.operated += 1,
            _ => {}
        }
    }
    counts.contended = queue::contended(archive);
    for records in archive.debates.values() {
        records
            .iter()
            .for_each(|record| count(&record.event, &mut counts));
        let gate = records
            .iter()
            .any(|record| matches!(record.event, DebateEvent::AwaitsGate(_)));
        counts.waiting += u64::from(gate && !is_resolved(records));
    }
    counts
}

fn count(event: &DebateEvent, counts: &mut LadderCounts) {
    match event {
        DebateEvent::Escalated(escalated) if escalated.to == Level::Person => counts.to_people += 1,
        DebateEvent::RulingSetAside(_) => counts.rulings_refused += 1,
        DebateEvent::FellBack(_) => counts.provisional += 1,
        DebateEvent::DeadlinesMoved(_) => counts.operated += 1,
        DebateEvent::Resolved(resolved) => match resolved.outcome.status {
            Status::Ruling => counts.rulings += 1,
            Status::Accepted => counts.accepted += 1,
            Status::Cancelled => counts.cancelled += 1,
            _ => {}
        },
        _ => {}
    }
}
