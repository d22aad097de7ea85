//! Bugs by which what has happened once is stored twice, as if nobody knew of the first time.

use std::sync::Arc;

use concord_coordinator::route::shared::{SharedInput, from_message};
use concord_domain::aggregates::case::{CaseInput, CaseMachine};
use concord_domain::aggregates::impact::{ImpactInput, ImpactMachine, StepResult, all_standings};
use concord_domain::aggregates::memory::{MemoryInput, MemoryMachine, MemoryState};
use concord_domain::aggregates::task::TaskMachine;
use concord_domain::{Context, Decision, Machine};
use concord_events::subject::SystemSubject;
use concord_events::{Aggregate, CaseEvent, ImpactEvent, StoredEvent, TaskEvent, TaskOutcome};
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{EventStore, Ports};
use concord_wire::{CaseId, MessageId, Token};
use serde_json::Value;

use super::{input_of_case, known_by, said};
use crate::ports::SimPorts;
use crate::process::SHARED;

/// What an agent writes is stored, and then once more.
pub(super) async fn write(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some(envelope) = said(service, delivery) else {
        return Ok(());
    };
    let Ok(Some(SharedInput::Memory(input))) = from_message(&envelope, SHARED) else {
        return Ok(());
    };
    let MemoryInput::Put(received) = &input;
    let id = received.heard.agent_id.token();
    let context = service.of_message(envelope.message_id.clone());
    // The messages that are known are forgotten.
    let forget = |known: &mut MemoryState| {
        let mut state = MemoryState::default();
        state.topics.clone_from(&known.topics);
        (state.versions, state.bytes) = (known.versions, known.bytes);
        *known = state;
    };
    decided_twice::<MemoryMachine>(&service.ports, (&id, &context), &input, |_| true, forget).await
}

/// A confirmation is counted, and then once more.
pub(super) async fn confirm(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let Some((envelope, id, input)) = input_of_case(service, delivery) else {
        return Ok(());
    };
    if !matches!(input, CaseInput::Confirm(_)) {
        return Ok(());
    }
    let context = service.of_message(envelope.message_id);
    let counts = |record: &StoredEvent<CaseEvent>| !matches!(record.event, CaseEvent::Confirmed(_));
    decided_twice::<CaseMachine>(&service.ports, (&id, &context), &input, counts, |_| {}).await
}

/// A step of a run whose task was done has ended, and then once more.
pub(super) async fn end_step(
    service: &ServiceContext<SimPorts>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let ports = &service.ports;
    let Ok(SystemSubject::Event {
        aggregate: Aggregate::Task,
        id: task,
        ..
    }) = ports.subjects().parse(&delivery.subject)
    else {
        return Ok(());
    };
    let record = StoredEvent::<TaskEvent>::decode(&delivery.payload, delivery.sequence)?;
    let Some(TaskOutcome::Completed { result, .. }) = record.event.end().map(|end| &end.outcome)
    else {
        return Ok(());
    };
    let (known, _) = known_by::<TaskMachine>(ports, &task, |_| true).await?;
    let opened = known.state.opened.as_ref();
    let Some((case_id, run, step)) =
        opened.and_then(|opened| step_of_run(&opened.terms.task.input))
    else {
        return Ok(());
    };
    let id = case_id.token();
    let (case, _) = known_by::<CaseMachine>(ports, &id, |_| true).await?;
    let (analyses, _) = known_by::<ImpactMachine>(ports, &id, |_| true).await?;
    let input = ImpactInput::StepEnded(Box::new(StepResult {
        run,
        step,
        result: Ok(result.clone()),
        standings: all_standings(&case.state, &analyses.state.graph),
    }));
    let counts = |record: &StoredEvent<ImpactEvent>| match &record.event {
        ImpactEvent::RerunStepEnded(ended) => (ended.run, ended.step) != (run, step),
        _ => true,
    };
    let context = service.of_event(record.meta.event_id.clone());
    decided_twice::<ImpactMachine>(ports, (&id, &context), &input, counts, |_| {}).await
}

/// Which step of which run a task is.
fn step_of_run(input: &Value) -> Option<(CaseId, u32, u32)> {
    let number = |field: &str| u32::try_from(input.get(field)?.as_u64()?).ok();
    let case = CaseId::new(input.get("case_id")?.as_str()?).ok()?;
    Some((case, number("run")?, number("step")?))
}

/// Decides twice on those events only that `counts` lets through and on what `forget` leaves of them, and appends both events: the second
/// under an id of its own.
async fn decided_twice<M: Machine>(
    ports: &SimPorts,
    (id, context): (&Token, &Context),
    input: &M::Input,
    counts: impl Fn(&StoredEvent<M::Event>) -> bool,
    forget: impl Fn(&mut M::State),
) -> Result<(), HandleError> {
    for time in 0..2 {
        let (mut known, head) = known_by::<M>(ports, id, &counts).await?;
        forget(Arc::make_mut(&mut known.state));
        let Decision::Append(event) = M::decide(&known.state, context, input) else {
            continue;
        };
        let mut record = known.record(id, context, event);
        if time > 0
            && let Ok(other) = MessageId::new(format!("{}-again", record.meta.event_id))
        {
            record.meta.event_id = other;
        }
        ports.append(&record, head, None).await?;
    }
    Ok(())
}
