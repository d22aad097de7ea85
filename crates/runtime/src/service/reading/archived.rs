//! What is archived of single cases, for whoever asks for it page by page.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_archive::ArchivedMessage;
use concord_events::subject::matches;
use concord_events::topology::StreamKind;
use concord_wire::CaseId;
use lru::LruCache;

use crate::broker::raw_message::RawMessage;
use crate::broker::{Broker, Operation, Unavailable, non_event};
use crate::event_store::archived::{Archived, ArchivedPart, headers_of};

/// How many cases are remembered that were read last: a page follows another.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

type Messages = Arc<Vec<ArchivedMessage>>;

/// Reads archived cases, and remembers the last ones. Cheap to clone.
#[derive(Clone)]
pub(super) struct ArchivedCases {
    broker: Broker,
    known: Arc<Mutex<Known>>,
}

struct Known {
    /// The sequence of the last event of the archive that `archived` takes into account.
    sequence: u64,
    archived: Arc<Archived>,
    /// By the number of the segment and the case.
    read: LruCache<(u64, CaseId), Messages>,
}

impl ArchivedCases {
    pub(super) fn new(broker: Broker) -> Self {
        let known = Known {
            sequence: 0,
            archived: Arc::default(),
            read: LruCache::new(REMEMBERED_MAX),
        };
        Self {
            broker,
            known: Arc::new(Mutex::new(known)),
        }
    }

    /// The first archived message of a stream from `sequence` on whose subject matches the filter and which, among events, is
    /// one; none where it is not said where the archive is.
    pub(super) async fn next(
        &self,
        kind: StreamKind,
        part: &ArchivedPart,
        filter: &str,
        sequence: u64,
    ) -> Result<Option<RawMessage>, Unavailable> {
        let Some(messages) = self.messages(part).await? else {
            return Ok(None);
        };
        let is_wanted = |message: &&ArchivedMessage| {
            message.stream == kind
                && message.sequence >= sequence
                && matches(filter, &message.subject)
                && (kind != StreamKind::Events
                    || non_event::of_stored(Some(&headers_of(message)), &message.payload).is_none())
        };
        Ok(messages.iter().find(is_wanted).map(RawMessage::archived))
    }

    /// The messages of the case that is asked for, or that an aggregate belongs to, by stream and sequence.
    async fn messages(&self, part: &ArchivedPart) -> Result<Option<Messages>, Unavailable> {
        let Some(archive) = &self.broker.archive else {
            return Ok(None);
        };
        let archived = self.segments().await?;
        let found = match part {
            ArchivedPart::All => None,
            ArchivedPart::Aggregate(kind, id) => archived.aggregate(*kind, id),
            ArchivedPart::Case(case) => archived.case(case),
        };
        let Some((segment, sealed)) = found else {
            return Ok(None);
        };
        let key = (segment.number, sealed.case_id.clone());
        if let Some(messages) = self.known().read.get(&key) {
            return Ok(Some(Arc::clone(messages)));
        }
        let contents = archive.case(segment, &sealed.case_id).await;
        let contents = contents.map_err(|error| Operation::ReadArchived.failed(error))?;
        let messages: Messages = Arc::new(contents.map(|case| case.messages).unwrap_or_default());
        self.known().read.put(key, Arc::clone(&messages));
        Ok(Some(messages))
    }

    /// The segments, as this process knows them.
    async fn segments(&self) -> Result<Arc<Archived>, Unavailable> {
        let sequence = self.broker.sealed.sequence();
        {
            let known = self.known();
            if known.sequence == sequence {
                return Ok(Arc::clone(&known.archived));
            }
        }
        let archived = Archived::read(&self.broker).await;
        let archived = archived.map_err(|error| Operation::ReadArchived.failed(error))?;
        let archived = Arc::new(archived);
        let mut known = self.known();
        known.sequence = sequence;
        known.archived = Arc::clone(&archived);
        Ok(archived)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
