//! What of the streams can be judged while work goes on: what is older than everything that was under way when reading began.
//!
//! The streams are read one after the other, so of what is stored meanwhile something may be missing; and of what was under way, what follows
//! from it. Nothing else is missing. So whoever keeps something under way, as anybody who may send can, hides nothing that is older.

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::{consumer, stream};
use concord_domain::assurance::audit::{Ending, Settled};
use concord_events::topology::{ConsumerDefinition, ConsumerKind, Layout, StreamKind};
use concord_runtime::broker::{Operation, log_reader};
use concord_runtime::{Broker, broker, service::clock};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};

use crate::shared::failure::{Failure, NO_STREAMS};

/// How much older than what is under way something must be to be judged, at least: the brokers' clocks differ, and a copy of a stream is behind
/// its leader for a moment.
const MARGIN_MS: i64 = 10_000;

/// What can be judged where something was under way while the streams were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// The time before which everything is settled.
    pub(crate) until: Timestamp,
    /// The same as the last sequence of each stream.
    pub(crate) settled: Settled,
}

/// What was under way while the streams were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnderWay {
    /// The number of messages; 0 when nothing is missing in what was read.
    pub(crate) number: u64,
    /// What can be judged; none where that is everything.
    pub(crate) judged: Option<Judged>,
}

impl UnderWay {
    /// The circumstances of an audit at this time.
    pub(crate) fn ending(&self, now: Timestamp, grace_ms: u64) -> Ending {
        let ending = match self.judged {
            Some(Judged { until, settled }) => Ending {
                settled,
                ..Ending::under_load(until.min(now))
            },
            None if self.number == 0 => Ending::quiescent(now),
            // A bundle of an earlier version does not say what is settled.
            None => Ending::under_load(now),
        };
        Ending { grace_ms, ..ending }
    }
}

/// How much was under way when reading the streams began.
pub(crate) struct Stillness {
    waiting: Waiting,
    ends: Vec<u64>,
    judged: Judged,
}

impl Stillness {
    /// Before the streams are read.
    pub(crate) async fn begin(broker: &Broker) -> Result<Self, Failure> {
        // First, so that what follows from a message up to here is stored, unless the message waits.
        let ends = ends(broker).await?;
        let waiting = Waiting::of(broker).await?;
        let now = clock::now();
        let oldest = waiting.oldest.unwrap_or(now).min(now).unix_millis();
        let until = Timestamp::from_unix_millis(oldest.saturating_sub(MARGIN_MS));
        let mut settled = Settled::NONE;
        for (kind, end) in StreamKind::EVIDENCE.into_iter().zip(&ends) {
            let first = log_reader::first_since(broker, kind, until).await?;
            let last = first.map_or(*end, |first| first.saturating_sub(1).min(*end));
            match kind {
                StreamKind::Events => settled.events = last,
                StreamKind::Messages => settled.messages = last,
                StreamKind::Urgent => settled.urgent = last,
                _ => {}
            }
        }
        let judged = Judged { until, settled };
        Ok(Self {
            waiting,
            ends,
            judged,
        })
    }

    /// After that.
    pub(crate) async fn end(self, broker: &Broker) -> Result<UnderWay, Failure> {
        let after = Waiting::of(broker).await?;
        // The streams are read one after the other, so a message that is stored meanwhile may be missing in some of them.
        let moved: u64 = ends(broker)
            .await?
            .iter()
            .zip(self.ends)
            .map(|(now, then)| now.saturating_sub(then))
            .sum();
        let number = self.waiting.number.max(after.number).max(moved);
        Ok(UnderWay {
            number,
            judged: (number > 0).then_some(self.judged),
        })
    }
}

/// What waits for a service, or is being handled.
#[derive(Debug, Default)]
struct Waiting {
    number: u64,
    /// When the oldest of it was stored.
    oldest: Option<Timestamp>,
}

