//! The lateness of deadlines, read from the streams after a measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use concord_events::names::ACKNOWLEDGE;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, DeadlineEvent, DebateEvent, StoredEvent};
use concord_wire::Timestamp;
use concord_wire::subject::SubjectSpace;
use futures::StreamExt;
use serde::Serialize;

use crate::bench::subjects;

/// Percentiles of lateness, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in crate::bench) struct Lateness {
    /// The 50th percentile.
    pub(in crate::bench) p50_ms: u64,
    /// The 99th percentile.
    pub(in crate::bench) p99_ms: u64,
    /// The longest lateness.
    pub(in crate::bench) max_ms: u64,
}

impl Lateness {
    pub(in crate::bench) fn of(mut each: Vec<u64>) -> Self {
        each.sort_unstable();
        let at = |share: f64| {
            each.get(((each.len() as f64 * share) as usize).min(each.len().saturating_sub(1)))
        };
        let at = |share| at(share).copied().unwrap_or_default();
        Self {
            p50_ms: at(0.50),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}

/// The lateness of the deadlines of all debates, at each step on their way.
pub(super) struct Measured {
    /// From the first to the last deadline, in milliseconds.
    pub(super) spread_ms: u64,
    pub(super) delivered: Lateness,
    pub(super) elapsed: Lateness,
    pub(super) escalated: Lateness,
}

/// The time at which the first deadline of each debate was due, by the id of the debate, in milliseconds since 1970.
struct Due(BTreeMap<String, u64>);

impl Due {
    /// The lateness of something at the time `at` for a debate; none for another debate.
    fn late(&self, debate: &str, at: u64) -> Option<u64> {
        self.0.get(debate).map(|due| at.saturating_sub(*due))
    }

    fn spread_ms(&self) -> u64 {
        let last = self.0.values().max();
        let first = self.0.values().min();
        last.zip(first).map_or(0, |(last, first)| last - first)
    }
}

/// Reads how late each debate was. An error when not every debate has been through all of it.
pub(super) async fn read(context: &jetstream::Context, debates: usize) -> anyhow::Result<Measured> {
    let due = due(context).await?;
    ensure!(
        due.0.len() == debates,
        "{} debates were opened instead of {debates}",
        due.0.len()
    );
    let of_all = |what: &str, late: Vec<u64>| {
        let found = late.len();
        ensure!(
            found == debates,
            "{found} deadlines are {what} instead of {debates}"
        );
        Ok(Lateness::of(late))
    };
    Ok(Measured {
        spread_ms: due.spread_ms(),
        delivered: of_all("delivered", delivered(context, &due).await?)?,
        elapsed: of_all("elapsed", elapsed(context, &due).await?)?,
        escalated: of_all("escalated", escalated(context, &due).await?)?,
    })
}

async fn due(context: &jetstream::Context) -> anyhow::Result<Due> {
    let filter = SubjectSpace::default().event_of_kind(Aggregate::Debate, "opened");
    let mut due = BTreeMap::new();
    for stored in stored(context, StreamKind::Events, filter).await? {
        let event = StoredEvent::<DebateEvent>::decode(&stored.payload, stored.sequence)?;
        let first = event
            .meta
            .deadlines
            .iter()
            .find(|deadline| deadline.name.as_str() == ACKNOWLEDGE);
        let first = first.context("a challenge has no deadline")?;
        due.insert(event.meta.id.to_string(), millis(first.due)?);
    }
    Ok(Due(due))
}

async fn delivered(context: &jetstream::Context, due: &Due) -> anyhow::Result<Vec<u64>> {
    let mut late = Vec::new();
    for stored in stored(context, StreamKind::Timers, SubjectSpace::default().due()).await? {
        let first = stored
            .subject
            .rsplit_once('.')
            .filter(|(_, name)| *name == ACKNOWLEDGE);
        let debate = first
            .and_then(|(before, _)| before.rsplit_once('.'))
            .map(|(_, debate)| debate);
        late.extend(debate.and_then(|debate| due.late(debate, stored.at)));
    }
    Ok(late)
}

async fn elapsed(context: &jetstream::Context, due: &Due) -> anyhow::Result<Vec<u64>> {
    let filter = SubjectSpace::default().event_of_kind(Aggregate::Deadline, "debate_elapsed");
    let mut late = Vec::new();
    for stored in stored(context, StreamKind::Events, filter).await? {
        let event = StoredEvent::<DeadlineEvent>::decode(&stored.payload, stored.sequence)?;
        let elapsed = event.event.into_elapsed();
        if elapsed.name.as_str() == ACKNOWLEDGE {
            late.extend(due.late(elapsed.id.as_str(), stored.at));
        }
    }
    Ok(late)
}

async fn escalated(context: &jetstream::Context, due: &Due) -> anyhow::Result<Vec<u64>> {
    let filter = SubjectSpace::default().event_of_kind(Aggregate::Debate, "escalated");
    let mut late = Vec::new();
    for stored in stored(context, StreamKind::Events, filter).await? {
        let event = StoredEvent::<DebateEvent>::decode(&stored.payload, stored.sequence)?;
        late.extend(due.late(event.meta.id.as_str(), stored.at));
    }
    Ok(late)
}

fn millis(timestamp: Timestamp) -> anyhow::Result<u64> {
    Ok(u64::try_from(timestamp.unix_millis())?)
}

struct Stored {
    sequence: u64,
    subject: String,
    payload: bytes::Bytes,
    /// The time at which the broker stored it, in milliseconds since 1970.
    at: u64,
}

/// All messages of a stream whose subjects match `filter`.
async fn stored(
    context: &jetstream::Context,
    kind: StreamKind,
    filter: String,
) -> anyhow::Result<Vec<Stored>> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::All,
        ack_policy: jetstream::consumer::AckPolicy::None,
        filter_subject: filter,
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = subjects::stream(context, kind)
        .await?
        .create_consumer(config)
        .await?;
    let mut waiting = consumer.cached_info().num_pending;
    let mut found = Vec::new();
    while waiting > 0 {
        let mut batch = consumer.fetch().max_messages(1_000).messages().await?;
        while let Some(message) = batch.next().await {
            let message = message.map_err(anyhow::Error::from_boxed)?;
            let info = message.info().map_err(anyhow::Error::from_boxed)?;
            waiting = info.pending;
            found.push(Stored {
                sequence: info.stream_sequence,
                subject: message.subject.to_string(),
                payload: message.payload.clone(),
                at: u64::try_from(info.published.unix_timestamp_nanos() / 1_000_000)?,
            });
        }
    }
    Ok(found)
}
