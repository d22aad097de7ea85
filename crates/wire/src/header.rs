//! Names of the NATS headers that Concord reads and writes.

/// Declares header names once: a constant each, and all of them with their meaning for the generated reference.
#[macro_export]
macro_rules! headers {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: &str = $text;)+

        /// Every header of this module with its meaning, for the generated reference.
        pub const ALL: &[(&str, &str)] = &[$(($text, concat!($($doc),+).trim_ascii())),+];
    };
}

headers! {
    /// Deduplication id; the event's `event_id`, or the `message_id` of what a service says. Of what agents say it is one that nobody can foresee, or absent.
    MESSAGE_ID = "Nats-Msg-Id";
    /// The optimistic lock: the last sequence expected on the subject that the next header names.
    EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence";
    /// The wildcard subject the lock is taken on.
    EXPECTED_LAST_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject";
    /// When the broker's scheduler publishes a stored message: `@at <RFC 3339>`.
    SCHEDULE = "Nats-Schedule";
    /// Where the broker's scheduler publishes it.
    SCHEDULE_TARGET = "Nats-Schedule-Target";
    /// How long the published message then stays in the stream.
    SCHEDULE_TTL = "Nats-Schedule-TTL";
    /// The dialect in which the message is written; guessed from its shape when absent.
    DIALECT = "Concord-Dialect";
    /// How the body is compressed: `gzip` or `zstd`; not at all when absent.
    CONTENT_ENCODING = "Content-Encoding";
    /// W3C trace context, parent.
    TRACEPARENT = "traceparent";
    /// W3C trace context, vendor state.
    TRACESTATE = "tracestate";
}
