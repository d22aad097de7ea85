//! Deciding again: every stored event must be what its machine decides on the events before it and on its cause.
//!
//! This is stronger than replay. An event that was decided on something else than the events before it, because the lock
//! failed or a cache was wrong, replays well and is found here.

use std::sync::Arc;

use concord_debate_facilitator::names_no_question;
use concord_debate_facilitator::route::FollowUp;
use concord_domain::aggregates::case::{CaseInput, CaseMachine, CaseState, SharedNow, flag_of};
use concord_domain::aggregates::debate::{Command, DebateInput, DebateMachine};
use concord_domain::aggregates::detection::{DetectionInput, DetectionMachine};
use concord_domain::aggregates::impact::ImpactState;
use concord_domain::aggregates::track_record::TrackRecordMachine;
use concord_domain::machine::Versioned;
use concord_domain::{Context, Decision, Machine};
use concord_events::{
    Aggregate, AggregateEvent, AlertEvent, CaseCancelled, CaseEvent, DebateEvent, DetectionEvent,
    Origin, StoredEvent, event_id,
};
use concord_runtime::Routed;
use concord_wire::payload::AlertFlag;
use concord_wire::subject::Service;
use concord_wire::{CaseId, Envelope};

use super::archive::{Archive, Histories};
use super::shared::reruns;
use super::{authority, records};
use crate::agents::operators::Verb;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<CaseMachine>(&archive.cases, violations, |record| match origin(record) {
        Origin::Message => {
            let ordered = ordered(archive, record, |verb| match verb {
                Verb::Case(id, input) => Some(Routed::Step {
                    id: id.clone(),
                    input: input.clone(),
                }),
                _ => None,
            });
            let said = said(archive, record, |envelope| {
                concord_coordinator::route::from_message(envelope).ok()
            });
            said.into_iter()
                .flat_map(|input| authority::of_case(archive, record.sequence, input))
                .map(|input| with_shared(record, input))
                .chain(ordered)
                .collect()
        }
        Origin::Event => of_event(archive, record, |aggregate, bytes, sequence| {
            concord_coordinator::route::from_event(aggregate, bytes, sequence).ok()
        })
        .into_iter()
        .flat_map(|input| authority::with_policies(archive, record.sequence, input))
        .chain(flagged(archive, record))
        .chain(reruns::figures(archive, record))
        .collect(),
    });
    decided_again::<DebateMachine>(&archive.debates, violations, |record| {
        match origin(record) {
            Origin::Message => {
                let route = |envelope: &Envelope| {
                    concord_debate_facilitator::route::from_message(envelope).ok()
                };
                let ordered = ordered(archive, record, |verb| match verb {
                    Verb::Debate(id, input) => Some(Routed::Step {
                        id: id.clone(),
                        input: input.clone(),
                    }),
                    _ => None,
                });
                let said = said(archive, record, route).into_iter();
                let said = said.chain(attributed(archive, record));
                said.flat_map(|input| authority::of_debate(archive, record.sequence, input))
                    .map(|input| with_known(record, input))
                    .chain(ordered)
                    .collect()
            }
            Origin::Event => of_event(archive, record, |aggregate, bytes, sequence| {
                let at = (aggregate, sequence);
                followed(archive, record, at, bytes)
            })
            .into_iter()
            .map(|input| with_known(record, with_background(record, input)))
            .collect(),
        }
    });
    of_one_cause(archive, violations);
}

/// An answer that names no question, to each question that its sender was asked in this debate.
fn attributed(archive: &Archive, record: &StoredEvent<DebateEvent>) -> Vec<DebateInput> {
    let said = archive.said_under(&record.meta.cause);
    let answers = said.filter_map(|message| message.envelope.as_ref());
    let answers = answers.filter(|envelope| names_no_question(envelope));
    let facilitator = Service::DebateFacilitator.agent_id();
    let to = |answer: &Envelope| {
        let asked = archive
            .messages
            .iter()
            .filter_map(|message| message.envelope.as_ref());
        let by = answer.from_agent.clone();
        let from = facilitator.clone();
        asked.filter(move |one| one.from_agent == from && one.to_agent.as_str() == by.as_str())
    };
    let named = answers.flat_map(|answer| {
        to(answer).map(|question| Envelope {
            reply_to: Some(question.message_id.to_string()),
            ..answer.clone()
        })
    });
    let routed =
        named.filter_map(|answer| concord_debate_facilitator::route::from_message(&answer).ok());
    routed.filter_map(|routed| input(record, routed)).collect()
}

