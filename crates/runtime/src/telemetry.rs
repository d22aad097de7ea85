//! Logs, and traces over OTLP with the context carried in NATS headers: one case is one trace across all services. Log lines and metrics go
//! over OTLP, too, where the settings say so.

mod logs;
mod metrics;
pub mod otlp;
pub mod trace;
mod visible;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use concord_outbound::Authorities;
use concord_wire::CaseId;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanId, TraceContextExt, TraceId, TracerProvider};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::settings::{LogFormat, TelemetrySettings};
use crate::telemetry::trace::Trace;
use logs::Records;
use metrics::MetricsExporter;
use otlp::Collector;

/// How long the last spans may take at the end of a service, where the time to drain is not shorter.
const END_MAX: Duration = Duration::from_secs(1);

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter is not in the syntax of `RUST_LOG`.
    #[error(
        "telemetry.log {filter:?} is not a log filter such as \"info\" or \"concord_runtime=debug,warn\""
    )]
    Filter {
        /// The setting as it was given.
        filter: String,
        /// Why it cannot be used.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The collector cannot be called.
    #[error("telemetry.otlp_endpoint {endpoint:?} cannot be used")]
    Collector {
        /// The setting as it was given.
        endpoint: String,
        /// Why it cannot be used.
        source: otlp::Error,
    },
    /// The exporter could not be built.
    #[error("telemetry.otlp_endpoint {endpoint:?} cannot be used")]
    Exporter {
        /// The setting as it was given.
        endpoint: String,
        /// Why it cannot be used.
        source: opentelemetry_otlp::ExporterBuildError,
    },
}

/// Keeps telemetry going; sends what is left when it is dropped.
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
    lines: Option<SdkLoggerProvider>,
    metrics: Option<MetricsExporter>,
    end_max: Duration,
}

impl Telemetry {
    /// What sends the service's metrics, where the settings say so.
    pub(crate) fn take_metrics(&mut self) -> Option<MetricsExporter> {
        self.metrics.take()
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.take()
            && let Err(error) = provider.shutdown_with_timeout(self.end_max)
        {
            eprintln!("the last spans were not sent: {error}");
        }
        if let Some(lines) = self.lines.take()
            && let Err(error) = lines.shutdown_with_timeout(self.end_max)
        {
            eprintln!("the last log lines were not sent: {error}");
        }
    }
}

impl Error {
    /// Whether it is about a file, and not about what the settings themselves say.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(
            self,
            Self::Collector {
                source: otlp::Error::Tls(_),
                ..
            }
        )
    }
}

/// Refuses a filter of log lines and an address of a collector that are none, and a file of authorities that cannot be used.
pub(crate) fn check(settings: &TelemetrySettings) -> Result<(), Error> {
    filter(settings)?;
    let endpoint = &settings.otlp_endpoint;
    if endpoint.is_empty() {
        return Ok(());
    }
    let checked = otlp::origin_of(endpoint).and_then(|_| {
        let read = Authorities::read(settings.otlp_ca.as_deref());
        read.map(drop).map_err(otlp::Error::from)
    });
    checked.map_err(|source| Error::Collector {
        endpoint: endpoint.clone(),
        source,
    })
}

fn filter(settings: &TelemetrySettings) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(&settings.log).map_err(|source| Error::Filter {
        filter: settings.log.clone(),
        source,
    })
}

