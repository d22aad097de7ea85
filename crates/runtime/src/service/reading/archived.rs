//! What is archived of single cases, for whoever asks for it page by page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_archive::ArchivedMessage;
use concord_events::subject::matches;
use concord_events::topology::StreamKind;
use concord_wire::CaseId;

use crate::broker::raw_message::RawMessage;
use crate::broker::{Broker, Operation, Unavailable, non_event};
use crate::event_store::ByteLru;
use crate::event_store::archived::{Archived, ArchivedPart, headers_of};

/// Bytes of the cases that are remembered, as a page follows another. The one that was read last is, whatever its size
/// (`service.archive_case_bytes_max` bounds it).
const REMEMBERED_BYTES_MAX: usize = 4 << 20;

type Messages = Arc<Vec<ArchivedMessage>>;

/// Reads archived cases, and remembers the last ones; a process has one. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ArchivedCases {
    broker: Broker,
    known: Arc<Mutex<Known>>,
}

struct Known {
    /// The sequence of the last event of the archive that `archived` takes into account.
    sequence: u64,
    archived: Arc<Archived>,
    /// By the number of the segment and the case.
    read: ByteLru<(u64, CaseId), Messages>,
}

impl Known {
    fn new() -> Self {
        Self {
            sequence: 0,
            archived: Arc::default(),
            read: ByteLru::new(REMEMBERED_BYTES_MAX),
        }
    }

    fn remember(&mut self, key: (u64, CaseId), messages: Messages) {
        let bytes = messages.iter().map(bytes_of).sum();
        self.read.put(key, messages, bytes);
    }
}

impl ArchivedCases {
    pub(crate) fn new(broker: Broker) -> Self {
        Self {
            broker,
            known: Arc::new(Mutex::new(Known::new())),
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
        self.known().remember(key, Arc::clone(&messages));
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

/// How much memory a message takes, but for what its allocations take besides.
fn bytes_of(message: &ArchivedMessage) -> usize {
    let headers = message.headers.iter();
    let headers =
        headers.map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
    let contents = message.subject.len() + message.payload.len() + headers.sum::<usize>();
    size_of::<ArchivedMessage>() + contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archived_cases_are_remembered_up_to_so_many_bytes() {
        let message = |payload: usize| ArchivedMessage {
            stream: StreamKind::Messages,
            sequence: 1,
            at: Default::default(),
            subject: "concord.v1.msg.c-1.ann.coordinator.finding".into(),
            headers: vec![("Nats-Msg-Id".into(), "m-1".into())],
            payload: vec![b'x'; payload].into(),
        };
        let case = |number: u64| (number, CaseId::new("c-1").unwrap());
        let mut known = Known::new();
        for number in 0..16 {
            known.remember(case(number), Arc::new(vec![message(1 << 20)]));
            assert!(known.read.bytes() <= REMEMBERED_BYTES_MAX);
        }
        assert_eq!(known.read.len(), 3);
        // Each page of a large one comes from memory, and nothing else does meanwhile.
        known.remember(case(16), Arc::new(vec![message(REMEMBERED_BYTES_MAX)]));
        assert!(known.read.len() == 1 && known.read.get(&case(16)).is_some());
        // Many small messages take more than their bodies have.
        known.remember(case(17), Arc::new(vec![message(0); 1 << 16]));
        known.remember(case(18), Arc::new(vec![message(0)]));
        assert_eq!(known.read.len(), 1);
    }
}
