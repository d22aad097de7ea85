//! Bugs of the ladder that can be injected: before a handler is given a delivery, a step is done on something else than
//! what is known. Bugs of the event store, the publisher and the clock are in [`crate::ports`].

use std::sync::Arc;

use concord_coordinator::route::shared::{SharedInput, from_message};
use concord_debate_facilitator::route::{self, FollowUp};
use concord_domain::aggregates::alert::{AlertInput, AlertMachine};
use concord_domain::aggregates::board::{BoardInput, BoardMachine};
use concord_domain::aggregates::case::{CaseInput, CaseMachine};
use concord_domain::aggregates::commitment::{CommitmentMachine, CommitmentState};
use concord_domain::aggregates::debate::MessageBody;
use concord_domain::aggregates::debate::{DebateInput, DebateMachine};
use concord_domain::aggregates::impact::{ImpactInput, ImpactMachine, ImpactState};
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::review_queue::{self, QueueInput, QueueState, ReviewQueueMachine};
use concord_domain::machine::Versioned;
use concord_domain::{Context, Decision, Machine};
use concord_events::subject::SystemSubject;
use concord_events::{
    Aggregate, BoardEvent, CaseEvent, DebateEvent, DebateSettled, EARLIER_MAX, EventMeta,
    ReviewQueueEvent, StoredEvent,
};
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Consistency, EventStore, Loaded, Ports, Routed, Since};
use concord_wire::payload::{PersonRecord, Role, RoleGrant, Status};
use concord_wire::subject::{Service, Subject};
use concord_wire::{Envelope, Token, dialect};

use crate::faults::InjectedBug;
use crate::ports::SimPorts;
use crate::process::SHARED;

pub(crate) mod early_ack;
mod estimates;
mod memory;
mod questions;
mod tasks;
mod twice;

/// Does what an injected bug would do with a delivery, before its handler is given it.
pub(crate) async fn before(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some(bug) = service.ports.connection.injected_bug() else {
        return Ok(());
    };
    match service.service {
        Service::Coordinator => before_coordinator(service, delivery, bug).await,
        Service::ConflictDetector
            if matches!(
                bug,
                InjectedBug::ToleranceIgnored | InjectedBug::UnitIgnored
            ) =>
        {
            estimates::compare_badly(service, delivery, bug).await
        }
        Service::DebateFacilitator => before_facilitator(service, delivery, bug).await,
        _ => Ok(()),
    }
}

async fn before_coordinator(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    match bug {
        InjectedBug::DecisionNotChanged | InjectedBug::ConclusionUntold => {
            settle_badly(service, delivery, bug).await
        }
        InjectedBug::RoleUnchecked => review_unchecked(service, delivery).await,
        InjectedBug::BoundsUnchecked => open_unchecked(service, delivery).await,
        InjectedBug::CapacityUnchecked => tasks::take_without_capacity(service, delivery).await,
        InjectedBug::MemoryWriteDoubled => twice::write(service, delivery).await,
        InjectedBug::ConfirmationCountedTwice => twice::confirm(service, delivery).await,
        InjectedBug::RerunCountedTwice => twice::end_step(service, delivery).await,
        InjectedBug::CheckpointToldAgain => memory::tell_again(service, delivery).await,
        InjectedBug::InsightUntold => memory::tell_nobody(service, delivery).await,
        InjectedBug::HeldForgotten => memory::forget_held(service, delivery).await,
        InjectedBug::RuleRaisesTwice => memory::raise_again(service, delivery).await,
        InjectedBug::SilenceIgnored => tasks::ask_whoever_is_named(service, delivery).await,
        InjectedBug::AnswerAgain => tasks::answer_again(service, delivery).await,
        InjectedBug::QuestionEndsAgain | InjectedBug::AnswerAfterTime => {
            questions::answer_badly(service, delivery, bug).await
        }
        InjectedBug::BoardVersionIgnored
        | InjectedBug::LeaseHeldByTwo
        | InjectedBug::AnalysesForgotten
        | InjectedBug::AlertUnchecked => share_badly(service, delivery, bug).await,
        _ => Ok(()),
    }
}

