//! Keeping what could not be processed: the original, byte for byte, and why.
//!
//! An original that leaves no room for a description stays where it is: its letter is empty and says where that is.

use async_nats::HeaderMap;
use bytes::Bytes;
use concord_events::dead_letter::{DeadReason, header};
use concord_events::subject::SystemSubject;
use concord_wire::header as wire;
use concord_wire::{ErrorCode, Fault};

use crate::broker::{Operation, headers};
use crate::delivery::Delivery;
use crate::delivery::reject;
use crate::event_store::Error;
use crate::service::ServiceContext;
use crate::service::clock;

/// Keeps a refused delivery.
pub async fn keep(
    shell: &ServiceContext,
    delivery: &Delivery,
    fault: &Fault,
    reason: DeadReason,
) -> Result<(), Error> {
    let subject = shell.broker.subjects().build(&SystemSubject::DeadLetter {
        service: shell.service,
        reason: reason.token(),
    });
    // Keeping it again, after a crash before the acknowledgement, changes nothing.
    let id = format!(
        "dead-{}-{}-{}",
        delivery.consumer, delivery.stream, delivery.sequence
    );
    let fits = crate::event_store::nats::check_size(&shell.broker, delivery.payload.len()).is_ok();
    let body = if fits {
        delivery.payload.clone()
    } else {
        Bytes::new()
    };
    let mut headers = describe(headers(&id, delivery.trace.as_ref()), delivery, fault);
    if !fits {
        let (stream, sequence) = (&delivery.stream, delivery.sequence);
        let message = format!(
            "{} The original is too large for a letter; it is in {stream} at {sequence}.",
            fault.message
        );
        headers.insert(header::ERROR, one_line(&message));
    }
    let stored = shell.broker.store(subject, headers, body).await;
    stored.map_err(|error| Operation::StoreDeadLetter.failed(error))?;
    Ok(())
}

/// Keeps a delivery that failed again and again or for good, and tells its sender.
pub async fn keep_failed(
    shell: &ServiceContext,
    delivery: &Delivery,
    why: &str,
    reason: DeadReason,
) -> Result<(), Error> {
    let fault = Fault::new(
        ErrorCode::InternalError,
        "",
        format!("The message could not be processed: {why}."),
        "It is kept; the operator can send it again with `concord dead retry`.",
    );
    reject::tell_sender(shell, delivery, &fault).await?;
    keep(shell, delivery, &fault, reason).await
}

fn describe(mut headers: HeaderMap, delivery: &Delivery, fault: &Fault) -> HeaderMap {
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
    headers.insert(header::AT, clock::now().to_string());
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
