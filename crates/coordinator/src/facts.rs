//! Facts: those of others become steps, the coordinator's own become effects.

use std::sync::Arc;

use concord_domain::agent::AgentMachine;
use concord_domain::case::CaseMachine;
use concord_domain::request::{RequestInput, RequestMachine};
use concord_events::Aggregate;
use concord_events::{AgentEvent, DeadlineElapsed, DeadlineEvent, EventMeta, StoredEvent};
use concord_runtime::delivery::{Delivery, Done, Handler, Problem};
use concord_runtime::handlers::{self, EffectFeed, FactFeed};
use concord_runtime::nats_event_store::NatsLedger;
use concord_runtime::service::Shell;
use concord_runtime::{Aggregates, Directory};

use crate::{exchange, route};

/// Facts of others.
pub(crate) struct Others {
    shell: Shell,
    cases: FactFeed<CaseMachine, NatsLedger>,
    requests: Arc<Aggregates<RequestMachine, NatsLedger>>,
}

impl Others {
    pub(crate) fn new(
        shell: &Shell,
        cases: &Arc<Aggregates<CaseMachine, NatsLedger>>,
        requests: &Arc<Aggregates<RequestMachine, NatsLedger>>,
    ) -> Self {
        let cases = FactFeed::new(shell, cases, route::from_fact);
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
    ) -> Result<Done, Problem> {
        let known = self.requests.load(&elapsed.id).await?;
        let unread = match &known.state.opened {
            Some(opened) if known.state.ended.is_none() => {
                exchange::unread(&self.shell, opened).await?
            }
            _ => None,
        };
        let context = Shell::fact_context(EventMeta::decode(&delivery.payload)?.event_id);
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
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
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
    shell: Shell,
    directory: Arc<Directory>,
    cases: EffectFeed<CaseMachine>,
    agents: EffectFeed<AgentMachine>,
    requests: EffectFeed<RequestMachine>,
}

impl Own {
    pub(crate) fn new(shell: &Shell, directory: &Arc<Directory>, ledger: NatsLedger) -> Self {
        Self {
            shell: shell.clone(),
            directory: Arc::clone(directory),
            cases: EffectFeed::new(shell, ledger.clone()),
            agents: EffectFeed::new(shell, ledger.clone()),
            requests: EffectFeed::new(shell, ledger),
        }
    }
}

impl Handler for Own {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
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
