//! What a service does with deliveries: messages and events become steps, its own events become effects.

use std::sync::Arc;

use concord_domain::{Context, Machine};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::{EventMeta, StoredEvent};
use concord_wire::{CaseId, Envelope, Fault, Token};
use tracing::Instrument;

use crate::context::ServiceContext;
use crate::context::trace_context::TraceContext;
use crate::delivery::{Ack, Delivery, HandleError, Handler};
use crate::event_store::step::{Aggregates, Outcome};
use crate::ports::Ports;
use crate::{codec::parse_subject, delivery::route::Routed, event_store::effects, telemetry};

type MessageRoute<I> = fn(&Envelope) -> Result<Routed<I>, Fault>;
type EventRoute<I> = fn(Aggregate, &[u8], u64) -> Result<Routed<I>, concord_events::Error>;

/// Adds to an input what must be read elsewhere before it can be decided on.
pub trait Prepare<I>: Send + Sync + 'static {
    /// The input of the aggregate `id`, as it is to be decided on.
    fn prepare(&self, id: &Token, input: I) -> impl Future<Output = Result<I, HandleError>> + Send;

    /// Takes back what [`prepare`](Self::prepare) has stored elsewhere, where nothing came of the input after all. Called before the
    /// message is acknowledged.
    fn decided(
        &self,
        _id: &Token,
        _input: &I,
    ) -> impl Future<Output = Result<(), HandleError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Nothing needs to be read.
impl<I: Send> Prepare<I> for () {
    async fn prepare(&self, _: &Token, input: I) -> Result<I, HandleError> {
        Ok(input)
    }
}

/// Messages become steps.
pub struct MessageHandler<P, M: Machine, R = ()> {
    context: ServiceContext<P>,
    aggregates: Arc<Aggregates<M, P>>,
    route: MessageRoute<M::Input>,
    prepare: R,
}

impl<P: Ports, M: Machine> MessageHandler<P, M> {
    /// Steps on `aggregates` for what `route` makes an input of.
    pub fn new(
        context: &ServiceContext<P>,
        aggregates: &Arc<Aggregates<M, P>>,
        route: MessageRoute<M::Input>,
    ) -> Self {
        Self {
            context: context.clone(),
            aggregates: Arc::clone(aggregates),
            route,
            prepare: (),
        }
    }

    /// The same, with inputs to which `prepare` has added something.
    pub fn prepared_by<R: Prepare<M::Input>>(self, prepare: R) -> MessageHandler<P, M, R> {
        MessageHandler {
            context: self.context,
            aggregates: self.aggregates,
            route: self.route,
            prepare,
        }
    }
}

impl<P: Ports, M: Machine, R: Prepare<M::Input>> Handler for MessageHandler<P, M, R> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        self.take(delivery.read(&self.context).await?, delivery)
            .await
    }
}

impl<P: Ports, M: Machine, R: Prepare<M::Input>> MessageHandler<P, M, R> {
    /// Steps for a message that was read already.
    pub async fn take(&self, envelope: Envelope, delivery: &Delivery) -> Result<Ack, HandleError> {
        match (self.route)(&envelope)? {
            Routed::Ignored(reason) => {
                self.context.count_ignored(reason);
                Ok(Ack::Acknowledge)
            }
            Routed::Step { id, input } => {
                let known = M::fan_out_bytes(&input);
                delivery.spend(known)?;
                let input = self.prepare.prepare(&id, input).await?;
                // What rests on what was read is known only now.
                let found = M::fan_out_bytes(&input).saturating_sub(known);
                let handled = match delivery.spend(found) {
                    Ok(()) => {
                        let (context, aggregates) = (&self.context, &self.aggregates);
                        let id = id.clone();
                        step_of_message(context, aggregates, id, envelope, &input, delivery).await
                    }
                    Err(fault) => Err(fault.into()),
                };
                if let Ok(_) | Err(HandleError::Refused(_)) = handled {
                    self.prepare.decided(&id, &input).await?;
                }
                handled
            }
        }
    }
}

/// The case that an aggregate is: the request to open it belongs to no case yet.
fn case_named<M: Machine>(id: &Token) -> Option<CaseId> {
    let is_case = <M::Event as concord_events::AggregateEvent>::AGGREGATE == Aggregate::Case;
    is_case.then(|| CaseId::new(id.as_str()).ok()).flatten()
}

/// One step because of a message, in the trace of its case.
pub async fn step_of_message<P: Ports, M: Machine>(
    context: &ServiceContext<P>,
    aggregates: &Aggregates<M, P>,
    id: Token,
    envelope: Envelope,
    input: &M::Input,
    delivery: &Delivery,
) -> Result<Ack, HandleError> {
    let case = envelope.case_id.or_else(|| case_named::<M>(&id));
    let trace_context = TraceContext::of(context, delivery.trace.clone(), case.as_ref());
    let cause = context.of_message(envelope.message_id);
    let cause = cause.of_sender(envelope.from_agent);
    step(context, aggregates, id, cause, input, trace_context).await
}

