//! The conflict detector: turns the findings of a case into typed, ranked conflicts. The detection machine on the broker.

use std::sync::Arc;

use concord_domain::Versioned;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::detection::{DetectionInput, DetectionMachine};
use concord_embedding::Embedder;
use concord_events::EventMeta;
use concord_events::topology::ConsumerKind;
use concord_runtime::delivery::handlers::{self, EffectHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::{Binder, Run, ServiceContext, ServiceRunner};
use concord_runtime::{Aggregates, Ports, Since};
use concord_wire::CaseId;
use concord_wire::subject::Service;

mod names;

pub use names::{DetectorSettings, NameSettings};

/// The service.
pub struct ConflictDetector;

impl Run for ConflictDetector {
    const SERVICE: Service = Service::ConflictDetector;
    const ABOUT: &'static str = "Turns the findings of a case into typed, ranked conflicts";
    type Own = DetectorSettings;

    fn check_files(own: &DetectorSettings) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        names::open(&own.names)?;
        Ok(())
    }

    async fn start(
        mut runner: ServiceRunner,
        settings: DetectorSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let service = runner.context().clone();
        let model = names::open(&settings.names)?;
        if let Some(dir) = settings.names.model_dir.filter(|_| model.is_some()) {
            tracing::info!(model = %dir.display(), "Names are compared by a model where a policy asks for it.");
        }
        bind(&service, model, &mut runner);
        Ok(())
    }
}

/// Binds the service's handlers to its consumers. Names are compared by the model where there is one.
pub fn bind<P: Ports>(
    service: &ServiceContext<P>,
    model: Option<Arc<Embedder>>,
    binder: &mut impl Binder,
) {
    let detections = Arc::new(Aggregates::new(service.ports.clone(), &service.cache));
    let closed = FindingsClosed {
        service: service.clone(),
        detections,
        model,
    };
    binder.handle(ConsumerKind::Events(Service::ConflictDetector), closed);
    binder.handle(
        ConsumerKind::Effects(Service::ConflictDetector),
        EffectHandler::<P, DetectionMachine>::new(service),
    );
    binder.handle_no_messages(service);
}

/// Looks for conflicts when the findings of a case have closed.
struct FindingsClosed<P> {
    service: ServiceContext<P>,
    detections: Arc<Aggregates<DetectionMachine, P>>,
    model: Option<Arc<Embedder>>,
}

impl<P: Ports> Handler for FindingsClosed<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (_, id) = handlers::aggregate_of(&self.service, delivery)?;
        let case_id = CaseId::new(id.as_str()).map_err(HandleError::retry)?;
        let meta = EventMeta::decode(&delivery.payload)?;
        // The case as it was when its findings closed: the closing event leads to all before it.
        let events = self
            .service
            .ports
            .history(&delivery.payload, delivery.sequence, Since::FIRST)
            .await?;
        let mut case = Versioned::<CaseMachine>::default();
        events.into_iter().for_each(|event| case.apply(event));
        let Some(input) = DetectionInput::of_case(&case_id, &case.state) else {
            return Err(HandleError::retry(
                "the case of a closing event could not be read",
            ));
        };
        let input = names::scored(input, self.model.as_ref()).await;
        let context = self.service.of_event(meta.event_id);
        handlers::step(
            &self.service,
            &self.detections,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
    }
}
