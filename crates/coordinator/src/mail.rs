//! Messages to the coordinator: what is about agents or requests, and all else, which is about cases.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_runtime::delivery::handlers::{self, MessageHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Routed, codec::dialect};

use crate::route::{exchange, register};

/// Gives each message to the machine it is for.
pub(crate) struct Mail {
    shell: ServiceContext,
    agents: Arc<Aggregates<AgentMachine, NatsEventStore>>,
    requests: Arc<Aggregates<RequestMachine, NatsEventStore>>,
    cases: MessageHandler<CaseMachine, NatsEventStore>,
}

impl Mail {
    pub(crate) fn new(
        shell: &ServiceContext,
        agents: &Arc<Aggregates<AgentMachine, NatsEventStore>>,
        requests: &Arc<Aggregates<RequestMachine, NatsEventStore>>,
        cases: MessageHandler<CaseMachine, NatsEventStore>,
    ) -> Self {
        Self {
            shell: shell.clone(),
            agents: Arc::clone(agents),
            requests: Arc::clone(requests),
            cases,
        }
    }
}

impl Handler for Mail {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let envelope = dialect::envelope(&self.shell, delivery).await?;
        if let Some((id, input)) = exchange::kept(&envelope, delivery.stored_at)? {
            return handlers::step_of_message(
                &self.shell,
                &self.requests,
                id,
                envelope,
                &input,
                delivery,
            )
            .await;
        }
        match register::from_message(&envelope)? {
            None => self.cases.take(envelope, delivery).await,
            Some(Routed::Ignored(reason)) => {
                self.shell.count_ignored(reason);
                Ok(Ack::Acknowledge)
            }
            Some(Routed::Step { id, input }) => {
                handlers::step_of_message(&self.shell, &self.agents, id, envelope, &input, delivery)
                    .await
            }
        }
    }
}
