//! Names of the NATS headers that Concord reads and writes.

/// Deduplication id; equal to the envelope's `message_id` or the event's `event_id`.
pub const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The optimistic lock: last sequence expected on the subject named by [`EXPECTED_LAST_SUBJECT`].
pub const EXPECTED_LAST_SUBJECT_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The wildcard subject the lock is taken on.
pub const EXPECTED_LAST_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// When the broker's scheduler publishes a stored message: `@at <RFC 3339>`.
pub const SCHEDULE: &str = "Nats-Schedule";
/// Where the broker's scheduler publishes it.
pub const SCHEDULE_TARGET: &str = "Nats-Schedule-Target";
/// W3C trace context, parent.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context, vendor state.
pub const TRACESTATE: &str = "tracestate";
