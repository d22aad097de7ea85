//! Reading all events in order, without acknowledgements: for whoever keeps an account of what is open.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use concord_events::EventMeta;
use concord_events::subject::SystemSubject;
use futures::StreamExt;

use crate::broker::{Broker, Operation, non_event};
use crate::event_store::{Error, ScannedEvent};

/// Events that are asked for at once.
const BATCH: usize = 1_000;
/// How long the broker keeps the consumer of a reader that went away.
const IDLE: Duration = Duration::from_secs(30);

/// Shows `each` the events from `first` on that move deadlines. Returns the sequence to begin at next time.
pub(super) async fn events(
    broker: &Broker,
    stream: &Stream<()>,
    first: u64,
    each: &mut (impl FnMut(ScannedEvent) + Send),
) -> Result<u64, Error> {
    let info = stream.get_info().await;
    let last = info.map_err(failed)?.state.last_sequence;
    if last < first {
        return Ok(first);
    }
    // All events and not only those that move deadlines: a filter of several subjects costs the broker far more.
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: first,
        },
        ack_policy: AckPolicy::None,
        inactive_threshold: IDLE,
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(failed)?;
    let mut waiting = consumer.cached_info().num_pending;
    let mut next = first;
    while waiting > 0 {
        let batch = consumer.fetch().max_messages(BATCH).messages().await;
        let mut batch = batch.map_err(failed)?;
        while let Some(message) = batch.next().await {
            let message = message.map_err(failed)?;
            let info = message.info().map_err(failed)?;
            waiting = info.pending;
            next = info.stream_sequence + 1;
            let subject = broker.subjects().parse(&message.subject);
            let Ok(SystemSubject::Event {
                aggregate,
                id,
                event,
            }) = subject
            else {
                continue;
            };
            if aggregate.leaves_deadlines(event.as_str()) {
                continue;
            }
            // What cannot be read, or was written by no service, says nothing about deadlines.
            if non_event::of_stored(message.headers.as_ref(), &message.payload).is_none()
                && let Ok(meta) = EventMeta::decode(&message.payload)
            {
                each(ScannedEvent {
                    aggregate,
                    id,
                    deadlines: meta.deadlines,
                });
            }
        }
    }
    let name = consumer.cached_info().name.clone();
    stream.delete_consumer(&name).await.map_err(failed)?;
    Ok(next.max(last + 1))
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Operation::ReadEvent.failed(error).into()
}
