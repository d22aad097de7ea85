//! Telling what stands among events and deadlines and is neither; what that is, is decided in
//! [`concord_events::non_event`].

use async_nats::HeaderMap;
use concord_events::non_event::{COPIED_FROM, NonEvent};

use crate::broker::raw_message::RawMessage;

/// With this header the broker says how many bytes the body has, to a reader that has asked for headers alone.
pub const BODY_SIZE: &str = "Nats-Msg-Size";

/// What a message of a stream of events or deadlines is, if it is foreign, from the headers and the body it is stored with.
pub fn of_stored(headers: Option<&HeaderMap>, body: &[u8]) -> Option<NonEvent> {
    let copied = headers.is_some_and(|headers| headers.get(COPIED_FROM).is_some());
    let size = headers.and_then(|headers| headers.get(BODY_SIZE));
    if size.is_some_and(|size| size.as_str() != "0") {
        // The body is not empty: it was not asked for, and says nothing here.
        return copied.then_some(NonEvent::Copy);
    }
    NonEvent::of(copied, body)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_was_not_asked_for_is_not_an_empty_one() {
        let of = |size: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(size) = size {
                headers.insert(BODY_SIZE, size);
            }
            of_stored(Some(&headers), b"")
        };
        assert_eq!(of(Some("812")), None);
        assert_eq!(of(Some("0")), Some(NonEvent::Acknowledgement));
        assert_eq!(of(None), Some(NonEvent::Acknowledgement));
    }
}