async fn before_facilitator(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    match bug {
        InjectedBug::QueueIgnoresLoad | InjectedBug::QueueUnfair => {
            assign_badly(service, delivery, bug).await
        }
        InjectedBug::RulingOutOfTime
        | InjectedBug::RulingOnOldBrief
        | InjectedBug::SignatureUnchecked => rule_badly(service, delivery, bug).await,
        _ => Ok(()),
    }
}

/// The queue is asked for the next assignment as if nobody had a debate, or as if one opener had opened all cases.
async fn assign_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let subject = service.ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event { aggregate, .. }) = subject else {
        return Ok(());
    };
    let follow_ups = route::follow_ups(aggregate, &delivery.payload, delivery.sequence)?;
    let advances = |follow_up: &FollowUp| matches!(follow_up, FollowUp::Queue(QueueInput::Advance));
    if aggregate != Aggregate::ReviewQueue || !follow_ups.iter().any(advances) {
        return Ok(());
    }
    let context = service.of_event(EventMeta::decode(&delivery.payload)?.event_id);
    let forget = |known: &mut QueueState| {
        known
            .experts
            .values_mut()
            .for_each(|desk| desk.held.clear());
    };
    let id = review_queue::id();
    let advance = QueueInput::Advance;
    if bug == InjectedBug::QueueUnfair {
        return assign_unfairly(&service.ports, &id, &context, &advance).await;
    }
    decided_on::<ReviewQueueMachine>(&service.ports, &id, &context, &advance, |_| true, forget)
        .await
}

async fn assign_unfairly(
    ports: &SimPorts,
    id: &Token,
    context: &Context,
    advance: &QueueInput,
) -> Result<(), HandleError> {
    let loaded = ports.load::<ReviewQueueEvent>(id, Since::FIRST, Consistency::Leader);
    let Loaded { records, head } = loaded.await?;
    let mut known = Versioned::<ReviewQueueMachine>::default();
    for mut record in records {
        if let ReviewQueueEvent::Enqueued(entry) = &mut record.event {
            entry.opened_by = None;
        }
        known.apply(record);
    }
    if let Decision::Append(event) = ReviewQueueMachine::decide(&known.state, context, advance) {
        let record = known.record(id, context, event);
        ports.append(&record, head, None).await?;
    }
    Ok(())
}

/// What a gate overrides is recorded by the case like the outcome of any debate, and its decision stays as it is; or how a debate has
/// ended is recorded, and nobody is told.
async fn settle_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let subject = service.ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Debate,
        ..
    }) = subject
    else {
        return Ok(());
    };
    let stored = StoredEvent::<DebateEvent>::decode(&delivery.payload, delivery.sequence)?;
    let DebateEvent::Resolved(resolved) = stored.event else {
        return Ok(());
    };
    let untold = bug == InjectedBug::ConclusionUntold;
    if !untold && resolved.outcome.status != Status::Overridden {
        return Ok(());
    }
    let ports = &service.ports;
    let id = resolved.case_id.token();
    let Loaded { records, head } = ports
        .load::<CaseEvent>(&id, Since::FIRST, Consistency::Leader)
        .await?;
    let known = concord_domain::assurance::replay::rebuild::<CaseMachine>(&records).0;
    let context = service.of_event(stored.meta.event_id);
    let input = CaseInput::Resolved(Box::new(resolved.outcome));
    let decided = CaseMachine::decide(&known.state, &context, &input);
    let event = match decided {
        Decision::Append(CaseEvent::DebateSettled(mut settled)) if untold => {
            settled.concluded_for.clear();
            CaseEvent::DebateSettled(settled)
        }
        Decision::Append(CaseEvent::DecisionChanged(changed)) if !untold => {
            CaseEvent::DebateSettled(DebateSettled {
                outcome: changed.outcome,
                entry: Some(changed.entry),
                concluded_for: changed.concluded_for,
            })
        }
        _ => return Ok(()),
    };
    let record = known.record(&id, &context, event);
    ports.append(&record, head, None).await?;
    Ok(())
}

