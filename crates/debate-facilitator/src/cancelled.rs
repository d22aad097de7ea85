//! A case that is cancelled takes its debates with it, whichever comes first: a debate may be opened after its case was cancelled,
//! because conflicts were being looked for, or because a challenge was on its way.
//!
//! Whoever hears of the cancellation ends what has been opened, and whoever hears of an opening looks for the cancellation.
//! Of the two events the later one is heard when both are stored.

use std::collections::BTreeSet;

use concord_domain::Context;
use concord_domain::aggregates::debate::{Command, DebateInput};
use concord_events::{
    CaseCancelled, CaseEvent, DebateEvent, DetectionEvent, EventMeta, StoredEvent,
};
use concord_runtime::delivery::{Delivery, HandleError, handlers};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Consistency, Ports, Trace};
use concord_wire::{DebateId, Token};

use crate::follow_ups::ignore_refusal;
use crate::stores::Stores;

/// The event by which a case is cancelled.
const CANCELLED: &str = "cancelled";
/// The event that says which conflicts a case has.
const COMPLETED: &str = "completed";

/// What ends a debate whose case is cancelled.
pub fn order(cancelled: &CaseCancelled) -> Command {
    Command::Cancel {
        by: cancelled.by.clone(),
        why: cancelled.why.clone(),
    }
}

/// Ends the debates that the case knew of when it was cancelled, and those of conflicts that it had not received yet.
pub(crate) async fn end_debates<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    (context, trace): (&Context, &Option<Trace>),
    case: &Token,
    cancelled: &CaseCancelled,
) -> Result<(), HandleError> {
    let detection = stores
        .ports
        .last_named::<DetectionEvent>(case, COMPLETED, Consistency::Leader)
        .await?;
    let detected = detection.map_or_else(Vec::new, |detection| {
        let DetectionEvent::Completed(detected) = detection.event;
        detected.debated
    });
    let found = detected.iter().map(|conflict| &conflict.conflict_id);
    let debates: BTreeSet<&DebateId> = cancelled.debates.iter().chain(found).collect();
    for debate in debates {
        let cause = (context, trace);
        end(service, stores, cause, debate.token(), cancelled).await?;
    }
    Ok(())
}

/// Ends the debate that a delivered event opens, where its case was cancelled before.
pub(crate) async fn end_if_cancelled<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let meta = EventMeta::decode(&delivery.payload)?;
    if !meta.earlier.is_empty() {
        return Ok(());
    }
    let record = StoredEvent::<DebateEvent>::decode(&delivery.payload, delivery.sequence)?;
    let DebateEvent::Opened(opened) = record.event else {
        return Ok(());
    };
    let cancellation = stores
        .ports
        .last_named::<CaseEvent>(&opened.case_id.token(), CANCELLED, Consistency::Leader)
        .await?;
    let Some(CaseEvent::Cancelled(cancelled)) = cancellation.map(|record| record.event) else {
        return Ok(());
    };
    let context = service.of_event(meta.event_id);
    let cause = (&context, &delivery.trace);
    end(service, stores, cause, meta.id, &cancelled).await
}

async fn end<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    (context, trace): (&Context, &Option<Trace>),
    debate: Token,
    cancelled: &CaseCancelled,
) -> Result<(), HandleError> {
    let input = DebateInput::Command(Box::new(order(cancelled)));
    let (context, trace) = (context.clone(), trace.clone());
    ignore_refusal(handlers::step(service, &stores.debates, debate, context, &input, trace).await)
}
