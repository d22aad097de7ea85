//! Telling what stands among events and deadlines and is neither; what that is, is decided in
//! [`concord_events::non_event`].

use async_nats::HeaderMap;
use concord_events::non_event::{COPIED_FROM, NonEvent};

use crate::broker::raw_message::RawMessage;

/// What a message of a stream of events or deadlines is, if it is foreign, from the headers and the body it is stored with.
pub fn of_stored(headers: Option<&HeaderMap>, body: &[u8]) -> Option<NonEvent> {
    NonEvent::of(
        headers.is_some_and(|headers| headers.get(COPIED_FROM).is_some()),
        body,
    )
}

/// The same of a message as the stream's leader describes it.
pub(crate) fn of_raw_message(raw: &RawMessage) -> Option<NonEvent> {
    let headers = raw.headers().unwrap_or_default();
    let headers = String::from_utf8_lossy(&headers);
    let copied = headers.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(name, _)| name == COPIED_FROM)
    });
    NonEvent::of(copied, &raw.body().unwrap_or_default())
}
