//! Bugs of tasks that can be injected.

use concord_coordinator::route::task::{TaskMessage, from_message};
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::task::{Stage, TaskInput, TaskMachine, TaskState};
use concord_domain::aggregates::worklist::{WorklistInput, WorklistMachine};
use concord_events::subject::SystemSubject;
use concord_events::{Aggregate, StoredEvent, TaskCandidate, TaskEvent, WorkTaken};
use concord_runtime::Ports;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_wire::Priority;

use super::{decided_on, said};
use crate::ports::SimPorts;

/// Whoever is asked gets a place, however many it has.
pub(super) async fn take_without_capacity(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let subject = service.ports.subjects().parse(&delivery.subject);
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Task,
        ..
    }) = subject
    else {
        return Ok(());
    };
    let record = StoredEvent::<TaskEvent>::decode(&delivery.payload, delivery.sequence)?;
    let context = service.of_event(record.meta.event_id.clone());
    for agent in record.event.next().iter().flat_map(|next| &next.ask) {
        let take = WorklistInput::Take(WorkTaken {
            task_id: record.meta.id.clone(),
            priority: Priority::Normal,
            capacity: None,
        });
        let (ports, id) = (&service.ports, agent.token());
        decided_on::<WorklistMachine>(ports, &id, &context, &take, |_| true, |_| {}).await?;
    }
    Ok(())
}

/// An answer counts although its sender has answered before, or the task has ended.
pub(super) async fn answer_again(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Ok(Some(TaskMessage::Step(id, input @ TaskInput::Say(_)))) = from_message(&envelope) else {
        return Ok(());
    };
    let context = service.of_message(envelope.message_id);
    let forget = |known: &mut TaskState| {
        known.ended = None;
        let done = known.parts.values_mut();
        let done = done.filter(|part| part.stage == Stage::Done);
        done.for_each(|part| part.stage = Stage::Working);
    };
    decided_on::<TaskMachine>(&service.ports, &id, &context, &input, |_| true, forget).await
}

/// A task is given to those whom it names, whether they are there or not.
pub(super) async fn ask_whoever_is_named(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Ok(Some(TaskMessage::Step(id, TaskInput::Open(mut asked)))) = from_message(&envelope)
    else {
        return Ok(());
    };
    let named = asked.terms.criteria.agents.iter();
    asked.candidates = named
        .map(|agent| TaskCandidate {
            agent: agent.clone(),
            score: 1.0,
            full: false,
        })
        .collect();
    asked.sender = Authority::of_installation();
    let context = service.of_message(envelope.message_id);
    let input = TaskInput::Open(asked);
    decided_on::<TaskMachine>(&service.ports, &id, &context, &input, |_| true, |_| {}).await
}
