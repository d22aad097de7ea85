//! What people decided, and what proved right later, enters the track records of those who held a position; how a debate
//! ended enters the precedents.

use concord_domain::aggregates::debate::verdicts::{self, Verdict};
use concord_domain::{Context, aggregates::precedent};
use concord_events::{DebateOpened, DebateResolved, OutcomeKnown};
use concord_runtime::delivery::HandleError;
use concord_runtime::delivery::handlers;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Ports, Trace};
use concord_wire::Token;
use concord_wire::payload::{ConflictOutcome, Precedent};

use crate::stores::Stores;

/// Enters the end of a debate.
pub(crate) async fn enter<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    context: &Context,
    trace: &Option<Trace>,
    resolved: &DebateResolved,
) -> Result<(), HandleError> {
    let outcome = &resolved.outcome;
    let debate = stores.debates.load(&outcome.conflict_id.token()).await?;
    let Some(opened) = debate.state.opened.clone() else {
        return Ok(());
    };
    let provisional = debate
        .state
        .ladder
        .as_ref()
        .and_then(|ladder| ladder.provisional.as_ref());
    record(
        service,
        stores,
        context,
        trace,
        verdicts::of_resolution(&opened, provisional, resolved, context.now),
    )
    .await?;
    enter_precedent(service, stores, context, trace, &opened, outcome).await
}

/// Enters how a debate has ended, if it has ended with a position.
async fn enter_precedent<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    context: &Context,
    trace: &Option<Trace>,
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
) -> Result<(), HandleError> {
    let Some(precedent) = precedent_of(opened, outcome) else {
        return Ok(());
    };
    let id = precedent::id_of(opened.conflict.kind, &opened.conflict.subject);
    let (context, trace) = (context.clone(), trace.clone());
    handlers::step(service, &stores.precedents, id, context, &precedent, trace).await?;
    Ok(())
}

/// Enters what proved right after a debate. One that was voted on or settled in discussion is a precedent from then on: before, it
/// says nothing about who is right, and there are many of them.
pub(crate) async fn enter_outcome<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    context: &Context,
    trace: &Option<Trace>,
    known: &OutcomeKnown,
    debate: &Token,
) -> Result<(), HandleError> {
    let debate = stores.debates.load(debate).await?;
    let Some(opened) = debate.state.opened.clone() else {
        return Ok(());
    };
    record(
        service,
        stores,
        context,
        trace,
        verdicts::of_outcome(&opened, known),
    )
    .await?;
    match &debate.state.outcome {
        Some(outcome) => enter_precedent(service, stores, context, trace, &opened, outcome).await,
        None => Ok(()),
    }
}

async fn record<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    context: &Context,
    trace: &Option<Trace>,
    verdicts: Vec<Verdict>,
) -> Result<(), HandleError> {
    for (agent, observe) in verdicts {
        handlers::step(
            service,
            &stores.records,
            agent.token(),
            context.clone(),
            &observe,
            trace.clone(),
        )
        .await?;
    }
    Ok(())
}

/// The precedent that a debate is; `None` where it has ended without a position.
fn precedent_of(opened: &DebateOpened, outcome: &ConflictOutcome) -> Option<Precedent> {
    let chosen = outcome.resolution.as_ref()?;
    Some(Precedent {
        debate_id: outcome.conflict_id.clone(),
        topic: opened.conflict.topic.clone(),
        position: chosen.position.clone(),
        level: outcome.level.map_or(1, u8::from),
        status: outcome.status.as_str().to_owned(),
        at: outcome.resolved_at,
    })
}
