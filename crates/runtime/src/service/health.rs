//! Health for orchestrators: `/healthz` (the process lives, broker or not), `/readyz` (broker reachable, consumers bound, lag
//! bearable), `/metrics`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Info;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use concord_events::topology::{ConsumerDefinition, StreamKind};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::broker::{Unavailable, copies, room};
use crate::context::metrics::{Metrics, Node, Stream};
use crate::error_chain::ErrorChain;
use crate::service::ServiceRunner;

/// How often the broker is asked how much waits.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A consumer in which nothing seems to wait is asked about once in so many times.
const IN_TURN: usize = 8;
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

/// The service that is shown, as soon as there is one: before that the process looks for the broker. Cheap to clone.
#[derive(Clone, Default)]
pub struct Shown {
    service: Arc<OnceLock<ServiceRunner>>,
    waits: Arc<Mutex<Option<String>>>,
}

impl Shown {
    /// From now on this service is shown. There is one in a process.
    pub(crate) fn set(&self, service: ServiceRunner) {
        let _ = self.service.set(service);
    }

    /// Says what the process waits for, until there is a service.
    pub(crate) fn waits_for(&self, what: String) {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    fn metrics(&self) -> String {
        // Without a service everything is 0, `broker_up` too, by which an alert comes.
        let service = self.service.get();
        service.map_or_else(
            || Metrics::default().text(),
            |service| service.metrics.text(),
        )
    }

    fn readiness(&self) -> Readiness {
        if let Some(service) = self.service.get() {
            return service.readiness();
        }
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let what = waits.as_deref();
        Readiness {
            ready: false,
            reasons: vec![
                what.unwrap_or("there is no connection to the broker yet")
                    .to_owned(),
            ],
            notes: Vec::new(),
        }
    }
}

/// Serves until `stop`.
pub async fn serve(
    shown: Shown,
    listener: TcpListener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route(
            "/metrics",
            get(|State(shown): State<Shown>| async move { shown.metrics() }),
        )
        .with_state(shown);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn readyz(State(shown): State<Shown>) -> (StatusCode, String) {
    let readiness = shown.readiness();
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
///
/// Each delivery says how much waits behind it, so the broker is asked each time only about consumers in which something waited last, and
/// about the others in turn: a question is dear, and there are many consumers and replicas. What is stuck is delivered to nobody. One that
/// is not bound yet may not be there, which says nothing of the broker.
pub async fn watch(
    runner: ServiceRunner,
    consumers: Arc<Vec<ConsumerDefinition>>,
    stop: CancellationToken,
) {
    let (mut was_whole, mut turn) = (false, 0);
    loop {
        let mut up = runner.broker.is_connected();
        let mut whole = true;
        for (place, definition) in consumers.iter().enumerate() {
            if !runner.is_bound(&definition.name) {
                whole = false;
                continue;
            }
            let asked = !was_whole || place % IN_TURN == turn || waits(&runner, definition);
            // One question without an answer is enough: each is waited for.
            up = up && (!asked || poll(&runner, definition).await);
        }
        show_refusals(&runner);
        let misses_some = !runner.broker.refusals.missing().is_empty();
        if up && (turn == 0 || misses_some) {
            show_streams(&runner).await;
        }
        turn = (turn + 1) % IN_TURN;
        was_whole = up && whole;
        runner.metrics.broker_up.set(i64::from(up));
        tokio::select! {
            () = tokio::time::sleep(if up { POLL_INTERVAL } else { POLL_INTERVAL_DOWN }) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Shows which streams the broker does not store in.
fn show_refusals(runner: &ServiceRunner) {
    let refusing = runner.broker.refusals.now();
    for kind in StreamKind::ALL {
        let refuses = refusing.iter().any(|(stream, _)| *stream == kind);
        let stream = runner.broker.layout.stream_name(kind);
        let shown = runner
            .metrics
            .stream_refuses
            .get_or_create(&Stream { stream });
        shown.set(i64::from(refuses));
    }
}

/// Shows which streams there are, how full those are that have a limit, whoever has set it, and which brokers of a cluster have lost their
/// copies.
async fn show_streams(runner: &ServiceRunner) {
    let mut there = Vec::new();
    for kind in StreamKind::ALL {
        let stream = runner.broker.layout.stream_name(kind);
        match room::info(&runner.broker, kind).await {
            Ok(info) => {
                runner.broker.refusals.found(kind, info.is_some());
                show_fill(runner, stream, info.as_ref());
                there.extend(info);
            }
            Err(error) => undescribed(&stream, &error),
        }
    }
    let payloads = runner.broker.layout.payload_stream();
    match room::payloads(&runner.broker).await {
        Ok(info) => show_fill(runner, payloads, info.as_ref()),
        Err(error) => undescribed(&payloads, &error),
    }
    // A broker that has left the cluster is lost no more.
    runner.metrics.copies_lost.clear();
    for (node, copies) in copies::of(&there) {
        let shown = runner.metrics.copies_lost.get_or_create(&Node { node });
        shown.set(i64::try_from(copies.lost.len()).unwrap_or(i64::MAX));
    }
}

/// Shows how full a stream is; nothing of one without a limit, or that is not there.
fn show_fill(runner: &ServiceRunner, stream: String, info: Option<&Info>) {
    let (fills, stream) = (&runner.metrics.stream_fill, Stream { stream });
    match info.and_then(|info| room::fill(info).ratio()) {
        Some(ratio) => {
            fills.get_or_create(&stream).set(ratio);
        }
        None => {
            fills.remove(&stream);
        }
    }
}

fn undescribed(stream: &str, error: &Unavailable) {
    tracing::debug!(%stream, error = %ErrorChain(error), "The stream could not be described.");
}

fn waits(runner: &ServiceRunner, definition: &ConsumerDefinition) -> bool {
    runner.metrics.lag_of(&definition.name).get() > 0
}

async fn poll(runner: &ServiceRunner, definition: &ConsumerDefinition) -> bool {
    let Ok(stream) = runner.broker.stream(definition.stream_kind).await else {
        return false;
    };
    match stream.consumer_info(&definition.name).await {
        Ok(info) => {
            let waiting = i64::try_from(info.num_pending).unwrap_or(i64::MAX);
            runner.metrics.lag_of(&definition.name).set(waiting);
            runner.broker.refusals.found(definition.stream_kind, true);
            true
        }
        // The broker has answered, and says what is wrong.
        Err(error) if error.kind() == ConsumerInfoErrorKind::StreamNotFound => {
            runner.broker.refusals.found(definition.stream_kind, false);
            true
        }
        Err(error) => {
            tracing::debug!(consumer = %definition.name, %error, "The consumer could not be described.");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn get(address: std::net::SocketAddr, path: &str) -> String {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_process_without_a_broker_lives_and_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let shown = Shown::default();
        let serving = tokio::spawn(serve(shown.clone(), listener, stop.clone()));
        for (path, status, text) in [
            ("/healthz", " 200 ", "alive"),
            ("/readyz", " 503 ", "no connection to the broker yet"),
            ("/metrics", " 200 ", "\nconcord_broker_up 0\n"),
        ] {
            let answer = get(address, path).await;
            assert!(
                answer.lines().next().unwrap_or_default().contains(status),
                "{path}: {answer}"
            );
            assert!(answer.contains(text), "{path}: {answer}");
        }
        shown.waits_for("the streams could not be made: no room".to_owned());
        let answer = get(address, "/readyz").await;
        assert!(
            answer.contains("no room") && !answer.contains("no connection"),
            "{answer}"
        );
        stop.cancel();
        serving.await.unwrap().unwrap();
    }
}
