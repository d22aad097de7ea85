//! Logs, and traces over OTLP with the context carried in NATS headers: one case is one trace across all services.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use concord_protocol::CaseId;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanId, TraceContextExt, TraceId, TracerProvider};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::consume::Chain;
use crate::settings::{LogFormat, TelemetrySettings};
use crate::trace::Trace;

/// How long one attempt to send spans may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter is not in the syntax of `RUST_LOG`.
    #[error("telemetry.log {filter:?} is not a log filter such as \"info\" or \"concord_runtime=debug,warn\"")]
    Filter {
        /// What was given.
        filter: String,
        /// Why.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The exporter could not be built.
    #[error("telemetry.otlp_endpoint {endpoint:?} cannot be used")]
    Exporter {
        /// What was given.
        endpoint: String,
        /// Why.
        source: opentelemetry_otlp::ExporterBuildError,
    },
}

/// Keeps telemetry going; sends what is left when it is dropped.
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.take()
            && let Err(error) = provider.shutdown()
        {
            eprintln!("the last spans were not sent: {error}");
        }
    }
}

/// Sets up logs and, where an endpoint is given, traces. Call once in a process, inside the runtime.
pub fn start(service: &'static str, settings: &TelemetrySettings) -> Result<Telemetry, Error> {
    let filter =
        EnvFilter::try_new(&settings.log).map_err(|source| Error::Filter { filter: settings.log.clone(), source })?;
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logs = match settings.log_format {
        LogFormat::Text => logs.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => logs.json().boxed(),
    };
    let provider = match settings.otlp_endpoint.as_str() {
        "" => None,
        endpoint => Some(provider(service, endpoint)?),
    };
    let traces = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("concord"))
            .with_filter(tracing_subscriber::filter::Targets::new().with_target("concord", tracing::Level::INFO))
    });
    tracing_subscriber::registry().with(logs.with_filter(filter)).with(traces).init();
    Ok(Telemetry { provider })
}

fn provider(service: &'static str, endpoint: &str) -> Result<SdkTracerProvider, Error> {
    let client = OnRuntime {
        client: HyperClient::with_default_connector(ATTEMPT_MAX, None),
        runtime: tokio::runtime::Handle::current(),
        fails: AtomicBool::new(false),
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .build()
        .map_err(|source| Error::Exporter { endpoint: endpoint.to_owned(), source })?;
    let resource = Resource::builder().with_service_name(format!("concord-{service}")).build();
    let builder = SdkTracerProvider::builder().with_id_generator(Ids(RandomIdGenerator::default()));
    Ok(builder.with_batch_exporter(exporter).with_resource(resource).build())
}

/// Sends on the service's runtime: the exporter works on a thread of its own, where hyper has no runtime.
#[derive(Debug)]
struct OnRuntime {
    client: HyperClient,
    runtime: tokio::runtime::Handle,
    /// Whether the last attempt failed.
    fails: AtomicBool,
}

impl OnRuntime {
    /// Says when the collector begins to fail and when it is back, and not for every attempt between.
    fn note(&self, collector: &str, sent: &Result<Response<Bytes>, HttpError>) {
        let why = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answers {}", response.status())),
            Err(error) => Some(Chain(&**error).to_string()),
        };
        let failed_before = self.fails.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(why) if !failed_before => tracing::warn!(
                %collector, %why,
                "Spans cannot be sent to the collector; those that it does not take are lost. Nothing else is affected."
            ),
            None if failed_before => tracing::info!(%collector, "Spans are being sent again."),
            _ => {}
        }
    }
}

type Sent<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for OnRuntime {
    // The trait is written with `async_trait`; this is what that stands for.
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sent<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let collector = request.uri().to_string();
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move {
            let sent = sent.await.map_err(HttpError::from).flatten();
            self.note(&collector, &sent);
            sent
        })
    }
}

thread_local! {
    /// The ids of the span that this thread is about to begin, where they are not to be random.
    static GIVEN: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// Random ids, but for the first span of a case.
#[derive(Debug)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        GIVEN.get().map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        GIVEN.get().map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

/// Records the first span of a case, which everything else in it follows from: the one that [`Trace::of_case`] names.
pub fn case_opened(case: &CaseId) {
    let context = context_of(&Trace::of_case(case));
    let ids = context.span().span_context().clone();
    GIVEN.set(Some((ids.trace_id(), ids.span_id())));
    let span = tracing::info_span!(target: "concord", parent: None, "case", deliberation.id = %case);
    // Asking for its context makes it begin, and so take its ids, here and now.
    let _ = span.context();
    GIVEN.set(None);
}

struct Read<'a>(&'a Trace);

impl Extractor for Read<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.0.parent),
            "tracestate" => self.0.state.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

#[derive(Default)]
struct Write {
    parent: Option<String>,
    state: Option<String>,
}

impl Injector for Write {
    fn set(&mut self, key: &str, value: String) {
        match key {
            "traceparent" => self.parent = Some(value),
            "tracestate" if !value.is_empty() => self.state = Some(value),
            _ => {}
        }
    }
}

/// Makes `span` a child of the context that a message brought.
pub fn continue_trace(span: &Span, trace: &Trace) {
    if !span.is_disabled() {
        // Without a tracer installed there is nothing to continue, and the header is passed on as it came.
        let _ = span.set_parent(context_of(trace));
    }
}

/// Links `span` with a context that it does not continue.
pub fn link(span: &Span, trace: &Trace) {
    span.add_link(context_of(trace).span().span_context().clone());
}

fn context_of(trace: &Trace) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Read(trace))
}

/// The context to pass on from `span`; what came in, where no spans are recorded.
pub fn trace_of_span(span: &Span, incoming: Option<Trace>) -> Option<Trace> {
    if span.is_disabled() {
        return incoming;
    }
    let mut write = Write::default();
    TraceContextPropagator::new().inject_context(&span.context(), &mut write);
    match write.parent {
        Some(parent) => Some(Trace { parent, state: write.state }),
        None => incoming,
    }
}
