//! Keeping what could not be processed: the original, byte for byte, and why.
//!
//! An original that is larger than any envelope may be is not copied: its letter is empty and says where the original is.
//! Whoever sends many of those would have each read and written once more, and everybody else would wait meanwhile.

use concord_events::dead_letter::{DeadReason, header};
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::header as wire;
use concord_wire::{ErrorCode, Fault, Timestamp};

use crate::broker::headers;
use crate::context::ServiceContext;
use crate::delivery::Delivery;
use crate::delivery::reject;
use crate::event_store::Error;
use crate::ports::{Headers, Ports};

/// Keeps a refused delivery.
pub async fn keep<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
    fault: &Fault,
    reason: DeadReason,
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
    let copies = copies_the_original(context, delivery);
    if !copies {
        let (stream, sequence) = (&delivery.stream, delivery.sequence);
        let message = format!(
            "{} The original is too large for a letter; it is in {stream} at {sequence}.",
            fault.message
        );
        headers.insert(header::ERROR, one_line(&message));
    }
    let body = copies.then(|| delivery.payload.clone());
    let kept = context
        .ports
        .keep(subject, headers, body.unwrap_or_default());
    kept.await
}

/// Whether the letter has the original in it: where it is no larger than an envelope, or where its stream does not keep it for as long
/// as letters are kept. The broker may leave no room for it all the same.
fn copies_the_original<P: Ports>(context: &ServiceContext<P>, delivery: &Delivery) -> bool {
    let bytes = delivery.payload.len();
    let layout = context.ports.layout();
    let mut as_long = [StreamKind::Messages, StreamKind::Urgent].into_iter();
    let stays = bytes > ENVELOPE_BYTES_MAX
        && as_long.any(|kind| layout.stream_name(kind) == delivery.stream);
    !stays && context.ports.has_room_for(bytes)
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
    keep(context, delivery, &fault, reason).await
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
