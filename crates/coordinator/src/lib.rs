//! The coordinator: opens cases, collects findings, decides; knows who is registered, and ends every request between
//! agents. The machines of cases, agents and requests on the broker.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_events::topology::ConsumerKind;
use concord_runtime::Aggregates;
use concord_runtime::Directory;
use concord_runtime::delivery::handlers::MessageHandler;
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::operator_api;
use concord_runtime::service::settings::NoSettings;
use concord_runtime::service::{Run, ServiceContext};
use concord_wire::subject::Service;

mod cancel_case;
mod exchange;
mod facts;
mod liveness;
mod mail;
mod open_case;
mod register;
pub mod route;

/// The service.
pub struct Coordinator;

impl Run for Coordinator {
    const SERVICE: Service = Service::Coordinator;
    const ABOUT: &'static str = "Opens cases, collects findings and decides; keeps the register of agents and ends their requests";
    type Own = NoSettings;

    async fn start(
        shell: ServiceContext,
        _: NoSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let ledger = NatsEventStore::new(shell.broker.clone()).await?;
        let cases = Arc::new(Aggregates::<CaseMachine, _>::new(
            ledger.clone(),
            shell.work.cached_max,
        ));
        let agents = Arc::new(Aggregates::<AgentMachine, _>::new(
            ledger.clone(),
            shell.work.cached_max,
        ));
        let requests = Arc::new(Aggregates::<RequestMachine, _>::new(
            ledger.clone(),
            shell.work.cached_max,
        ));
        let directory = Directory::follow(&shell);
        directory.loaded().await;
        let messages = || {
            mail::Mail::new(
                &shell,
                &agents,
                &requests,
                MessageHandler::new(&shell, &cases, route::from_message),
            )
        };
        shell.consume(ConsumerKind::Inbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::UrgentInbox(Self::SERVICE), messages());
        shell.consume(
            ConsumerKind::Events(Self::SERVICE),
            facts::Others::new(&shell, &cases, &requests),
        );
        shell.consume(
            ConsumerKind::Effects(Self::SERVICE),
            facts::Own::new(&shell, &directory, ledger),
        );
        let exchange = exchange::Exchange::new(&shell, &requests, &directory);
        shell.consume(ConsumerKind::Exchange, exchange);
        let beats = liveness::Liveness::start(&shell, &agents, &directory).await?;
        shell.answer("agents", liveness::verb(&directory, &beats));
        shell.answer(
            "register_agent",
            operator_api::verb(&shell, &agents, register::read_card),
        );
        shell.answer(
            "deregister_agent",
            operator_api::verb(&shell, &agents, register::read_departure),
        );
        shell.answer("open_case", open_case::verb(&shell, &cases));
        shell.answer(
            "cancel_case",
            operator_api::verb(&shell, &cases, cancel_case::read),
        );
        Ok(())
    }
}
