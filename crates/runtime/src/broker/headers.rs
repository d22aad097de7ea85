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

/// The trace context that a message brings.
pub fn trace_of(headers: Option<&HeaderMap>) -> Option<Trace> {
    let headers = headers?;
    let parent = headers.get(header::TRACEPARENT)?.as_str().to_owned();
    Some(Trace {
        parent,
        state: headers
            .get(header::TRACESTATE)
            .map(|state| state.as_str().to_owned()),
    })
}