/// A ruling counts although its time has run out, or whatever brief it is on.
async fn rule_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Ok(Routed::Step {
        id,
        input: DebateInput::Message(mut said),
    }) = route::from_message(&envelope)
    else {
        return Ok(());
    };
    let MessageBody::Ruling(ruling) = &mut said.body else {
        return Ok(());
    };
    // These bugs are about time, digest and signature, not about roles.
    said.sender = Authority::of_expert(&said.agent_id);
    if let (Some(signature), Some(person)) = (&ruling.signature, &mut said.sender.person) {
        person.public_key = Some(signature.key.clone());
        said.signed_for.clone_from(&envelope.case_id);
    }
    if bug == InjectedBug::SignatureUnchecked {
        let input = DebateInput::Message(said);
        let ports = &service.ports;
        let context = service.of_message(envelope.message_id);
        return decided_on::<DebateMachine>(ports, &id, &context, &input, |_| true, |_| {}).await;
    }
    let ports = &service.ports;
    let context = service.of_message(envelope.message_id);
    if bug == InjectedBug::RulingOutOfTime {
        let in_time = |record: &StoredEvent<DebateEvent>| {
            !matches!(
                record.event,
                DebateEvent::FellBack(_) | DebateEvent::AwaitsGate(_)
            )
        };
        let input = DebateInput::Message(said);
        return decided_on::<DebateMachine>(ports, &id, &context, &input, in_time, |_| {}).await;
    }
    let loaded = ports
        .load::<DebateEvent>(&id, Since::FIRST, Consistency::Leader)
        .await?;
    let known = concord_domain::assurance::replay::rebuild::<DebateMachine>(&loaded.records).0;
    let Some(digest) = known.into_state().ladder.and_then(|ladder| ladder.digest) else {
        return Ok(());
    };
    ruling.digest = digest;
    let input = DebateInput::Message(said);
    decided_on::<DebateMachine>(ports, &id, &context, &input, |_| true, |_| {}).await
}

