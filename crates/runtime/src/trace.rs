//! Trace context as it travels: two header values, whatever may be installed to record spans.

use concord_protocol::CaseId;
use concord_protocol::trace::traceparent_of_case;

/// W3C trace context of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`, if any.
    pub state: Option<String>,
}

impl Trace {
    /// The context of a case whose messages bring none.
    pub fn of_case(case: &CaseId) -> Self {
        Self { parent: traceparent_of_case(case), state: None }
    }
}
