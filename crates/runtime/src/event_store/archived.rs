//! Reading what is archived: which segments there are say the events of the archive, and nothing else.

use std::collections::{BTreeMap, VecDeque};

use async_nats::HeaderMap;
use concord_archive::{Archive, ArchivedMessage};
use concord_domain::aggregates::archive::archive_id;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, ArchiveEvent, SealedCase, SegmentSealed};
use concord_wire::{CaseId, Token};

use crate::broker::Broker;
use crate::event_store::nats::NatsPorts;
use crate::event_store::{self, Consistency, EventStore, Since};

/// Why what is archived cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The broker does not say which segments there are.
    #[error(transparent)]
    Events(#[from] event_store::Error),
    /// The archive does not give a segment.
    #[error(transparent)]
    Archive(#[from] concord_archive::Error),
}

/// The segments of an installation, as its events say.
#[derive(Debug, Clone, Default)]
pub struct Archived {
    segments: Vec<SegmentSealed>,
    purged: u64,
}

impl Archived {
    /// Reads the events of the archive.
    pub async fn read(broker: &Broker) -> Result<Self, event_store::Error> {
        let store = NatsPorts::new(broker.clone()).await?;
        let id = archive_id();
        let loaded = store
            .load::<ArchiveEvent>(&id, Since::FIRST, Consistency::Leader)
            .await?;
        let mut archived = Self::default();
        for record in loaded.records {
            match record.event {
                ArchiveEvent::Sealed(sealed) => archived.segments.push(sealed),
                ArchiveEvent::Purged(purged) => archived.purged = purged.through,
            }
        }
        Ok(archived)
    }

    /// All segments, in order.
    pub fn segments(&self) -> &[SegmentSealed] {
        &self.segments
    }

    /// The number of the last segment whose messages are no longer in the streams; 0 for none.
    pub fn purged(&self) -> u64 {
        self.purged
    }

    /// The last segment that has a case, and the case in it.
    pub fn case(&self, case: &CaseId) -> Option<(&SegmentSealed, &SealedCase)> {
        self.find(|sealed| sealed.case_id == *case)
    }

    /// The last segment that has an aggregate, and the case that it belongs to.
    pub fn aggregate(&self, kind: Aggregate, id: &Token) -> Option<(&SegmentSealed, &SealedCase)> {
        self.find(|sealed| {
            let mut aggregates = sealed.aggregates.iter();
            aggregates.any(|one| one.aggregate == kind && one.id == *id)
        })
    }

    fn find(&self, wanted: impl Fn(&SealedCase) -> bool) -> Option<(&SegmentSealed, &SealedCase)> {
        self.segments.iter().rev().find_map(|segment| {
            let found = segment.cases.iter().find(|sealed| wanted(sealed));
            found.map(|sealed| (segment, sealed))
        })
    }

    /// The archived messages of a stream, in order: all, or those of the segments that have what is asked for.
    pub fn messages(
        &self,
        archive: &Archive,
        stream: StreamKind,
        part: &ArchivedPart,
    ) -> ArchivedMessages {
        let found = match part {
            ArchivedPart::All => None,
            ArchivedPart::Aggregate(kind, id) => self.aggregate(*kind, id),
            ArchivedPart::Case(case) => self.case(case),
        };
        let of_part = |segment: &&SegmentSealed| {
            *part == ArchivedPart::All
                || found.is_some_and(|(found, _)| found.number == segment.number)
        };
        let first_in = |segment: &SegmentSealed| {
            let mut streams = segment.streams.iter();
            let interval = streams.find(|interval| interval.stream == stream)?;
            Some((interval.first_sequence, segment.clone()))
        };
        let segments = self.segments.iter().filter(of_part);
        let mut unread: Vec<(u64, SegmentSealed)> = segments.filter_map(first_in).collect();
        unread.sort_by_key(|(first, _)| *first);
        ArchivedMessages {
            archive: archive.clone(),
            stream,
            only: found.map(|(_, sealed)| sealed.case_id.clone()),
            unread: unread.into(),
            read: BTreeMap::new(),
        }
    }
}

/// What is asked for of the archive, so that no more segments are read than are needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ArchivedPart {
    /// Everything.
    #[default]
    All,
    /// One aggregate.
    Aggregate(Aggregate, Token),
    /// One case.
    Case(CaseId),
}

/// Archived messages of one stream, in the order of their sequences. A segment is read when its first message is due.
pub struct ArchivedMessages {
    archive: Archive,
    stream: StreamKind,
    /// The one case that is read, where not all are: it can be read although another of its segment is damaged.
    only: Option<CaseId>,
    unread: VecDeque<(u64, SegmentSealed)>,
    read: BTreeMap<u64, ArchivedMessage>,
}

impl ArchivedMessages {
    /// The next message, if its sequence is less than `before`.
    pub async fn next_before(
        &mut self,
        before: u64,
    ) -> Result<Option<ArchivedMessage>, concord_archive::Error> {
        while let Some((first, _)) = self.unread.front()
            && *first < before
            && self.read.keys().next().is_none_or(|next| first <= next)
            && let Some((_, segment)) = self.unread.pop_front()
        {
            let cases = match &self.only {
                Some(case) => Vec::from_iter(self.archive.case(&segment, case).await?),
                None => self.archive.segment(&segment).await?,
            };
            let messages = cases.into_iter().flat_map(|case| case.messages);
            let of_stream = messages.filter(|message| message.stream == self.stream);
            // A case that was archived twice stands in both segments, and says the same in both.
            self.read
                .extend(of_stream.map(|message| (message.sequence, message)));
        }
        let is_due = |next: &u64| *next < before;
        if !self.read.keys().next().is_some_and(is_due) {
            return Ok(None);
        }
        Ok(self.read.pop_first().map(|(_, message)| message))
    }
}

/// The headers of an archived message, as the client gives those of a stored one.
pub fn headers_of(message: &ArchivedMessage) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &message.headers {
        headers.append(name.as_str(), value.as_str());
    }
    headers
}
