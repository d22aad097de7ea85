//! The debate facilitator: discussion rounds and votes. The debate machine on the broker.

use std::sync::Arc;

use concord_domain::debate::DebateMachine;
use concord_protocol::stream::ConsumerKind;
use concord_protocol::subject::Service;
use concord_runtime::Aggregates;
use concord_runtime::feed::{EffectFeed, FactFeed, MessageFeed};
use concord_runtime::nats_ledger::NatsLedger;
use concord_runtime::service::{Run, Shell};
use concord_runtime::settings::NoSettings;

pub mod route;

/// The service.
pub struct DebateFacilitator;

impl Run for DebateFacilitator {
    const SERVICE: Service = Service::DebateFacilitator;
    const ABOUT: &'static str = "Conducts discussion rounds and votes";
    type Own = NoSettings;

    async fn start(shell: Shell, _: NoSettings) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let ledger = NatsLedger::new(shell.broker.clone()).await?;
        let debates = Arc::new(Aggregates::<DebateMachine, _>::new(ledger.clone(), shell.work.cached_max));
        let messages = || MessageFeed::new(&shell, &debates, route::from_message);
        shell.consume(ConsumerKind::Inbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::UrgentInbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::Facts(Self::SERVICE), FactFeed::new(&shell, &debates, route::from_fact));
        shell.consume(ConsumerKind::Effects(Self::SERVICE), EffectFeed::<DebateMachine>::new(&shell, ledger));
        Ok(())
    }
}
