//! How messages of archived cases leave the streams: one by one, by their sequences.
//!
//! A purge by subject would be one request where this is ten. But after a purge the broker counts for every consumer of the stream anew
//! how much waits in it, through all subjects of the consumer's filter; so its cost grows with the number of consumers times that of the
//! cases in the stream. After a deletion it asks only the consumers of that one subject.

use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use concord_archive::{Archive, ArchivedCase, Sequences};
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{SegmentSealed, SegmentsPurged};
use concord_runtime::broker::{Operation, Unavailable};
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Consistency, EventStore};
use concord_wire::CaseId;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use super::AnyError;
use super::gather::CASES_AT_ONCE;

/// Messages of one case that are deleted at the same time.
const AT_ONCE: usize = 8;
/// The streams that cases are removed from. Messages first: an event may be asked where its message stands, and is still there to be
/// asked.
const STREAMS: [StreamKind; 3] = [StreamKind::Messages, StreamKind::Urgent, StreamKind::Events];

/// The broker's answer to a deletion.
#[derive(Deserialize)]
struct Deleted {}

/// The streams, as they were found, and the archive.
pub(super) struct Removal {
    runner: ServiceRunner,
    archive: Archive,
    streams: Vec<(StreamKind, Stream)>,
}

impl Removal {
    /// Looks at the streams.
    pub(super) async fn new(
        runner: &ServiceRunner,
        archive: &Archive,
    ) -> Result<Self, Unavailable> {
        let broker = &runner.broker;
        let mut streams = Vec::new();
        for kind in STREAMS {
            let name = broker.layout.stream_name(kind);
            let found = broker.jetstream.get_stream(name).await;
            let found = found.map_err(|error| Operation::OpenStream.failed(error))?;
            streams.push((kind, found));
        }
        Ok(Self {
            runner: runner.clone(),
            archive: archive.clone(),
            streams,
        })
    }

    /// Whether a stream allows no deletion, as `EVENTS` of earlier versions: purging is so dear then that it waits until nothing else is
    /// to be done.
    pub(super) fn is_dear(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|(_, stream)| stream.cached_info().config.deny_delete)
    }

    /// Removes what a segment contains from the streams, except the cases that something happened to since; nothing where there is no
    /// segment. The archive is read and compared before: what cannot be read back is not removed.
    pub(super) async fn segment(
        &self,
        sealed: Option<&SegmentSealed>,
    ) -> Result<Option<SegmentsPurged>, AnyError> {
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let manifest = self.archive.manifest(sealed).await?;
        self.archive.segment(sealed).await?;
        let cases = manifest.cases.into_iter();
        let cases = cases.map(|case| self.case_unless_changed(sealed, case));
        let kept: Vec<Option<CaseId>> = stream::iter(cases)
            .buffered(CASES_AT_ONCE)
            .try_collect()
            .await?;
        Ok(Some(SegmentsPurged {
            through: sealed.number,
            kept: kept.into_iter().flatten().collect(),
        }))
    }

    /// Removes a case; which one it was where something happened to it since, so that it is kept.
    async fn case_unless_changed(
        &self,
        sealed: &SegmentSealed,
        case: ArchivedCase,
    ) -> Result<Option<CaseId>, AnyError> {
        if self.has_changed(&case).await? {
            return Ok(Some(case.case_id));
        }
        self.case(sealed, &case).await?;
        Ok(None)
    }

    /// Whether an event was appended to an aggregate of the case after it was sealed.
    async fn has_changed(&self, case: &ArchivedCase) -> Result<bool, AnyError> {
        let ports = &self.runner.ports;
        for sealed in &case.aggregates {
            let (kind, id) = (sealed.aggregate, &sealed.id);
            let last = ports.last(kind, id, Consistency::Leader).await?;
            // None where the removal was broken off after it.
            if last.is_some_and(|last| last.sequence > sealed.last_sequence) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes what a segment contains of a case. What is gone already is no error.
    async fn case(&self, sealed: &SegmentSealed, case: &ArchivedCase) -> Result<(), Unavailable> {
        for (kind, stream) in &self.streams {
            let mut all = case.sequences.iter();
            let Some(sequences) = all.find(|one| one.stream == *kind) else {
                continue;
            };
            let info = stream.cached_info();
            // A stream that was made anew since gives the same sequences to what has nothing to do with the case.
            let created_ms = info.created.unix_timestamp_nanos() / 1_000_000;
            if created_ms > i128::from(sealed.at.unix_millis()) {
                continue;
            }
            if info.config.deny_delete {
                self.purge(stream, case, sequences).await?;
            } else {
                self.delete(stream, sequences).await?;
            }
        }
        Ok(())
    }

    async fn purge(
        &self,
        stream: &Stream,
        case: &ArchivedCase,
        sequences: &Sequences,
    ) -> Result<(), Unavailable> {
        let subjects = self.runner.broker.subjects();
        let mut parts = Vec::new();
        match sequences.stream.lane() {
            Some(lane) => {
                let last = sequences.ranges.last().map(|[_, last]| *last);
                parts.extend(last.map(|last| (subjects.transcript(lane, &case.case_id), last)));
            }
            None => parts.extend(case.aggregates.iter().map(|sealed| {
                let filter = subjects.events_of(sealed.aggregate, &sealed.id);
                (filter, sealed.last_sequence)
            })),
        }
        for (filter, last) in parts {
            let purged = stream.purge().filter(filter).sequence(last + 1).await;
            purged.map_err(|error| Operation::PurgeStream.failed(error))?;
        }
        Ok(())
    }

    /// Deletes messages, oldest first as far as some that are under way at the same time have an order: of an aggregate of which a part
    /// is left, the first event names one that is gone, so everybody sees that it is a part.
    async fn delete(&self, stream: &Stream, sequences: &Sequences) -> Result<(), Unavailable> {
        let name = &stream.cached_info().config.name;
        let subject = format!("STREAM.MSG.DELETE.{name}");
        let ranges = sequences.ranges.iter();
        let all = ranges.flat_map(|[first, last]| *first..=*last);
        let deleting = stream::iter(all).map(Ok);
        deleting
            .try_for_each_concurrent(AT_ONCE, async |sequence| {
                // To overwrite it on the disk, as the client asks for, the broker writes the whole block of 8 MB anew.
                let request = json!({ "seq": sequence, "no_erase": true });
                let answer = self
                    .runner
                    .broker
                    .jetstream
                    .request(subject.clone(), &request);
                let answer: Response<Deleted> = answer
                    .await
                    .map_err(|error| Operation::PurgeStream.failed(error))?;
                let Response::Err { error } = answer else {
                    return Ok(());
                };
                // The broker has several answers to who deletes what is gone.
                match stream.get_raw_message(sequence).await {
                    Err(found) if found.kind() == RawMessageErrorKind::NoMessageFound => Ok(()),
                    _ => Err(Operation::PurgeStream.failed(error)),
                }
            })
            .await
    }
}
