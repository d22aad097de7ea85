//! What an aggregate belongs to: who has opened its case, and the domain of its debate.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_domain::aggregates::person::Matter;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, AggregateEvent, CaseEvent, DebateEvent, StoredEvent};
use concord_wire::Token;
use lru::LruCache;

use super::archived::ArchivedCases;
use super::page::next_event;
use crate::broker::{Broker, Unavailable};
use crate::event_store::archived::ArchivedPart;

/// How many are remembered: whoever has opened a case has opened it for ever.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

type Remembered = LruCache<(Aggregate, Token), Matter>;

/// Looks up and remembers what aggregates belong to. Cheap to clone.
#[derive(Clone)]
pub(super) struct Matters {
    broker: Broker,
    archived: ArchivedCases,
    remembered: Arc<Mutex<Remembered>>,
}

impl Matters {
    pub(super) fn new(broker: Broker, archived: ArchivedCases) -> Self {
        Self {
            broker,
            archived,
            remembered: Arc::new(Mutex::new(LruCache::new(REMEMBERED_MAX))),
        }
    }

    /// What an aggregate belongs to, as the stream's leader has it; nothing where it was never opened.
    pub(super) async fn of(&self, aggregate: Aggregate, id: &Token) -> Result<Matter, Unavailable> {
        let key = (aggregate, id.clone());
        if let Some(known) = self.remembered().get(&key) {
            return Ok(known.clone());
        }
        let found = match aggregate {
            // The conflicts of a case bear its id, and so do its board, its commitments, its analyses and its synthesis.
            Aggregate::Case
            | Aggregate::Detection
            | Aggregate::Board
            | Aggregate::Commitment
            | Aggregate::Impact
            | Aggregate::Synthesis => self.of_case(id).await?,
            Aggregate::Debate => self.of_debate(id).await?,
            _ => None,
        };
        // One that is opened later belongs to somebody then.
        let Some(found) = found else {
            return Ok(Matter::default());
        };
        self.remembered().put(key, found.clone());
        Ok(found)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn of_case(&self, id: &Token) -> Result<Option<Matter>, Unavailable> {
        let Some(CaseEvent::Opened(opened)) = self.opening(id).await? else {
            return Ok(None);
        };
        Ok(Some(Matter {
            opened_by: Some(opened.opened_by),
            domain: None,
        }))
    }

    async fn of_debate(&self, id: &Token) -> Result<Option<Matter>, Unavailable> {
        let Some(DebateEvent::Opened(opened)) = self.opening(id).await? else {
            return Ok(None);
        };
        let case = self.of_case(&opened.case_id.token()).await?;
        Ok(Some(Matter {
            opened_by: case.and_then(|matter| matter.opened_by),
            domain: opened.terms.domain,
        }))
    }

    /// The event with which an aggregate began.
    async fn opening<E: AggregateEvent>(&self, id: &Token) -> Result<Option<E>, Unavailable> {
        let subject = self.broker.subjects().build(&SystemSubject::Event {
            aggregate: E::AGGREGATE,
            id: id.clone(),
            event: Token::fixed("opened"),
        });
        let mut found = next_event(&self.broker, StreamKind::Events, &subject, 1).await?;
        if found.is_none() {
            let part = ArchivedPart::Aggregate(E::AGGREGATE, id.clone());
            let archived = self.archived.next(StreamKind::Events, &part, &subject, 1);
            found = archived.await?;
        }
        Ok(found.and_then(|raw| {
            let event = StoredEvent::<E>::decode(&raw.body().ok()?, raw.sequence);
            Some(event.ok()?.event)
        }))
    }
}
