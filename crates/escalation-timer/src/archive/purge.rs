//! Removing from the streams what is in the archive.

use std::collections::BTreeMap;

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use concord_archive::{Archive, ArchivedCase, CaseContents};
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{SegmentSealed, SegmentsPurged};
use concord_runtime::broker::{Operation, Unavailable};
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Broker, Consistency, EventStore};

use super::AnyError;

/// The name of a consumer of a service that has not read all of these cases; none where all have.
pub(super) async fn behind(
    broker: &Broker,
    cases: &[CaseContents],
) -> Result<Option<String>, Unavailable> {
    let mut ends: BTreeMap<StreamKind, u64> = BTreeMap::new();
    for message in cases.iter().flat_map(|case| &case.messages) {
        let end = ends.entry(message.stream).or_default();
        *end = message.sequence.max(*end);
    }
    let layout = &broker.layout;
    let all = layout
        .consumers()
        .into_iter()
        .chain(layout.adapter_consumers());
    for consumer in all {
        let Some(end) = ends.get(&consumer.stream_kind) else {
            continue;
        };
        let stream = broker.stream(consumer.stream_kind).await?;
        let info = match stream.consumer_info(&consumer.name).await {
            Ok(info) => info,
            // An installation may do without a service, and then nobody waits.
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => continue,
            Err(error) => return Err(Operation::DescribeConsumer.failed(error)),
        };
        let has_none = info.num_pending == 0 && info.num_ack_pending == 0;
        if !has_none && info.ack_floor.stream_sequence < *end {
            return Ok(Some(consumer.name));
        }
    }
    Ok(None)
}

/// Removes what a segment contains from the streams, except the cases that something happened to since. The archive is read and
/// compared before: what cannot be read back is not removed.
pub(super) async fn segment(
    runner: &ServiceRunner,
    archive: &Archive,
    sealed: &SegmentSealed,
) -> Result<SegmentsPurged, AnyError> {
    let manifest = archive.manifest(sealed).await?;
    archive.segment(sealed).await?;
    let mut kept = Vec::new();
    for case in &manifest.cases {
        if has_changed(runner, case).await? {
            kept.push(case.case_id.clone());
        } else {
            remove(&runner.broker, case).await?;
        }
    }
    Ok(SegmentsPurged {
        through: sealed.number,
        kept,
    })
}

/// Whether an event was appended to an aggregate of the case after it was sealed.
async fn has_changed(runner: &ServiceRunner, case: &ArchivedCase) -> Result<bool, AnyError> {
    for sealed in &case.aggregates {
        let last = runner
            .ports
            .last(sealed.aggregate, &sealed.id, Consistency::Leader)
            .await?;
        // None where the removal was broken off after it.
        if last.is_some_and(|last| last.sequence > sealed.last_sequence) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn remove(broker: &Broker, case: &ArchivedCase) -> Result<(), Unavailable> {
    let subjects = broker.subjects();
    let events = case.aggregates.iter().map(|sealed| {
        let filter = subjects.events_of(sealed.aggregate, &sealed.id);
        (StreamKind::Events, filter, sealed.last_sequence)
    });
    let messages = case.sequences.iter().filter_map(|sequences| {
        let filter = subjects.transcript(sequences.stream.lane()?, &case.case_id);
        let [_, last] = sequences.ranges.last()?;
        Some((sequences.stream, filter, *last))
    });
    // Messages first: an event may be asked where its message stands, and is still there to be asked.
    for (kind, filter, last) in messages.chain(events) {
        let stream = broker.stream(kind).await?;
        let purged = stream.purge().filter(filter).sequence(last + 1).await;
        purged.map_err(|error| Operation::PurgeStream.failed(error))?;
    }
    Ok(())
}
