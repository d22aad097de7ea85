//! In which trace a message is handled: that of its case, whatever it brought.

use concord_wire::CaseId;
use tracing::Span;

use crate::context::ServiceContext;
use crate::telemetry;
use crate::telemetry::trace::Trace;

/// The trace contexts in which something is handled.
#[derive(Debug, Clone, Default)]
pub struct TraceContext {
    /// The one to go on with.
    trace: Option<Trace>,
    /// One of another trace, to link it with.
    link: Option<Trace>,
}

impl From<Option<Trace>> for TraceContext {
    fn from(trace: Option<Trace>) -> Self {
        Self { trace, link: None }
    }
}

impl TraceContext {
    /// The trace contexts in which a message is handled: `brought` is that of the message, `case` the case that it belongs to.
    pub fn of<P>(
        context: &ServiceContext<P>,
        brought: Option<Trace>,
        case: Option<&CaseId>,
    ) -> Self {
        let Some(case) = case else {
            return brought.into();
        };
        // Nobody records, here or so far: the context follows from the case id for whoever does. To write it for every
        // message is work for the broker too, which looks at what such headers say.
        if !context.records_spans && brought.is_none() {
            return None.into();
        }
        let (trace, link) = Trace::within_case(brought, case);
        Self {
            trace: Some(trace),
            link,
        }
    }

    /// Makes `span` go on with them; the context to pass on from it.
    pub fn begin(self, span: &Span) -> Option<Trace> {
        if let Some(trace) = &self.trace {
            telemetry::continue_trace(span, trace);
        }
        if let Some(link) = &self.link {
            telemetry::link(span, link);
        }
        telemetry::trace_of_span(span, self.trace)
    }
}