/// What follows for a debate from the event of another aggregate, or from its own opening.
fn followed(
    archive: &Archive,
    record: &StoredEvent<DebateEvent>,
    (aggregate, sequence): (Aggregate, u64),
    bytes: &[u8],
) -> Option<Routed<DebateInput>> {
    if aggregate == Aggregate::Debate {
        return cancelled_before(archive, record, sequence);
    }
    let follow_ups =
        concord_debate_facilitator::route::follow_ups(aggregate, bytes, sequence).ok()?;
    follow_ups
        .into_iter()
        .find_map(|follow_up| match follow_up {
            FollowUp::Debate(id, input) if id == record.meta.id => Some(Routed::Step { id, input }),
            FollowUp::CaseCancelled(_, cancelled) => Some(ended(record, &cancelled)),
            _ => None,
        })
}

/// A debate ends with its case.
fn ended(record: &StoredEvent<DebateEvent>, cancelled: &CaseCancelled) -> Routed<DebateInput> {
    let order = Box::new(concord_debate_facilitator::cancelled::order(cancelled));
    Routed::Step {
        id: record.meta.id.clone(),
        input: DebateInput::Command(order),
    }
}

/// A debate whose own opening has ended it: its case was cancelled before.
fn cancelled_before(
    archive: &Archive,
    record: &StoredEvent<DebateEvent>,
    opened_at: u64,
) -> Option<Routed<DebateInput>> {
    let records = archive.debates.get(&record.meta.id)?;
    let opened = records.iter().find(|one| one.sequence == opened_at)?;
    let DebateEvent::Opened(opened) = &opened.event else {
        return None;
    };
    let case = archive.cases.get(&opened.case_id.token())?;
    case.iter().find_map(|event| match &event.event {
        CaseEvent::Cancelled(cancelled) if event.sequence < record.sequence => {
            Some(ended(record, cancelled))
        }
        _ => None,
    })
}

/// What follows from one event of another aggregate.
fn of_one_cause(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<TrackRecordMachine>(&archive.records, violations, |record| {
        let verdicts = records::causes(archive, record).into_iter();
        verdicts
            .map(|(_, observe)| records::telling(record, observe))
            .collect()
    });
    decided_again::<DetectionMachine>(&archive.detections, violations, |record| {
        let Ok(case) = CaseId::new(record.meta.id.as_str()) else {
            return Vec::new();
        };
        let states = seen_before(archive, record);
        states
            .iter()
            .filter_map(|state| DetectionInput::of_case(&case, state))
            .collect()
    });
}

/// The alert that a flag follows from, with what was read of the analyses: it counts as it was at that instant.
fn flagged(archive: &Archive, record: &StoredEvent<CaseEvent>) -> Option<CaseInput> {
    let CaseEvent::Flagged(flagged) = &record.event else {
        return None;
    };
    let raised = archive.alerts.get(&flagged.flag.alert)?.first()?;
    let AlertEvent::Raised(said) = &raised.event else {
        return None;
    };
    let alert = (&raised.meta.id, raised.meta.at, said);
    let (case, analyses) = (CaseState::default(), ImpactState::default());
    let flag = AlertFlag {
        affected: flagged.flag.affected.clone(),
        ..flag_of(alert, &case, &analyses)
    };
    (raised.meta.event_id == record.meta.cause).then(|| CaseInput::Flag(Box::new(flag)))
}

/// A request to open a debate with what was read of track records and precedents: they count as they were at that instant.
fn with_known(record: &StoredEvent<DebateEvent>, input: DebateInput) -> DebateInput {
    match (input, &record.event) {
        (DebateInput::Open(mut opening), DebateEvent::Opened(opened)) => {
            opening.prior_knowledge.credibility = opened.credibility.clone();
            opening.prior_knowledge.precedents = opened.precedents.clone();
            opening.prior_knowledge.regime = opened.terms.circumstances.regime.clone();
            let named = &opening.request.terms.dependants;
            let known = opened.terms.dependants.iter();
            opening.prior_knowledge.dependants =
                known.filter(|one| !named.contains(one)).cloned().collect();
            DebateInput::Open(opening)
        }
        (input, _) => input,
    }
}