/// Events of others become steps.
pub struct EventHandler<P, M: Machine> {
    context: ServiceContext<P>,
    aggregates: Arc<Aggregates<M, P>>,
    route: EventRoute<M::Input>,
}

impl<P: Ports, M: Machine> EventHandler<P, M> {
    /// Steps on `aggregates` for what `route` makes an input of.
    pub fn new(
        context: &ServiceContext<P>,
        aggregates: &Arc<Aggregates<M, P>>,
        route: EventRoute<M::Input>,
    ) -> Self {
        Self {
            context: context.clone(),
            aggregates: Arc::clone(aggregates),
            route,
        }
    }
}

/// The aggregate whose event a delivery is.
pub fn aggregate_of<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
) -> Result<(Aggregate, Token), HandleError> {
    match parse_subject(context.ports.subjects(), &delivery.subject)? {
        SystemSubject::Event { aggregate, id, .. } => Ok((aggregate, id)),
        _ => Err(HandleError::Refused(Fault::invalid(
            "",
            "The subject is not that of an event.",
            "See docs/subjects.md.",
        ))),
    }
}

impl<P: Ports, M: Machine> Handler for EventHandler<P, M> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (aggregate, _) = aggregate_of(&self.context, delivery)?;
        match (self.route)(aggregate, &delivery.payload, delivery.sequence)? {
            Routed::Ignored(reason) => Ok(self.ignore(reason)),
            routed => {
                let meta = EventMeta::decode(&delivery.payload)?;
                self.take(routed, &meta, delivery).await
            }
        }
    }
}

impl<P: Ports, M: Machine> EventHandler<P, M> {
    fn ignore(&self, reason: &'static str) -> Ack {
        self.context.count_ignored(reason);
        Ack::Acknowledge
    }

    /// Steps for an event that was read already.
    pub async fn take(
        &self,
        routed: Routed<M::Input>,
        meta: &EventMeta,
        delivery: &Delivery,
    ) -> Result<Ack, HandleError> {
        match routed {
            Routed::Ignored(reason) => Ok(self.ignore(reason)),
            Routed::Step { id, input } => {
                let cause = self.context.of_event(meta.event_id.clone());
                step(
                    &self.context,
                    &self.aggregates,
                    id,
                    cause,
                    &input,
                    delivery.trace.clone(),
                )
                .await
            }
        }
    }
}

/// One step with its span and its count.
pub async fn step<P: Ports, M: Machine>(
    context: &ServiceContext<P>,
    aggregates: &Aggregates<M, P>,
    id: Token,
    cause: Context,
    input: &M::Input,
    trace_context: impl Into<TraceContext>,
) -> Result<Ack, HandleError> {
    let aggregate = <M::Event as concord_events::AggregateEvent>::AGGREGATE.as_str();
    let span = tracing::info_span!(
        target: "concord", "step", otel.kind = "consumer", deliberation.aggregate = aggregate,
        deliberation.id = %id, deliberation.outcome = tracing::field::Empty
    );
    let onward = trace_context.into().begin(&span);
    let outcome = aggregates
        .step(&id, &cause, input, onward.as_ref())
        .instrument(span.clone())
        .await?;
    context.count_step::<M>(&outcome);
    let outcome = match outcome {
        Outcome::Rejected(fault) => return Err(HandleError::Refused(fault)),
        Outcome::Appended { event, .. } => event,
        Outcome::Ignored(reason) => reason.as_str(),
    };
    span.record("deliberation.outcome", outcome);
    span.in_scope(|| tracing::debug!(aggregate, id = %id, outcome, "Decided."));
    Ok(Ack::Acknowledge)
}

/// Own events become effects.
pub struct EffectHandler<P, M> {
    context: ServiceContext<P>,
    machine: std::marker::PhantomData<fn() -> M>,
}

impl<P: Ports, M: Machine> EffectHandler<P, M> {
    /// Publishes what follows from the events of `M`.
    pub fn new(context: &ServiceContext<P>) -> Self {
        Self {
            context: context.clone(),
            machine: std::marker::PhantomData,
        }
    }
}

impl<P: Ports, M: Machine> Handler for EffectHandler<P, M> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let record = StoredEvent::<M::Event>::decode(&delivery.payload, delivery.sequence)?;
        self.take(&record, delivery).await
    }
}

impl<P: Ports, M: Machine> EffectHandler<P, M> {
    /// Publishes what follows from an event that was read already.
    pub async fn take(
        &self,
        record: &StoredEvent<M::Event>,
        delivery: &Delivery,
    ) -> Result<Ack, HandleError> {
        let count =
            effects::deliver::<M>(&self.context.ports, record, delivery.trace.as_ref()).await?;
        self.context
            .metrics
            .effects
            .inc_by(u64::try_from(count).unwrap_or(0));
        if record.meta.earlier.is_empty()
            && let Some(case) = case_named::<M>(&record.meta.id)
        {
            telemetry::case_opened(&case);
        }
        Ok(Ack::Acknowledge)
    }
}
