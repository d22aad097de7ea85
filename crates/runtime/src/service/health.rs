//! Health for orchestrators: `/healthz` (the process lives), `/readyz` (broker reachable, consumers bound, lag bearable),
//! `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use concord_events::topology::ConsumerDefinition;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::context::metrics::Consumer;
use crate::service::ServiceRunner;

/// How often the broker is asked how much waits.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often it is asked while it does not answer: a service is ready as soon as its consumers are there.
const POLL_INTERVAL_DOWN: Duration = Duration::from_millis(200);

/// Whether a service can do its work, and if not, why.
#[derive(Debug, Clone, Serialize)]
pub struct Readiness {
    /// Whether it can.
    pub ready: bool,
    /// What stands in the way.
    pub reasons: Vec<String>,
    /// What is restricted while it can.
    pub notes: Vec<String>,
}

/// Serves until `stop`.
pub async fn serve(
    runner: ServiceRunner,
    listener: TcpListener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route(
            "/metrics",
            get(|State(runner): State<ServiceRunner>| async move { runner.metrics.text() }),
        )
        .with_state(runner);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn readyz(State(runner): State<ServiceRunner>) -> (StatusCode, String) {
    let readiness = runner.readiness();
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        serde_json::to_string(&readiness).unwrap_or_default() + "\n",
    )
}

/// Watches the broker and the lag of the service's consumers until `stop`.
pub async fn watch(
    runner: ServiceRunner,
    consumers: Arc<Vec<ConsumerDefinition>>,
    stop: CancellationToken,
) {
    loop {
        let mut up = runner.broker.is_connected();
        for definition in consumers.iter() {
            // One question without an answer is enough: each is waited for.
            up = up && poll(&runner, definition).await;
        }
        runner.metrics.broker_up.set(i64::from(up));
        tokio::select! {
            () = tokio::time::sleep(if up { POLL_INTERVAL } else { POLL_INTERVAL_DOWN }) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn poll(runner: &ServiceRunner, definition: &ConsumerDefinition) -> bool {
    let Ok(stream) = runner.broker.stream(definition.stream_kind).await else {
        return false;
    };
    match stream.consumer_info(&definition.name).await {
        Ok(info) => {
            let waiting = i64::try_from(info.num_pending).unwrap_or(i64::MAX);
            runner
                .metrics
                .lag
                .get_or_create(&Consumer {
                    consumer: definition.name.clone(),
                })
                .set(waiting);
            true
        }
        Err(error) => {
            tracing::debug!(consumer = %definition.name, %error, "The consumer could not be described.");
            false
        }
    }
}
