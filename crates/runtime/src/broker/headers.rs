//! Headers that services write and read.

use async_nats::HeaderMap;
use concord_wire::header;

use crate::telemetry::trace::Trace;

/// Headers with a message's id and trace context.
pub(crate) fn headers(message_id: &str, trace: Option<&Trace>) -> HeaderMap {
    let mut headers = trace_headers(trace);
    headers.insert(header::MESSAGE_ID, message_id);
    headers
}

/// Headers with a trace context alone.
pub(crate) fn trace_headers(trace: Option<&Trace>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(trace) = trace {
        headers.insert(header::TRACEPARENT, trace.parent.as_str());
        if let Some(state) = &trace.state {
            headers.insert(header::TRACESTATE, state.as_str());
        }
    }
    headers
}

/// The trace context that a message brings, if it is one.
pub fn trace_of(headers: Option<&HeaderMap>) -> Option<Trace> {
    let headers = headers?;
    let value = |name| headers.get(name).map(async_nats::HeaderValue::as_str);
    Trace::brought(value(header::TRACEPARENT)?, value(header::TRACESTATE))
}

/// How many bytes headers take.
pub(crate) fn bytes_of(headers: &HeaderMap) -> usize {
    let each = headers.iter().map(|(name, values)| {
        let name: &str = name.as_ref();
        let values = values.iter().map(|value| name.len() + value.as_str().len());
        values.sum::<usize>()
    });
    each.sum()
}
