//! What people decided, and what proved right later, enters the track records of those who held a position; how a debate
//! ended enters the precedents.

use concord_domain::aggregates::case::everyone_in;
use concord_domain::aggregates::debate::verdicts::{self, Verdict};
use concord_domain::aggregates::track_record::{Observe, Tell};
use concord_domain::rules::precedent::precedent_of;
use concord_domain::{Context, aggregates::precedent};
use concord_events::{DebateOpened, DebateResolved, OutcomeKnown};
use concord_runtime::delivery::HandleError;
use concord_runtime::delivery::handlers;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Ports, Trace};
use concord_wire::Token;
use concord_wire::payload::ConflictOutcome;

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
        (context, trace),
        &opened,
        verdicts::of_resolution(&opened, provisional, resolved, context.now),
    )
    .await?;
    enter_precedent(service, stores, (context, trace), &opened, outcome, None).await
}

/// Enters a debate that has ended with a position, under what it was about and under its field.
async fn enter_precedent<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    (context, trace): (&Context, &Option<Trace>),
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
    known: Option<&OutcomeKnown>,
) -> Result<(), HandleError> {
    let Some(precedent) = precedent_of(opened, outcome, known) else {
        return Ok(());
    };
    let conflict = &opened.conflict;
    let exact = precedent::id_of(conflict.kind, &conflict.subject);
    let field = precedent.matter.as_ref().map(precedent::field_id_of);
    for id in std::iter::once(exact).chain(field) {
        let (context, trace) = (context.clone(), trace.clone());
        handlers::step(service, &stores.precedents, id, context, &precedent, trace).await?;
    }
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
        (context, trace),
        &opened,
        verdicts::of_outcome(&opened, known),
    )
    .await?;
    match &debate.state.outcome {
        Some(outcome) => {
            let known = Some(known);
            enter_precedent(service, stores, (context, trace), &opened, outcome, known).await
        }
        None => Ok(()),
    }
}

/// Enters verdicts into the track records. Who is in the case is told what that does to the credibility of their agents; the case is
/// read for it here and not before, for most debates end without a verdict.
async fn record<P: Ports>(
    service: &ServiceContext<P>,
    stores: &Stores<P>,
    (context, trace): (&Context, &Option<Trace>),
    opened: &DebateOpened,
    verdicts: Vec<Verdict>,
) -> Result<(), HandleError> {
    if verdicts.is_empty() {
        return Ok(());
    }
    let case = stores.cases.load(&opened.case_id.token()).await?;
    let tell = case.state.opened.as_ref().map(|case| Tell {
        to: everyone_in(case),
        topic: opened.conflict.topic.clone(),
        version: opened.policy.ladder.credibility,
    });
    for (agent, observe) in verdicts {
        let mut observe = Observe {
            tell: tell.clone(),
            ..observe
        };
        // The process that stored it may have a clock that is ahead, and what is of the future is no observation.
        let at = &mut observe.observation.at;
        *at = (*at).min(context.now);
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