impl Waiting {
    async fn of(broker: &Broker) -> Result<Self, Failure> {
        let mut waiting = Self::default();
        let layout = &broker.layout;
        let consumers = layout.consumers().into_iter().chain(of_adapter(layout));
        for definition in consumers {
            let Some(info) = describe(broker, &definition).await? else {
                continue;
            };
            let number = info.num_pending + info.num_ack_pending as u64;
            if number == 0 {
                continue;
            }
            // The timer may hold an event back for a while before it arms its deadline; nothing follows from that until it is due.
            if definition.kind != ConsumerKind::Deadlines {
                waiting.number += number;
            }
            let ConsumerDefinition { stream, filter, .. } = &definition;
            let first = info.ack_floor.stream_sequence.saturating_add(1);
            let at = log_reader::stored_at(broker, stream, filter, first).await?;
            let oldest = waiting.oldest.into_iter().chain(at);
            waiting.oldest = oldest.min();
        }
        Ok(waiting)
    }
}

/// What the broker knows of a consumer; none where there is none and need not be.
async fn describe(
    broker: &Broker,
    definition: &ConsumerDefinition,
) -> Result<Option<consumer::Info>, Failure> {
    let ConsumerDefinition {
        stream,
        name,
        event,
        service,
        kind,
        ..
    } = definition;
    let handle = broker.jetstream.get_stream_no_info(stream).await;
    let handle = handle.map_err(|error| Operation::OpenStream.failed(error))?;
    match handle.consumer_info(name).await {
        Ok(info) => Ok(Some(info)),
        // An installation may do without the adapter. One that no service of this version has served yet lacks the
        // consumers of events, and of types of answers, that are read only since. Nothing waits in them; that nothing is
        // missing which follows from an event is an invariant.
        Err(error)
            if error.kind() == ConsumerInfoErrorKind::NotFound
                && (event.is_some()
                    || *kind == ConsumerKind::Exchange
                    || *service == Service::AgentAdapter) =>
        {
            Ok(None)
        }
        Err(error) => {
            let failed = Failure::from(Operation::DescribeConsumer.failed(error));
            Err(failed.and(format!("the consumer is {name}")))
        }
    }
}

/// The consumers of what is addressed to the agent adapter itself, and of what follows from its events.
fn of_adapter(layout: &Layout) -> impl Iterator<Item = ConsumerDefinition> {
    const SERVICE: Service = Service::AgentAdapter;
    let kinds = [
        ConsumerKind::Inbox(SERVICE),
        ConsumerKind::UrgentInbox(SERVICE),
        ConsumerKind::Effects(SERVICE),
    ];
    kinds
        .map(|kind| layout.consumers_of(kind))
        .into_iter()
        .flatten()
}

/// The last sequence of each stream that is read.
async fn ends(broker: &Broker) -> Result<Vec<u64>, Failure> {
    let mut ends = Vec::new();
    for kind in StreamKind::EVIDENCE {
        ends.push(info(broker, kind).await?.last_sequence);
    }
    Ok(ends)
}

async fn info(broker: &Broker, kind: StreamKind) -> Result<stream::State, Failure> {
    let info = broker.stream(kind).await?.get_info().await;
    let name = broker.layout.stream_name(kind);
    info.map(|info| info.state).map_err(|error| {
        let error = error.to_string();
        let advice = match error.contains("stream not found") {
            true => NO_STREAMS,
            false => "see `concord doctor`",
        };
        Failure::failed(format!("the stream {name} cannot be read: {error}")).and(advice)
    })
}

/// The time from which on messages are kept, where older ones are gone.
pub(crate) async fn messages_since(broker: &Broker) -> Result<Option<Timestamp>, Failure> {
    let mut since = None;
    for kind in StreamKind::EVIDENCE {
        let state = info(broker, kind).await?;
        if kind.lane().is_some() && state.first_sequence > 1 {
            let first = broker::timestamp(state.first_timestamp.unix_timestamp_nanos());
            // The broker knows no first time of an empty stream.
            since = since.max(Some(if state.messages == 0 {
                clock::now()
            } else {
                first
            }));
        }
    }
    Ok(since)
}
