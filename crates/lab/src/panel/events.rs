//! Following events as they are stored.

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use bytes::Bytes;
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{AggregateEvent, StoredEvent};
use concord_runtime::delivery::ErrorChain;
use concord_runtime::{Broker, broker::non_event};
use concord_wire::Token;
use futures::{Stream, StreamExt};

use concord_cli::shared::failure::Failure;

/// An event as it is stored; its contents are read by [`StoredBytes::read`].
pub(crate) struct StoredBytes {
    /// The kind of its aggregate.
    pub(crate) aggregate: Aggregate,
    /// The id of its aggregate.
    pub(crate) id: Token,
    sequence: u64,
    bytes: Bytes,
}

impl StoredBytes {
    /// Decodes the event of a kind of aggregate.
    pub(crate) fn read<E: AggregateEvent>(&self) -> Result<StoredEvent<E>, Failure> {
        let event = StoredEvent::decode(&self.bytes, self.sequence);
        event.map_err(|error| {
            Failure::failed(format!(
                "event {} of the stream: {}",
                self.sequence,
                ErrorChain(&error)
            ))
        })
    }
}

/// All events with one of these subjects that are stored after this call, in the order of the stream.
pub(crate) async fn follow(
    broker: &Broker,
    filters: Vec<String>,
) -> Result<impl Stream<Item = Result<StoredBytes, Failure>> + Unpin + use<>, Failure> {
    let name = broker.layout.stream_name(StreamKind::Events);
    let stream = broker
        .jetstream
        .get_stream(&name)
        .await
        .map_err(|error| unreadable(&error))?;
    // By sequence and not "new": nothing is missed that is stored while the consumer is made, or made again.
    let start_sequence = stream.cached_info().state.last_sequence + 1;
    let config = pull::OrderedConfig {
        filter_subjects: filters,
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
        ..pull::OrderedConfig::default()
    };
    let consumer = stream
        .create_consumer(config)
        .await
        .map_err(|error| unreadable(&error))?;
    let messages = consumer
        .messages()
        .await
        .map_err(|error| unreadable(&error))?;
    let subjects = broker.subjects().clone();
    let events = messages.filter_map(move |message| {
        let event = match message {
            Ok(message) => match (subjects.parse(message.subject.as_str()), message.info()) {
                (Ok(SystemSubject::Event { .. }), _)
                    if non_event::of_stored(message.headers.as_ref(), &message.payload)
                        .is_some() =>
                {
                    None
                }
                (Ok(SystemSubject::Event { aggregate, id, .. }), Ok(info)) => {
                    Some(Ok(StoredBytes {
                        aggregate,
                        id,
                        sequence: info.stream_sequence,
                        bytes: message.payload.clone(),
                    }))
                }
                _ => None,
            },
            Err(error) => Some(Err(unreadable(&error))),
        };
        std::future::ready(event)
    });
    Ok(events)
}

fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!(
        "the stream of events cannot be followed: {}",
        ErrorChain(error)
    ))
}
