//! The conflict detector: turns the findings of a case into typed, ranked conflicts. The detection machine on the broker.

use std::sync::Arc;

use concord_domain::Versioned;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::detection::DetectionMachine;
use concord_events::EventMeta;
use concord_events::topology::ConsumerKind;
use concord_runtime::Aggregates;
use concord_runtime::delivery::handlers::{self, EffectHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::settings::NoSettings;
use concord_runtime::service::{Run, ServiceContext};
use concord_wire::CaseId;
use concord_wire::subject::Service;

pub mod route;

/// The service.
pub struct ConflictDetector;

impl Run for ConflictDetector {
    const SERVICE: Service = Service::ConflictDetector;
    const ABOUT: &'static str = "Turns the findings of a case into typed, ranked conflicts";
    type Own = NoSettings;

    async fn start(
        shell: ServiceContext,
        _: NoSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let ledger = NatsEventStore::new(shell.broker.clone()).await?;
        let detections = Arc::new(Aggregates::new(ledger.clone(), shell.work.cached_max));
        let closed = Closed {
            shell: shell.clone(),
            ledger: ledger.clone(),
            detections,
        };
        shell.consume(ConsumerKind::Events(Self::SERVICE), closed);
        shell.consume(
            ConsumerKind::Effects(Self::SERVICE),
            EffectHandler::<DetectionMachine>::new(&shell, ledger),
        );
        shell.consume_no_messages();
        Ok(())
    }
}

/// Looks for conflicts when the findings of a case have closed.
struct Closed {
    shell: ServiceContext,
    ledger: NatsEventStore,
    detections: Arc<Aggregates<DetectionMachine, NatsEventStore>>,
}

impl Handler for Closed {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (_, id) = handlers::aggregate_of(&self.shell, delivery)?;
        let case_id = CaseId::new(id.as_str()).map_err(HandleError::retry)?;
        let meta = EventMeta::decode(&delivery.payload)?;
        // The case as it was when its findings closed: the closing fact leads to all before it.
        let facts = self
            .ledger
            .history(&delivery.payload, delivery.sequence, 0)
            .await?;
        let mut case = Versioned::<CaseMachine>::default();
        facts.into_iter().for_each(|fact| case.apply(fact));
        let Some(input) = route::from_case(&case_id, &case.state) else {
            return Err(HandleError::retry(
                "the case of a closing fact could not be read",
            ));
        };
        let context = ServiceContext::fact_context(meta.event_id);
        handlers::step(
            &self.shell,
            &self.detections,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
    }
}
