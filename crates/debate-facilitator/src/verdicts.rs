//! What people decided, and what proved right later, enters the track records of those who held a position; how a debate
//! ended enters the precedents.

use concord_domain::aggregates::debate::verdicts::{self, Verdict};
use concord_domain::{Context, aggregates::precedent};
use concord_events::{DebateResolved, OutcomeKnown};
use concord_runtime::delivery::HandleError;
use concord_runtime::delivery::handlers;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Ports, Trace};
use concord_wire::Token;
use concord_wire::payload::Precedent;

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
    if outcome.resolution.is_some() {
        let id = precedent::id_of(opened.conflict.kind, &opened.conflict.subject);
        let precedent = precedent_of(resolved);
        handlers::step(
            service,
            &stores.precedents,
            id,
            context.clone(),
            &precedent,
            trace.clone(),
        )
        .await?;
    }
    Ok(())
}

/// Enters what proved right after a debate.
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
    .await
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

fn precedent_of(resolved: &DebateResolved) -> Precedent {
    let outcome = &resolved.outcome;
    Precedent {
        debate_id: outcome.conflict_id.clone(),
        topic: resolved.topic.clone(),
        position: outcome
            .resolution
            .as_ref()
            .map(|one| one.position.clone())
            .unwrap_or_default(),
        level: outcome.level.map_or(1, u8::from),
        status: outcome.status.as_str().to_owned(),
        at: outcome.resolved_at,
    }
}
