//! A collector as far as the services see one: OTLP over HTTP, in protobuf.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use concord_testkit::TestInstallation;
use futures::future::join_all;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A span that a service has sent.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// `service.name` of the sender.
    pub(crate) service: String,
    pub(crate) name: String,
    /// Ids in hexadecimal, as in `traceparent`.
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    /// Empty when it has none.
    pub(crate) parent_id: String,
    /// Trace and span of each link.
    pub(crate) links: Vec<(String, String)>,
    attributes: Vec<KeyValue>,
}

impl Span {
    fn new(service: &str, span: otlp::Span) -> Self {
        Self {
            service: service.to_owned(),
            name: span.name,
            trace_id: hex(&span.trace_id),
            span_id: hex(&span.span_id),
            parent_id: hex(&span.parent_span_id),
            links: span
                .links
                .iter()
                .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
                .collect(),
            attributes: span.attributes,
        }
    }

    /// An attribute that is a text; empty when there is none.
    pub(crate) fn attribute(&self, key: &str) -> &str {
        text(&self.attributes, key)
    }
}

/// A log line that a service has sent.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// `service.name` of the sender.
    pub(crate) service: String,
    pub(crate) severity: String,
    pub(crate) text: String,
    /// In hexadecimal; empty where it belongs to none.
    pub(crate) trace_id: String,
    attributes: Vec<KeyValue>,
}

impl Line {
    /// An attribute that is a text; empty when there is none.
    pub(crate) fn attribute(&self, key: &str) -> &str {
        text(&self.attributes, key)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => "",
    }
}

struct Received {
    spans: Mutex<Vec<Span>>,
    lines: Mutex<Vec<Line>>,
    /// Each with its sender.
    metrics: Mutex<Vec<(String, Metric)>>,
    /// The sender of each request, whatever was answered.
    requests: Mutex<Vec<String>>,
    status: AtomicU16,
}

/// A collector that listens on a free port until it is dropped.
pub(crate) struct Collector {
    pub(crate) address: String,
    received: Arc<Received>,
    serving: JoinHandle<()>,
}

impl Collector {
    /// Starts one that answers with this status.
    pub(crate) async fn start(status: StatusCode) -> Self {
        let received = Received {
            spans: Mutex::default(),
            lines: Mutex::default(),
            metrics: Mutex::default(),
            requests: Mutex::default(),
            status: AtomicU16::new(status.as_u16()),
        };
        let received = Arc::new(received);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let router = Router::new()
            .route("/v1/traces", post(receive))
            .route("/v1/logs", post(receive_logs))
            .route("/v1/metrics", post(receive_metrics))
            .with_state(Arc::clone(&received));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the collector serves")
        });
        Self {
            address,
            received,
            serving,
        }
    }

    /// The setting that makes a service send its spans here.
    pub(crate) fn setting(&self) -> String {
        setting(&self.address)
    }

    /// Answers with this status from now on.
    pub(crate) fn answer(&self, status: StatusCode) {
        self.received
            .status
            .store(status.as_u16(), Ordering::Relaxed);
    }

    /// The spans of the requests that were granted.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received
            .spans
            .lock()
            .expect("no test panics here")
            .clone()
    }

    /// The log lines that were sent.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let lines = self.received.lines.lock();
        lines.expect("no test panics here").clone()
    }

    /// What a service has sent of a metric, the latest last.
    pub(crate) fn metric(&self, service: &str, name: &str) -> Vec<Metric> {
        let metrics = self.received.metrics.lock().expect("no test panics here");
        let of_it = metrics
            .iter()
            .filter(|(sender, metric)| sender == service && metric.name == name);
        of_it.map(|(_, metric)| metric.clone()).collect()
    }

    /// How many requests a service has made, granted or not.
    pub(crate) fn requests_of(&self, service: &str) -> usize {
        let requests = self.received.requests.lock().expect("no test panics here");
        requests.iter().filter(|sender| *sender == service).count()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The setting that makes a service send its spans to an address.
pub(crate) fn setting(address: &str) -> String {
    format!("telemetry.otlp_endpoint=http://{address}")
}

/// Ends all services, each by itself and in time; a service sends its last spans before it ends.
pub(crate) async fn end(installation: &TestInstallation) {
    let ended = installation.processes().map(async |(service, replica)| {
        let in_time = installation
            .terminate(service, replica)
            .await
            .expect("a process of the plan");
        assert!(in_time, "{service} ends by itself");
    });
    join_all(ended).await;
}

async fn receive(State(received): State<Arc<Received>>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    let status = StatusCode::from_u16(received.status.load(Ordering::Relaxed)).expect("a status");
    for resource_spans in request.resource_spans {
        let attributes = resource_spans
            .resource
            .map(|resource| resource.attributes)
            .unwrap_or_default();
        let service = text(&attributes, "service.name");
        received
            .requests
            .lock()
            .expect("no test panics here")
            .push(service.to_owned());
        if status.is_success() {
            let spans = resource_spans
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            let spans = spans.map(|span| Span::new(service, span));
            received
                .spans
                .lock()
                .expect("no test panics here")
                .extend(spans);
        }
    }
    status
}

async fn receive_logs(State(received): State<Arc<Received>>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportLogsServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    for resource in request.resource_logs {
        let attributes = resource.resource.unwrap_or_default().attributes;
        let service = text(&attributes, "service.name");
        let records = resource
            .scope_logs
            .into_iter()
            .flat_map(|scope| scope.log_records);
        let lines = records.map(|record| Line {
            service: service.to_owned(),
            severity: record.severity_text,
            text: match record.body.and_then(|body| body.value) {
                Some(Value::StringValue(text)) => text,
                _ => String::new(),
            },
            trace_id: hex(&record.trace_id),
            attributes: record.attributes,
        });
        let mut all = received.lines.lock().expect("no test panics here");
        all.extend(lines);
    }
    StatusCode::OK
}

async fn receive_metrics(State(received): State<Arc<Received>>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportMetricsServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    for resource in request.resource_metrics {
        let attributes = resource.resource.unwrap_or_default().attributes;
        let service = text(&attributes, "service.name");
        let metrics = resource
            .scope_metrics
            .into_iter()
            .flat_map(|scope| scope.metrics);
        let mut all = received.metrics.lock().expect("no test panics here");
        all.extend(metrics.map(|metric| (service.to_owned(), metric)));
    }
    StatusCode::OK
}
