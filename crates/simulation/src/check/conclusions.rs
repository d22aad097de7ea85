//! After a debate that its parties did not settle themselves: everyone who was in its case when the case took the result is told of it
//! once, at high priority. What they have settled themselves is passed on once to a party that hears only what is addressed to it.

use concord_domain::aggregates::case::{CaseMachine, is_told_together, told_alone};
use concord_domain::effect::effect_id;
use concord_domain::machine::Versioned;
use concord_events::{CaseEvent, DebateEvent, StoredEvent};
use concord_wire::payload::notification::{DebateConcluded, EventData};
use concord_wire::payload::{ConflictOutcome, Notification};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, Priority, Recipient, Token};

use super::archive::Archive;
use crate::activation::hosted;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    passed_on(archive, violations);
    let told: Vec<(&Envelope, DebateConcluded)> = archive
        .messages
        .iter()
        .filter_map(|message| concluded(message.envelope.as_ref()?))
        .collect();
    for (id, records) in &archive.cases {
        let mut known = Versioned::<CaseMachine>::default();
        for record in records {
            known.apply(record.clone());
            let (Some(outcome), Some(opened)) = (taken(record), &known.state.opened) else {
                continue;
            };
            for agent in told_alone(opened, outcome) {
                let times = times_told(&told, id, &agent, outcome);
                if times != 1 {
                    let (debate, status) = (&outcome.conflict_id, outcome.status.as_str());
                    violations.push(format!(
                        "conclusions: {agent} was told {times} times that {debate} of {id} has ended ({status})"
                    ));
                }
            }
        }
    }
}

/// The hosted agent is told alone of the debates that it was a party to and that the parties have settled, and of no others.
fn passed_on(archive: &Archive, violations: &mut Vec<String>) {
    let hosted = hosted();
    for record in archive.debates.values().flatten() {
        let DebateEvent::Resolved(resolved) = &record.event else {
            continue;
        };
        let outcome = &resolved.outcome;
        let mut positions = outcome.positions.iter();
        let is_party = positions.any(|position| position.agent_id == hosted);
        let expected = usize::from(is_party && is_told_together(outcome.status));
        let to_all = effect_id(&record.meta.id, record.sequence, 0);
        let id = MessageId::of_passing_on(&to_all, &hosted);
        let told = archive.said_under(&id).filter(|told| {
            told.envelope.as_ref().is_some_and(|envelope| {
                envelope.priority == Priority::High
                    && envelope.to_agent == Recipient::Agent(hosted.clone())
            })
        });
        let times = told.count();
        if times != expected {
            let debate = &record.meta.id;
            violations.push(format!(
                "conclusions: the end of {debate} was passed on {times} times to {hosted}, and {expected} is due"
            ));
        }
    }
}

/// The result that a case takes into account by this event.
fn taken(record: &StoredEvent<CaseEvent>) -> Option<&ConflictOutcome> {
    match &record.event {
        CaseEvent::DebateSettled(settled) => Some(&settled.outcome),
        CaseEvent::DecisionChanged(changed) => Some(&changed.outcome),
        CaseEvent::Decided(decided) => decided.last.as_ref(),
        _ => None,
    }
}

fn concluded(envelope: &Envelope) -> Option<(&Envelope, DebateConcluded)> {
    if envelope.from_agent != Service::Coordinator.agent_id() || envelope.priority != Priority::High
    {
        return None;
    }
    let told: Notification = envelope.payload().ok()?;
    if told.event != DebateConcluded::EVENT {
        return None;
    }
    Some((envelope, serde_json::from_value(told.data).ok()?))
}

fn times_told(
    told: &[(&Envelope, DebateConcluded)],
    case: &Token,
    agent: &AgentId,
    outcome: &ConflictOutcome,
) -> usize {
    let is_told = |(envelope, data): &&(&Envelope, DebateConcluded)| {
        envelope.to_agent == Recipient::Agent(agent.clone())
            && envelope
                .case_id
                .as_ref()
                .is_some_and(|one| one.token() == *case)
            && (&data.outcome.conflict_id, data.outcome.status)
                == (&outcome.conflict_id, outcome.status)
    };
    told.iter().filter(is_told).count()
}