/// What a message to the coordinator is for its case: the message, the case, and the input.
fn input_of_case(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Option<(Envelope, Token, CaseInput)> {
    let envelope = said(service, delivery)?;
    match concord_coordinator::route::from_message(&envelope) {
        Ok(Routed::Step { id, input }) => Some((envelope, id, input)),
        _ => None,
    }
}

/// A case is opened as if its opener were an operator.
async fn open_unchecked(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some((envelope, id, CaseInput::Open(mut asked))) = input_of_case(service, delivery) else {
        return Ok(());
    };
    asked.sender = Authority::of_installation();
    let context = service.of_message(envelope.message_id);
    let input = CaseInput::Open(asked);
    decided_on::<CaseMachine>(&service.ports, &id, &context, &input, |_| true, |_| {}).await
}

/// A review counts as if its sender were a reviewer.
async fn review_unchecked(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some((envelope, id, CaseInput::Review(mut received))) = input_of_case(service, delivery)
    else {
        return Ok(());
    };
    let arbiter = Authority::of_expert(&envelope.from_agent);
    received.sender = Authority {
        person: arbiter.person.map(|person| PersonRecord {
            roles: vec![RoleGrant::of(Role::Reviewer)],
            ..person
        }),
        ..arbiter
    };
    let context = service.of_message(envelope.message_id);
    let input = CaseInput::Review(received);
    decided_on::<CaseMachine>(&service.ports, &id, &context, &input, |_| true, |_| {}).await
}

/// The message that is delivered; none for what is no message.
fn said(service: &ServiceContext<SimPorts>, delivery: &Delivery) -> Option<Envelope> {
    let subject = service.ports.subjects().parse::<Subject>(&delivery.subject);
    let (envelope, _) = dialect::read(&delivery.payload, None, &subject.ok()?).ok()?;
    Some(envelope)
}

/// An entry is written on the version that stands, or a commitment is granted as if nothing were held.
async fn share_badly(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
    bug: InjectedBug,
) -> Result<(), HandleError> {
    let ports = &service.ports;
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let context = service.of_message(envelope.message_id.clone());
    match (bug, from_message(&envelope, SHARED).ok().flatten()) {
        (InjectedBug::BoardVersionIgnored, Some(SharedInput::Board(case_id, input))) => {
            let id = case_id.token();
            let loaded = ports
                .load::<BoardEvent>(&id, Since::FIRST, Consistency::Leader)
                .await?;
            let known = concord_domain::assurance::replay::rebuild::<BoardMachine>(&loaded.records);
            let BoardInput::Put(mut received) = input;
            let stands = known.0.state.entries.get(&received.put.name);
            received.put.based_on = stands.map_or(0, |entry| entry.listing.version);
            let input = BoardInput::Put(received);
            decided_on::<BoardMachine>(ports, &id, &context, &input, |_| true, |_| {}).await
        }
        (InjectedBug::LeaseHeldByTwo, Some(SharedInput::Commitment(id, input))) => {
            let forget = |known: &mut CommitmentState| {
                known.leases.clear();
                known.outside.clear();
            };
            decided_on::<CommitmentMachine>(ports, &id, &context, &input, |_| true, forget).await
        }
        (InjectedBug::AlertUnchecked, Some(SharedInput::Alert(id, input))) => {
            let AlertInput::Raise(mut received) = input else {
                return Ok(());
            };
            if received.heard.agent_id == Service::Coordinator.agent_id() {
                // What it tells everybody would be told of without end.
                return Ok(());
            }
            received.sender = Authority::of_installation();
            let input = AlertInput::Raise(received);
            decided_on::<AlertMachine>(ports, &id, &context, &input, |_| true, |_| {}).await
        }
        (InjectedBug::AnalysesForgotten, Some(SharedInput::Analysis(received))) => {
            let id = received.case_id.token();
            let input = ImpactInput::Publish(received);
            let forget = |known: &mut ImpactState| *known = ImpactState::default();
            decided_on::<ImpactMachine>(ports, &id, &context, &input, |_| true, forget).await
        }
        _ => Ok(()),
    }
}

/// Decides on those events only that `counts` lets through and on what `forget` leaves of them, and appends the event all
/// the same.
async fn decided_on<M: Machine>(
    ports: &SimPorts,
    id: &Token,
    context: &Context,
    input: &M::Input,
    counts: impl Fn(&StoredEvent<M::Event>) -> bool,
    forget: impl Fn(&mut M::State),
) -> Result<(), HandleError> {
    let (mut known, head) = known_by::<M>(ports, id, counts).await?;
    forget(Arc::make_mut(&mut known.state));
    if let Decision::Append(event) = M::decide(&known.state, context, input) {
        let record = known.record(id, context, event);
        ports.append(&record, head, None).await?;
    }
    Ok(())
}

/// What is known of an aggregate by those events only that `counts` lets through, and the sequence of its last event.
async fn known_by<M: Machine>(
    ports: &SimPorts,
    id: &Token,
    counts: impl Fn(&StoredEvent<M::Event>) -> bool,
) -> Result<(Versioned<M>, u64), HandleError> {
    let Loaded { records, head } = ports
        .load::<M::Event>(id, Since::FIRST, Consistency::Leader)
        .await?;
    let mut known = Versioned::<M>::default();
    for record in records {
        if counts(&record) {
            known.apply(record);
        } else {
            concord_domain::event_chain::remember(
                &mut known.sequences,
                record.sequence,
                EARLIER_MAX,
            );
        }
    }
    Ok((known, head))
}
