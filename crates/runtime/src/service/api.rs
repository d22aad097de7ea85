//! The service's API as a NATS micro service: `nats micro ls` finds it, `concord doctor` asks it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use async_nats::service::{self, ServiceExt};
use bytes::Bytes;
use concord_wire::payload::ErrorReport;
use concord_wire::{ErrorCode, Fault};
use futures::StreamExt;

use crate::service::ServiceRunner;

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = Result<Bytes, Fault>> + Send>>;
/// What answers a verb.
pub type Verb = Arc<dyn Fn(Bytes) -> Answer + Send + Sync>;

/// Keeps the service registered; its endpoints end when it is dropped.
pub(crate) struct Registration {
    _service: service::Service,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Registers the service with `status` and the verbs it has added.
pub(crate) async fn register(
    runner: &ServiceRunner,
    http: Option<&str>,
) -> Result<Registration, AnyError> {
    let metadata = HashMap::from([
        ("pid".to_owned(), std::process::id().to_string()),
        ("http".to_owned(), http.unwrap_or("").to_owned()),
    ]);
    let service = runner
        .broker
        .client
        .service_builder()
        .description(format!("Concord's {}", runner.service))
        .metadata(metadata)
        .start(
            format!("concord-{}", runner.service),
            env!("CARGO_PKG_VERSION"),
        )
        .await?;
    let group = service.group(runner.broker.api_root(runner.service));
    let status = runner.clone();
    let status: Verb = Arc::new(move |_| {
        let readiness = status.readiness();
        Box::pin(async move { answer(&readiness) })
    });
    for (verb, handler) in runner.take_verbs().into_iter().chain([("status", status)]) {
        let mut endpoint = group.endpoint(verb).await?;
        let stop = runner.stop.clone();
        runner.spawn(async move {
            loop {
                let request = tokio::select! {
                    request = endpoint.next() => request,
                    () = stop.cancelled() => None,
                };
                let Some(request) = request else { return };
                let handler = Arc::clone(&handler);
                tokio::spawn(async move { respond(&handler, request).await });
            }
        });
    }
    Ok(Registration { _service: service })
}

async fn respond(handler: &Verb, request: service::Request) {
    let result = handler(request.message.payload.clone())
        .await
        .map_err(|fault| service::error::Error {
            status: error_body(&fault),
            code: status_code(fault.code),
        });
    if let Err(error) = request.respond(result).await {
        tracing::warn!(%error, "An answer could not be sent.");
    }
}

/// An answer as JSON.
pub fn answer(value: &impl serde::Serialize) -> Result<Bytes, Fault> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| {
        Fault::new(
            ErrorCode::InternalError,
            "",
            format!("The answer cannot be written: {error}."),
            "Report this.",
        )
    })
}

/// The fault as a header value: the JSON of an error payload, on one line.
fn error_body(fault: &Fault) -> String {
    serde_json::to_string(&ErrorReport::from(fault)).unwrap_or_else(|_| fault.to_string())
}

fn status_code(code: ErrorCode) -> usize {
    match code {
        ErrorCode::InvalidRequest => 400,
        ErrorCode::Unauthorized => 403,
        ErrorCode::CapacityExceeded => 429,
        ErrorCode::InternalError => 500,
        ErrorCode::AgentUnavailable => 503,
        ErrorCode::Timeout => 504,
    }
}