/// Who is let in, with what was read of the board and the commitments: they count as they were at that instant.
fn with_shared(record: &StoredEvent<CaseEvent>, input: CaseInput) -> CaseInput {
    match (input, &record.event) {
        (CaseInput::Add(mut received), CaseEvent::Joined(joined)) => {
            received.shared = SharedNow {
                board: joined.briefing.board.clone(),
                leases: joined.briefing.commitments.clone(),
            };
            CaseInput::Add(received)
        }
        (input, _) => input,
    }
}

/// An assignment with what was read of others for the brief: it counts as it was at that instant.
fn with_background(record: &StoredEvent<DebateEvent>, mut input: DebateInput) -> DebateInput {
    if let (DebateInput::Command(command), DebateEvent::Assigned(assigned)) =
        (&mut input, &record.event)
        && let Command::Assigned { background, .. } = &mut **command
    {
        background.clone_from(&assigned.briefed.brief.background);
    }
    input
}

/// The states of a case that its detection may have seen: it looks when the findings are closed, or later.
fn seen_before(archive: &Archive, detected: &StoredEvent<DetectionEvent>) -> Vec<Arc<CaseState>> {
    let mut known = Versioned::<CaseMachine>::default();
    let before = archive.cases.get(&detected.meta.id).into_iter().flatten();
    let before = before.take_while(|record| record.sequence < detected.sequence);
    let states = before.map(|record| {
        known.apply(record.clone());
        Arc::clone(&known.state)
    });
    states.collect()
}

pub(super) fn decided_again<M: Machine>(
    histories: &Histories<M::Event>,
    violations: &mut Vec<String>,
    inputs: impl Fn(&StoredEvent<M::Event>) -> Vec<M::Input>,
) {
    for (id, records) in histories {
        let mut known = Versioned::<M>::default();
        for record in records {
            let meta = &record.meta;
            let context = Context {
                now: meta.at,
                cause: meta.cause.clone(),
                origin: origin(record),
                sender: None,
            };
            let same = |input: &M::Input| matches!(M::decide(&known.state, &context, input), Decision::Append(event) if event == record.event);
            if !inputs(record).iter().any(same) {
                let aggregate = M::Event::AGGREGATE;
                let event = record.event.name();
                let at = record.sequence;
                violations.push(format!(
                    "again: {aggregate}/{id} at {at}: {event} is not what its cause leads to"
                ));
            }
            known.apply(record.clone());
        }
    }
}

fn origin<E: AggregateEvent>(record: &StoredEvent<E>) -> Origin {
    let of_fact = event_id(
        E::AGGREGATE,
        &record.meta.id,
        Origin::Event,
        &record.meta.cause,
    );
    if of_fact == record.meta.event_id {
        Origin::Event
    } else {
        Origin::Message
    }
}

/// The inputs that an event's cause makes, where it was said. Ids are chosen by senders, so there may be several.
fn said<E: AggregateEvent, I>(
    archive: &Archive,
    record: &StoredEvent<E>,
    route: impl Fn(&Envelope) -> Option<Routed<I>>,
) -> Vec<I> {
    let envelopes = archive
        .said_under(&record.meta.cause)
        .filter_map(|message| message.envelope.as_ref());
    envelopes
        .filter_map(|envelope| input(record, route(envelope)?))
        .collect()
}

/// The input that an event's cause makes, where an operator has asked for it.
fn ordered<E: AggregateEvent, I>(
    archive: &Archive,
    record: &StoredEvent<E>,
    route: impl Fn(&Verb) -> Option<Routed<I>>,
) -> Option<I> {
    input(
        record,
        route(&archive.operated.get(&record.meta.cause)?.verb)?,
    )
}

/// The input that an event's cause makes, where it is an event.
fn of_event<E: AggregateEvent, I>(
    archive: &Archive,
    record: &StoredEvent<E>,
    route: impl Fn(concord_events::Aggregate, &[u8], u64) -> Option<Routed<I>>,
) -> Vec<I> {
    let cause = archive.events.get(&record.meta.cause);
    let routed = cause.and_then(|(aggregate, sequence, bytes)| route(*aggregate, bytes, *sequence));
    routed
        .and_then(|routed| input(record, routed))
        .into_iter()
        .collect()
}

fn input<E: AggregateEvent, I>(record: &StoredEvent<E>, routed: Routed<I>) -> Option<I> {
    match routed {
        Routed::Step { id, input } if id == record.meta.id => Some(input),
        Routed::Step { .. } | Routed::Ignored(_) => None,
    }
}
