//! Passing over what stands among facts and deadlines and is none; what that is, is decided in
//! [`concord_events::non_event`].

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::topology::StreamKind;

use crate::broker::raw_message::Described;
use crate::delivery::Delivery;
use crate::event_store::Consistency;
use crate::service::ServiceContext;
use crate::service::metrics::Consumer;

/// What became of a delivery that was no fact and no deadline, in the metrics.
pub(crate) const FOREIGN: &str = "foreign";

/// What a message of a stream of facts or deadlines is, if it is foreign, from the headers and the body it is stored with.
pub fn of_stored(headers: Option<&HeaderMap>, body: &[u8]) -> Option<NonEvent> {
    NonEvent::of(
        headers.is_some_and(|headers| headers.get(COPIED_FROM).is_some()),
        body,
    )
}

/// The same of a message as it was asked for. Whoever answers in place of the leader adds the header of a copy by itself.
pub(crate) fn of_read(message: &StreamMessage, consistency: Consistency) -> Option<NonEvent> {
    let own = match consistency {
        Consistency::Any => 1,
        Consistency::Leader => 0,
    };
    NonEvent::of(
        message.headers.get_all(COPIED_FROM).count() > own,
        &message.payload,
    )
}

/// The same of a message as the leader describes it.
pub(crate) fn of_described(described: &Described) -> Option<NonEvent> {
    let headers = described.headers().unwrap_or_default();
    let headers = String::from_utf8_lossy(&headers);
    let copied = headers.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(name, _)| name == COPIED_FROM)
    });
    NonEvent::of(copied, &described.body().unwrap_or_default())
}

/// Whether a delivery carries what no service writes into a stream of facts or deadlines. Only its headers are looked at, so
/// that it costs nothing: what its body gives away is found out when that cannot be read.
pub(crate) fn is_copy(shell: &ServiceContext, delivery: &Delivery) -> bool {
    let copied = delivery
        .headers
        .as_ref()
        .is_some_and(|headers| headers.get(COPIED_FROM).is_some());
    copied && concerns(shell, delivery)
}

/// Whether a delivery that could not be handled is foreign. What agents send may be whatever they like: it is answered.
pub(crate) fn is_acknowledgement(shell: &ServiceContext, delivery: &Delivery) -> bool {
    NonEvent::of(false, &delivery.payload).is_some() && concerns(shell, delivery)
}

fn concerns(shell: &ServiceContext, delivery: &Delivery) -> bool {
    let streams = [StreamKind::Events, StreamKind::Timers].into_iter();
    streams
        .map(|kind| shell.broker.layout.stream_name(kind))
        .any(|name| name == delivery.stream)
}

/// Says, and counts, that a delivery was passed over.
pub(crate) fn passed_over(shell: &ServiceContext, delivery: &Delivery) {
    let Delivery {
        subject,
        sequence,
        consumer,
        ..
    } = delivery;
    tracing::warn!(%subject, sequence, %consumer, "What stands here was written by no service; it is passed over.");
    shell
        .metrics
        .foreign
        .get_or_create(&Consumer {
            consumer: consumer.to_string(),
        })
        .inc();
}
