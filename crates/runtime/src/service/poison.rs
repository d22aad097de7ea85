//! Messages that no client can parse, and that the broker stores and delivers all the same.
//!
//! The broker does not look into header blocks, nor does it ask that a subject be UTF-8. A client that is given what it
//! cannot parse closes the connection, and is given it again, for ever: a handful of such messages would keep a service
//! from doing anything. So, after a connection was lost, what the broker has delivered and nobody has acknowledged is
//! looked at by another way: the broker's answer to a request for one message is JSON. What cannot be parsed is refused
//! like any other bad message, and then deleted, because whoever reads the transcript would meet it again.

use std::time::Duration;

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_wire::Fault;

use crate::broker::provision::PullConsumer;
use crate::broker::raw_message::{self, RawMessage, unparsable};
use crate::delivery::dead_letter::Original;
use crate::delivery::{Cost, Delivery};
use crate::error_chain::ErrorChain;
use crate::service::ServiceRunner;
use crate::{clock, delivery::reject};

/// How often is looked whether the connection was lost.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Messages looked at after one loss; far more than a process has in hand at once.
const LOOKED_AT_MAX: usize = 4_096;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Looks at what was delivered by `consumer` whenever the connection was lost, until the service stops.
pub(crate) async fn watch(runner: ServiceRunner, consumer: PullConsumer) {
    let mut seen = runner.broker.connects();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = runner.stop.cancelled() => return,
        }
        let now = runner.broker.connects();
        if now == seen || !runner.broker.is_connected() {
            continue;
        }
        match look(&runner, &consumer).await {
            Ok(()) => seen = now,
            Err(error) => {
                tracing::warn!(consumer = %consumer.name, error = %ErrorChain(&*error), "Looking for bad messages failed.");
            }
        }
    }
}

/// Whether agents write to the stream of this consumer; only they would write what cannot be parsed.
pub(crate) fn concerns(runner: &ServiceRunner, consumer: &PullConsumer) -> bool {
    let lanes = [StreamKind::Messages, StreamKind::Urgent];
    lanes
        .into_iter()
        .any(|lane| runner.broker.layout.stream_name(lane) == consumer.stream)
}

async fn look(runner: &ServiceRunner, consumer: &PullConsumer) -> Result<(), AnyError> {
    let stream = runner
        .broker
        .jetstream
        .get_stream_no_info(&consumer.stream)
        .await?;
    let info = match stream.consumer_info(&consumer.name).await {
        Ok(info) => info,
        // One that reads past a flood is there only while there is one.
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (first, last) = (
        info.ack_floor.stream_sequence + 1,
        info.delivered.stream_sequence,
    );
    let several = info.config.filter_subjects;
    let filters = if several.is_empty() {
        vec![consumer.filter.clone()]
    } else {
        several
    };
    for filter in filters {
        look_between(runner, consumer, &stream, &filter, (first, last)).await?;
    }
    Ok(())
}

/// Takes out what cannot be parsed from the first to the last of these sequences.
async fn look_between(
    runner: &ServiceRunner,
    consumer: &PullConsumer,
    stream: &Stream<()>,
    filter: &str,
    (first, last): (u64, u64),
) -> Result<(), AnyError> {
    let mut next = first;
    for _ in 0..LOOKED_AT_MAX {
        if next > last {
            break;
        }
        let Some(found) = raw_message::next(&runner.broker, &consumer.stream, filter, next).await?
        else {
            break;
        };
        next = found.sequence + 1;
        if found.sequence > last {
            break;
        }
        let Some(what) = unparsable(&found.subject, &found.headers()?) else {
            continue;
        };
        let sequence = found.sequence;
        tracing::error!(stream = %consumer.stream, sequence, what, "A message that no client can parse is taken out.");
        let delivery = delivery(consumer, found)?;
        reject::refuse(runner, &delivery, &fault(what), Original::Goes).await?;
        stream.delete_message(sequence).await?;
    }
    Ok(())
}

fn delivery(consumer: &PullConsumer, found: RawMessage) -> Result<Delivery, AnyError> {
    Ok(Delivery {
        payload: Bytes::from(found.body()?),
        // One word, whatever it was: it becomes part of a header.
        subject: found
            .subject
            .chars()
            .map(|c| {
                if c.is_whitespace() || c.is_control() {
                    '_'
                } else {
                    c
                }
            })
            .collect(),
        headers: None,
        trace: None,
        stream: consumer.stream.clone(),
        sequence: found.sequence,
        deliveries: 1,
        stored_at: clock::now(),
        consumer: consumer.name.as_str().into(),
        over_limit: None,
        cost: Cost::default(),
    })
}

fn fault(what: &str) -> Fault {
    Fault::invalid(
        "",
        format!("No client can parse the message: {what}."),
        "Publish with a NATS client library, on the subjects of docs/subjects.md.",
    )
}
