//! The debate facilitator: discussion rounds, votes and the ladder. The machines of debates, of the queue of people, of
//! track records and of precedents on the broker.

use concord_domain::aggregates::debate::DebateMachine;
use concord_events::topology::ConsumerKind;
use concord_runtime::Directory;
use concord_runtime::delivery::handlers::{EffectHandler, MessageHandler};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::settings::NoSettings;
use concord_runtime::service::{Run, ServiceContext};
use concord_wire::subject::Service;

mod follow;
mod operate;
pub mod route;
mod stores;
mod verdicts;

use follow::Follow;
use stores::Stores;

/// The service.
pub struct DebateFacilitator;

impl Run for DebateFacilitator {
    const SERVICE: Service = Service::DebateFacilitator;
    const ABOUT: &'static str = "Conducts discussions, votes, mediation and the queue of people";
    type Own = NoSettings;

    async fn start(
        shell: ServiceContext,
        _: NoSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let ledger = NatsEventStore::new(shell.broker.clone()).await?;
        let stores = Stores::new(&shell, &ledger);
        // Parties are asked in the dialects of their cards.
        Directory::follow(&shell).loaded().await;
        let messages = || {
            MessageHandler::new(&shell, &stores.debates, route::from_message)
                .prepared_by(stores.clone())
        };
        shell.consume(ConsumerKind::Inbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::UrgentInbox(Self::SERVICE), messages());
        shell.consume(
            ConsumerKind::Events(Self::SERVICE),
            Follow::new(&shell, &stores),
        );
        shell.consume(
            ConsumerKind::Effects(Self::SERVICE),
            EffectHandler::<DebateMachine>::new(&shell, ledger),
        );
        operate::answer_operators(&shell, &stores);
        Ok(())
    }
}
