//! Passing over deliveries that are no events and no deadlines; what they are is decided in [`concord_events::non_event`].

use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::topology::StreamKind;

use crate::context::ServiceContext;
use crate::context::metrics::Consumer;
use crate::delivery::Delivery;
use crate::ports::Ports;

/// What became of a delivery that was no event and no deadline, in the metrics.
pub(crate) const FOREIGN: &str = "foreign";

/// Whether a delivery carries what no service writes into a stream of events or deadlines. Only its headers are looked at, so
/// that it costs nothing: what its body gives away is found out when that cannot be read.
pub(crate) fn is_copy<P: Ports>(context: &ServiceContext<P>, delivery: &Delivery) -> bool {
    let copied = delivery
        .headers
        .as_ref()
        .is_some_and(|headers| headers.get(COPIED_FROM).is_some());
    copied && concerns(context, delivery)
}

/// Whether a delivery that could not be handled is foreign. What agents send may be whatever they like: it is answered.
pub(crate) fn is_acknowledgement<P: Ports>(
    context: &ServiceContext<P>,
    delivery: &Delivery,
) -> bool {
    NonEvent::of(false, &delivery.payload).is_some() && concerns(context, delivery)
}

fn concerns<P: Ports>(context: &ServiceContext<P>, delivery: &Delivery) -> bool {
    let streams = [StreamKind::Events, StreamKind::Timers].into_iter();
    streams
        .map(|kind| context.ports.layout().stream_name(kind))
        .any(|name| name == delivery.stream)
}

/// Says, and counts, that a delivery was passed over.
pub(crate) fn passed_over<P: Ports>(context: &ServiceContext<P>, delivery: &Delivery) {
    let Delivery {
        subject,
        sequence,
        consumer,
        ..
    } = delivery;
    tracing::warn!(%subject, sequence, %consumer, "What stands here was written by no service; it is passed over.");
    context
        .metrics
        .foreign
        .get_or_create(&Consumer {
            consumer: consumer.to_string(),
        })
        .inc();
}