/// Sets up logs and, where an endpoint is given, traces. The last spans may take as long as all work under way, `drain`, but
/// no longer than a second. Call once in a process, inside the runtime.
pub fn start(
    service: &'static str,
    settings: &TelemetrySettings,
    drain: Duration,
) -> Result<Telemetry, Error> {
    let logs = match settings.log_format {
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines_of_text(std::io::stderr, ansi)
        }
        LogFormat::Json => lines_of_json(std::io::stderr),
    };
    let to_collector = !settings.otlp_endpoint.is_empty();
    let provider = match to_collector {
        true => Some(provider(service, settings)?),
        false => None,
    };
    let lines = match to_collector && settings.otlp_logs {
        true => Some(lines(service, settings)?),
        false => None,
    };
    let records = match &lines {
        Some(lines) => Some(Records::new(lines).with_filter(filter(settings)?)),
        None => None,
    };
    let end_max = END_MAX.min(drain);
    let metrics = match to_collector && settings.otlp_metrics_ms > 0 {
        true => Some(exporter(service, settings, end_max)?),
        false => None,
    };
    let traces = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("concord"))
            .with_filter(
                tracing_subscriber::filter::Targets::new()
                    .with_target("concord", tracing::Level::INFO),
            )
    });
    tracing_subscriber::registry()
        .with(logs.with_filter(filter(settings)?))
        .with(records)
        .with(traces)
        .init();
    Ok(Telemetry {
        provider,
        lines,
        metrics,
        end_max,
    })
}

/// What writes log lines as text.
fn lines_of_text<W>(writer: W, ansi: bool) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    layer.fmt_fields(visible::Fields).with_ansi(ansi).boxed()
}

/// What writes log lines as JSON.
fn lines_of_json<W>(writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().json();
    layer.with_writer(visible::Json(writer)).boxed()
}

/// What takes `what` (as the beginning of a sentence) to the collector, and the address of that kind.
fn collector(
    what: &'static str,
    kind: &str,
    settings: &TelemetrySettings,
) -> Result<(Collector, String), Error> {
    let endpoint = settings.otlp_endpoint.trim_end_matches('/');
    let collector = Collector::new(what, endpoint, settings.otlp_ca.as_deref());
    let collector = collector.map_err(|source| Error::Collector {
        endpoint: endpoint.to_owned(),
        source,
    })?;
    Ok((collector, format!("{endpoint}/v1/{kind}")))
}

fn resource(service: &str) -> Resource {
    let builder = Resource::builder();
    builder
        .with_service_name(format!("concord-{service}"))
        .build()
}

fn lines(service: &'static str, settings: &TelemetrySettings) -> Result<SdkLoggerProvider, Error> {
    let (client, address) = collector("Log lines", "logs", settings)?;
    let exporter = opentelemetry_otlp::LogExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(&address)
        .build();
    let exporter = exporter.map_err(|source| Error::Exporter {
        endpoint: address,
        source,
    })?;
    Ok(SdkLoggerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource(service))
        .build())
}

fn exporter(
    service: &'static str,
    settings: &TelemetrySettings,
    end_max: Duration,
) -> Result<MetricsExporter, Error> {
    let (collector, address) = collector("Metrics", "metrics", settings)?;
    Ok(MetricsExporter {
        collector: Arc::new(collector),
        address,
        service: format!("concord-{service}"),
        every: Duration::from_millis(settings.otlp_metrics_ms),
        end_max,
    })
}

fn provider(
    service: &'static str,
    settings: &TelemetrySettings,
) -> Result<SdkTracerProvider, Error> {
    let (client, address) = collector("Spans", "traces", settings)?;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(&address)
        .build();
    let exporter = exporter.map_err(|source| Error::Exporter {
        endpoint: address,
        source,
    })?;
    let builder = SdkTracerProvider::builder().with_id_generator(Ids(RandomIdGenerator::default()));
    Ok(builder
        .with_batch_exporter(exporter)
        .with_resource(resource(service))
        .build())
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
        GIVEN
            .get()
            .map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        GIVEN
            .get()
            .map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

/// Records the first span of a case, which everything else in it follows from: the one that [`Trace::of_case`] names.
pub fn case_opened(case: &CaseId) {
    let context = context_of(&Trace::of_case(case));
    let ids = context.span().span_context().clone();
    GIVEN.set(Some((ids.trace_id(), ids.span_id())));
    let span =
        tracing::info_span!(target: "concord", parent: None, "case", deliberation.id = %case);
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
        Some(parent) => Some(Trace {
            parent,
            state: write.state,
        }),
        None => incoming,
    }
}
