//! The coordinator: opens cases, collects findings, decides. The case machine on the broker.

use std::sync::Arc;

use concord_domain::case::CaseMachine;
use concord_protocol::stream::ConsumerKind;
use concord_protocol::subject::Service;
use concord_runtime::Aggregates;
use concord_runtime::feed::{EffectFeed, FactFeed, MessageFeed};
use concord_runtime::nats_ledger::NatsLedger;
use concord_runtime::operate;
use concord_runtime::service::{Run, Shell};
use concord_runtime::settings::NoSettings;

mod cancel_case;
mod open_case;
pub mod route;

/// The service.
pub struct Coordinator;

impl Run for Coordinator {
    const SERVICE: Service = Service::Coordinator;
    const ABOUT: &'static str = "Opens cases, collects findings and decides";
    type Own = NoSettings;

    async fn start(shell: Shell, _: NoSettings) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let ledger = NatsLedger::new(shell.broker.clone()).await?;
        let cases = Arc::new(Aggregates::<CaseMachine, _>::new(ledger.clone(), shell.work.cached_max));
        let messages = || MessageFeed::new(&shell, &cases, route::from_message);
        shell.consume(ConsumerKind::Inbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::UrgentInbox(Self::SERVICE), messages());
        shell.consume(ConsumerKind::Facts(Self::SERVICE), FactFeed::new(&shell, &cases, route::from_fact));
        shell.consume(ConsumerKind::Effects(Self::SERVICE), EffectFeed::<CaseMachine>::new(&shell, ledger));
        shell.answer("open_case", open_case::verb(&shell, &cases));
        shell.answer("cancel_case", operate::verb(&shell, &cases, cancel_case::read));
        Ok(())
    }
}
