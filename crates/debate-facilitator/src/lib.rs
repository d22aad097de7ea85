//! The debate facilitator: discussion rounds, votes and the ladder. The machines of debates, of the queue of people, of
//! track records and of precedents on the broker.

use concord_domain::aggregates::debate::DebateMachine;
use concord_events::topology::ConsumerKind;
use concord_runtime::delivery::handlers::{EffectHandler, MessageHandler};
use concord_runtime::service::settings::NoSettings;
use concord_runtime::service::{Binder, Run, ServiceContext, ServiceRunner};
use concord_runtime::{Directory, Ports};
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
        mut shell: ServiceRunner,
        _: NoSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // Parties are asked in the dialects of their cards.
        Directory::follow(&shell).loaded().await;
        let context = shell.context().clone();
        bind(&context, &mut shell);
        Ok(())
    }
}

/// Binds the service's handlers to its consumers, and its verbs to its API.
pub fn bind<P: Ports>(context: &ServiceContext<P>, binder: &mut impl Binder) {
    const SERVICE: Service = Service::DebateFacilitator;
    let stores = Stores::new(context);
    let messages = || {
        MessageHandler::new(context, &stores.debates, route::from_message)
            .prepared_by(stores.clone())
    };
    binder.handle(ConsumerKind::Inbox(SERVICE), messages());
    binder.handle(ConsumerKind::UrgentInbox(SERVICE), messages());
    binder.handle(ConsumerKind::Events(SERVICE), Follow::new(context, &stores));
    binder.handle(
        ConsumerKind::Effects(SERVICE),
        EffectHandler::<P, DebateMachine>::new(context),
    );
    operate::answer_operators(context, &stores, binder);
}
