//! Keeping what could not be processed: the original, byte for byte, or where it is, and why.
//!
//! An original of more than a few kilobytes that stays in a stream of messages is not copied: its letter is empty and says where it is.
//! Whoever sends much that is refused would have all of it read and written once more, everybody else would wait meanwhile, and the copies
//! would fill the room that is kept for letters.

use concord_events::dead_letter::{DeadReason, header};
use concord_events::subject::SystemSubject;
use concord_events::topology::{Layout, StreamKind};
use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::header as wire;
use concord_wire::{ErrorCode, Fault, Timestamp};

use crate::broker::headers;
use crate::context::ServiceContext;
use crate::delivery::Delivery;
use crate::delivery::reject;
use crate::event_store::Error;
use crate::ports::{Headers, Ports};

/// The largest original, in bytes, that is copied into its letter although it stays in a stream of messages. Most of what agents say has less.
pub const COPIED_BYTES_MAX: usize = 4 << 10;

/// What becomes of the original of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// It stays where it is stored, for as long as its stream keeps it.
    Stays,
    /// It is deleted.
    Goes,
}

/// Keeps a refused delivery.
pub async fn keep<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    fault: &Fault,
    reason: DeadReason,
    original: Original,
) -> Result<(), Error> {
    let subject = context.ports.subjects().build(&SystemSubject::DeadLetter {
        service: context.service,
        reason: reason.token(),
    });
    // Keeping it again, after a crash before the acknowledgement, changes nothing.
    let id = format!(
        "dead-{}-{}-{}",
        delivery.consumer, delivery.stream, delivery.sequence
    );
    let now = context.ports.now();
    let mut headers = describe(headers(&id, delivery.trace.as_ref()), delivery, fault, now);
    let bytes = delivery.payload.len();
    // The broker may leave no room for it all the same.
    let copies = is_copied(context.ports.layout(), &delivery.stream, bytes, original)
        && context.ports.has_room_for(bytes);
    if !copies {
        let place = match original {
            Original::Stays => format!("is in {} at {}", delivery.stream, delivery.sequence),
            Original::Goes => "was too large to be kept".to_owned(),
        };
        let message = format!("{} The original {place}.", fault.message);
        headers.insert(header::ERROR, one_line(&message));
        headers.insert(header::BYTES, bytes.to_string());
    }
    let body = copies.then(|| delivery.payload.clone());
    let kept = context
        .ports
        .keep(subject, headers, body.unwrap_or_default());
    kept.await
}

/// Whether a letter has its original in it: where that is small, or its stream does not keep it for as long as letters are kept.
fn is_copied(layout: &Layout, stream: &str, bytes: usize, original: Original) -> bool {
    let mut as_long = [StreamKind::Messages, StreamKind::Urgent].into_iter();
    if !as_long.any(|kind| layout.stream_name(kind) == stream) {
        return true;
    }
    match original {
        Original::Stays => bytes <= COPIED_BYTES_MAX,
        Original::Goes => bytes <= ENVELOPE_BYTES_MAX,
    }
}

/// Keeps a delivery that failed again and again or for good, and tells its sender.
pub async fn keep_failed<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    why: &str,
    reason: DeadReason,
) -> Result<(), Error> {
    let fault = Fault::new(
        ErrorCode::InternalError,
        "",
        format!("The message could not be processed: {why}."),
        "It is kept; the operator can send it again with `concord dead retry NUMBER`.",
    );
    reject::tell_sender(context, delivery, &fault).await?;
    keep(context, delivery, &fault, reason, Original::Stays).await
}

fn describe(mut headers: Headers, delivery: &Delivery, fault: &Fault, now: Timestamp) -> Headers {
    headers.insert(header::SUBJECT, delivery.subject.as_str());
    // Whoever sends it again sends it in the same form.
    for name in [wire::DIALECT, wire::CONTENT_ENCODING] {
        if let Some(value) = delivery
            .headers
            .as_ref()
            .and_then(|headers| headers.get(name))
        {
            headers.insert(name, one_line(value.as_str()));
        }
    }
    headers.insert(header::STREAM, delivery.stream.as_str());
    headers.insert(header::SEQUENCE, delivery.sequence.to_string());
    headers.insert(header::CONSUMER, &*delivery.consumer);
    headers.insert(header::CODE, fault.code.as_str());
    headers.insert(header::POINTER, one_line(&fault.pointer));
    headers.insert(header::ERROR, one_line(&fault.message));
    headers.insert(header::DELIVERIES, delivery.deliveries.to_string());
    headers.insert(header::AT, now.to_string());
    headers
}

/// Header values are one line of moderate length; a sender's text may be neither.
fn one_line(text: &str) -> String {
    const LENGTH_MAX: usize = 500;
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LENGTH_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_copies_what_is_small_and_what_would_be_gone() {
        let layout = Layout::default();
        for (kind, bytes, original, expected) in [
            (
                StreamKind::Messages,
                COPIED_BYTES_MAX,
                Original::Stays,
                true,
            ),
            (
                StreamKind::Messages,
                COPIED_BYTES_MAX + 1,
                Original::Stays,
                false,
            ),
            (
                StreamKind::Urgent,
                COPIED_BYTES_MAX + 1,
                Original::Stays,
                false,
            ),
            (
                StreamKind::Urgent,
                ENVELOPE_BYTES_MAX,
                Original::Stays,
                false,
            ),
            (
                StreamKind::Messages,
                ENVELOPE_BYTES_MAX,
                Original::Goes,
                true,
            ),
            (
                StreamKind::Messages,
                ENVELOPE_BYTES_MAX + 1,
                Original::Goes,
                false,
            ),
            (
                StreamKind::Timers,
                ENVELOPE_BYTES_MAX,
                Original::Stays,
                true,
            ),
            (
                StreamKind::Memory,
                ENVELOPE_BYTES_MAX,
                Original::Stays,
                true,
            ),
        ] {
            let stream = layout.stream_name(kind);
            let copied = is_copied(&layout, &stream, bytes, original);
            assert_eq!(copied, expected, "{bytes} bytes in {stream}: {original:?}");
        }
    }
}
