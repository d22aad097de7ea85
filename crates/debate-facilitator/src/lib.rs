//! The debate facilitator: discussion rounds, votes and the ladder. The machines of debates, of the queue of people, of
//! track records and of precedents on the broker.

use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::track_record::TrackRecordMachine;
use concord_events::Aggregate;
use concord_events::topology::ConsumerKind;
use concord_runtime::delivery::as_asked::as_asked;
use concord_runtime::delivery::handlers::{self, EffectHandler, MessageHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::{Binder, Run, ServiceContext, ServiceRunner};
use concord_runtime::{Directory, Ports};
use concord_wire::subject::Service;

mod attribution;
mod brief_sources;
pub mod cancelled;
mod follow_ups;
mod operator_verbs;
pub mod route;
mod settings;
mod stores;
mod verdicts;

use attribution::attributed;
pub use attribution::names_no_question;
use follow_ups::FollowUpHandler;
pub use settings::{FacilitatorSettings, QuotaSettings};

use stores::Stores;

const SERVICE: Service = Service::DebateFacilitator;

/// The service.
pub struct DebateFacilitator;

impl Run for DebateFacilitator {
    const SERVICE: Service = SERVICE;
    const ABOUT: &'static str = "Conducts discussions, votes, mediation and the queue of people";
    type Own = FacilitatorSettings;

    async fn start(
        mut runner: ServiceRunner,
        settings: FacilitatorSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // Parties are asked in the dialects of their cards.
        Directory::follow(&runner).loaded().await;
        let service = runner.context().clone();
        bind(&service, &settings.quota, &mut runner);
        Ok(())
    }
}

/// Binds the service's handlers to its consumers, and its verbs to its API.
pub fn bind<P: Ports>(
    service: &ServiceContext<P>,
    quota: &QuotaSettings,
    binder: &mut impl Binder,
) {
    let stores = Stores::new(service);
    let messages = || Inbox {
        service: service.clone(),
        stores: stores.clone(),
        debates: MessageHandler::new(service, &stores.debates, route::from_message)
            .prepared_by(stores.clone()),
    };
    binder.handle(ConsumerKind::Inbox(SERVICE), messages());
    binder.handle(ConsumerKind::UrgentInbox(SERVICE), messages());
    binder.handle(
        ConsumerKind::Events(SERVICE),
        FollowUpHandler::new(service, &stores, quota),
    );
    binder.handle(
        ConsumerKind::Effects(SERVICE),
        Effects {
            service: service.clone(),
            stores: stores.clone(),
            debates: EffectHandler::new(service),
            records: EffectHandler::new(service),
        },
    );
    operator_verbs::bind(service, &stores, binder);
}

/// Messages to the facilitator. A response to a question of a debate is an answer in it.
struct Inbox<P> {
    service: ServiceContext<P>,
    stores: Stores<P>,
    debates: MessageHandler<P, DebateMachine, Stores<P>>,
}

impl<P: Ports> Handler for Inbox<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let message = delivery.read(&self.service).await?;
        let message = as_asked(&self.service.ports, SERVICE, message).await?;
        let message = attributed(&self.stores, message).await?;
        self.debates.take(message, delivery).await
    }
}

/// Publishes what follows from the facilitator's own events. A debate whose case was cancelled before it was opened ends.
struct Effects<P> {
    service: ServiceContext<P>,
    stores: Stores<P>,
    debates: EffectHandler<P, DebateMachine>,
    records: EffectHandler<P, TrackRecordMachine>,
}

impl<P: Ports> Handler for Effects<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        match handlers::aggregate_of(&self.service, delivery)? {
            (Aggregate::TrackRecord, _) => self.records.handle(delivery).await,
            _ => {
                let done = self.debates.handle(delivery).await?;
                cancelled::end_if_cancelled(&self.service, &self.stores, delivery).await?;
                Ok(done)
            }
        }
    }
}
