//! Facts: those of others become steps, the coordinator's own become effects.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::request::{RequestInput, RequestMachine};
use concord_events::Aggregate;
use concord_events::{AgentEvent, DeadlineElapsed, DeadlineEvent, EventMeta, StoredEvent};
use concord_runtime::delivery::handlers::{self, EffectHandler, EventHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory};

use crate::{exchange, route};

/// Facts of others.
pub(crate) struct Others {
    shell: ServiceContext,
    cases: EventHandler<CaseMachine, NatsEventStore>,
    requests: Arc<Aggregates<RequestMachine, NatsEventStore>>,
}

impl Others {
    pub(crate) fn new(
        shell: &ServiceContext,
        cases: &Arc<Aggregates<CaseMachine, NatsEventStore>>,
        requests: &Arc<Aggregates<RequestMachine, NatsEventStore>>,
    ) -> Self {
        let cases = EventHandler::new(shell, cases, route::from_fact);
        Self {
            shell: shell.clone(),
            cases,
            requests: Arc::clone(requests),
        }
    }

    /// A request has run out of time, unless an answer waits in a queue: what was stored in time counts.
    async fn request_elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let known = self.requests.load(&elapsed.id).await?;
        let unread = match &known.state.opened {
            Some(opened) if known.state.ended.is_none() => {
                exchange::unread(&self.shell, opened).await?
            }
            _ => None,
        };
        let context = ServiceContext::fact_context(EventMeta::decode(&delivery.payload)?.event_id);
        let (id, unread) = (elapsed.id.clone(), unread.map(Box::new));
        let input = RequestInput::Elapsed { elapsed, unread };
        handlers::step(
            &self.shell,
            &self.requests,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
    }
}

impl Handler for Others {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        if let (Aggregate::Deadline, _) = handlers::aggregate_of(&self.shell, delivery)? {
            let elapsed =
                StoredEvent::<DeadlineEvent>::decode(&delivery.payload, delivery.sequence)?
                    .event
                    .into_elapsed();
            if elapsed.aggregate == Aggregate::Request {
                return self.request_elapsed(delivery, elapsed).await;
            }
        }
        self.cases.handle(delivery).await
    }
}

/// The coordinator's own facts.
pub(crate) struct Own {
    shell: ServiceContext,
    directory: Arc<Directory>,
    cases: EffectHandler<CaseMachine>,
    agents: EffectHandler<AgentMachine>,
    requests: EffectHandler<RequestMachine>,
}

impl Own {
    pub(crate) fn new(
        shell: &ServiceContext,
        directory: &Arc<Directory>,
        ledger: NatsEventStore,
    ) -> Self {
        Self {
            shell: shell.clone(),
            directory: Arc::clone(directory),
            cases: EffectHandler::new(shell, ledger.clone()),
            agents: EffectHandler::new(shell, ledger.clone()),
            requests: EffectHandler::new(shell, ledger),
        }
    }
}

impl Handler for Own {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        match handlers::aggregate_of(&self.shell, delivery)? {
            (Aggregate::Agent, _) => {
                // Who registers is answered in the dialect that it has just declared.
                self.directory.apply(StoredEvent::<AgentEvent>::decode(
                    &delivery.payload,
                    delivery.sequence,
                )?);
                self.agents.handle(delivery).await
            }
            (Aggregate::Request, _) => self.requests.handle(delivery).await,
            _ => self.cases.handle(delivery).await,
        }
    }
}
