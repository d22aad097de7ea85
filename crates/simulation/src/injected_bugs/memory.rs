//! Bugs of memory that can be injected.

use concord_coordinator::route::shared::{SharedInput, from_message};
use concord_domain::aggregates::alert::{AlertInput, AlertMachine, FiredAlert};
use concord_domain::aggregates::case::{CaseMachine, Sharing, check_member, written_in};
use concord_domain::aggregates::memory::{MemoryInput, MemoryMachine, WrittenIn};
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::synthesis::{
    Known, SynthesisInput, SynthesisMachine, SynthesisState,
};
use concord_domain::assurance::replay;
use concord_domain::rules::alerting::{alert_id, alert_of};
use concord_events::subject::SystemSubject;
use concord_events::{
    Aggregate, CaseEvent, DetectionEvent, MemoryEvent, StoredEvent, SynthesisEvent,
};
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Consistency, EventStore, Ports, Since};
use concord_wire::Token;
use concord_wire::payload::CheckpointReason;

use super::{decided_on, known_by, said};
use crate::ports::SimPorts;
use crate::process::SHARED;

/// What an agent writes in a case is stored as if nobody but the agent were in it.
pub(super) async fn tell_nobody(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let ports = &service.ports;
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Ok(Some(SharedInput::Memory(input))) = from_message(&envelope, SHARED) else {
        return Ok(());
    };
    let MemoryInput::Put(mut received) = input;
    let Some(case_id) = &received.case_id else {
        return Ok(());
    };
    let who = &received.heard.agent_id;
    let loaded = ports
        .load::<CaseEvent>(&case_id.token(), Since::FIRST, Consistency::Leader)
        .await?;
    let case = replay::rebuild::<CaseMachine>(&loaded.records).0.state;
    if check_member(&case, who, &Authority::default(), Sharing::Write).is_err() {
        return Ok(());
    }
    received.written_in = written_in(&case).map(|written_in| WrittenIn {
        everyone: Vec::new(),
        ..written_in
    });
    let id = who.token();
    let context = service.of_message(envelope.message_id.clone());
    let input = MemoryInput::Put(received);
    decided_on::<MemoryMachine>(ports, &id, &context, &input, |_| true, |_| {}).await
}

/// The checkpoint of a detection is made as if everything that is held back had been written again.
pub(super) async fn forget_held(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let ports = &service.ports;
    let subject = ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Detection,
        ..
    }) = subject
    else {
        return Ok(());
    };
    let stored = StoredEvent::<DetectionEvent>::decode(&delivery.payload, delivery.sequence)?;
    let DetectionEvent::Completed(detected) = stored.event;
    let id = detected.case_id.token();
    let loaded = ports
        .load::<SynthesisEvent>(&id, Since::FIRST, Consistency::Leader)
        .await?;
    let held = replay::rebuild::<SynthesisMachine>(&loaded.records)
        .0
        .into_state()
        .held;
    let standing = held.into_keys().map(|place| (place, u64::MAX));
    let input = SynthesisInput::Checkpoint {
        case_id: detected.case_id,
        reason: CheckpointReason::Detected,
        known: Known {
            standing: standing.collect(),
            ..Known::default()
        },
    };
    let context = service.of_event(stored.meta.event_id);
    decided_on::<SynthesisMachine>(ports, &id, &context, &input, |_| true, |_| {}).await
}

/// What a case was told at its first checkpoint is told once more, as if it were held back still.
pub(super) async fn tell_again(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let ports = &service.ports;
    let subject = ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Synthesis,
        id,
        ..
    }) = subject
    else {
        return Ok(());
    };
    let record = StoredEvent::<SynthesisEvent>::decode(&delivery.payload, delivery.sequence)?;
    let SynthesisEvent::Consolidated(told) = &record.event else {
        return Ok(());
    };
    let (known, _) = known_by::<SynthesisMachine>(ports, &id, |_| true).await?;
    if told.insights.is_empty() || known.state.checkpoints.len() != 1 {
        return Ok(());
    }
    let input = SynthesisInput::Checkpoint {
        case_id: told.case_id.clone(),
        reason: told.reason,
        known: Known {
            everyone: told.told.clone(),
            ..Known::default()
        },
    };
    let context = service.of_event(record.meta.event_id.clone());
    let forget = |known: &mut SynthesisState| {
        known.is_over = false;
        let insights = told.insights.iter().cloned();
        let held = insights.map(|one| ((one.topic.clone(), one.agent.clone()), one));
        known.held = held.collect();
    };
    decided_on::<SynthesisMachine>(ports, &id, &context, &input, |_| true, forget).await
}

/// What fulfils a rule raises another alert, as if its id followed from nothing that is stored.
pub(super) async fn raise_again(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let subject = service.ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Memory,
        ..
    }) = subject
    else {
        return Ok(());
    };
    let record = StoredEvent::<MemoryEvent>::decode(&delivery.payload, delivery.sequence)?;
    let MemoryEvent::Put(put) = &record.event;
    for fired in put.fired.iter().filter(|fired| !fired.withheld) {
        let alert = FiredAlert {
            heard: put.heard.clone(),
            priority: fired.priority,
            alert: alert_of(put, fired),
            registered: Vec::new(),
            terms: None,
        };
        let id = Token::derived(&format!("again/{}", alert_id(put, fired)));
        let context = service.of_event(record.meta.event_id.clone());
        let input = AlertInput::Fire(Box::new(alert));
        decided_on::<AlertMachine>(&service.ports, &id, &context, &input, |_| true, |_| {}).await?;
    }
    Ok(())
}
