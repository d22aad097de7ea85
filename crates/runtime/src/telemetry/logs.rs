//! Log lines as OTLP records, beside the lines themselves: the same lines, with the trace that they belong to.

use std::fmt::{Debug, Write as _};

use opentelemetry::logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity};
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Gives each log line to the logger of a provider.
pub(super) struct Records(SdkLogger);

impl Records {
    pub(super) fn new(provider: &SdkLoggerProvider) -> Self {
        Self(provider.logger("concord"))
    }
}

impl<S: Subscriber> Layer<S> for Records {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = self.0.create_log_record();
        record.set_target(metadata.target());
        record.set_timestamp(std::time::SystemTime::now());
        let (number, text) = severity(*metadata.level());
        record.set_severity_number(number);
        record.set_severity_text(text);
        let mut fields = Fields {
            record: &mut record,
            message: String::new(),
        };
        event.record(&mut fields);
        let message = fields.message;
        record.set_body(message.into());
        // The span that is entered gives the record its trace.
        self.0.emit(record);
    }
}

fn severity(level: Level) -> (Severity, &'static str) {
    match level {
        Level::ERROR => (Severity::Error, "ERROR"),
        Level::WARN => (Severity::Warn, "WARN"),
        Level::INFO => (Severity::Info, "INFO"),
        Level::DEBUG => (Severity::Debug, "DEBUG"),
        Level::TRACE => (Severity::Trace, "TRACE"),
    }
}

/// The fields of a line: the message is its body, every other an attribute.
struct Fields<'a, R> {
    record: &'a mut R,
    message: String,
}

impl<R: LogRecord> Fields<'_, R> {
    fn set(&mut self, field: &Field, value: impl Into<AnyValue>) {
        self.record.add_attribute(field.name(), value);
    }
}

impl<R: LogRecord> Visit for Fields<'_, R> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // A text takes whatever is written.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.set(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.set(field, value.to_owned());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.set(field, value),
            Err(_) => self.set(field, value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }
}
