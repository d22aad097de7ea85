//! What is read of cases: their tasks, which a program without memory must be given beside a question, and who takes part.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::{AggregateEvent, CaseEvent, CaseOpened, StoredEvent};
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::ServiceRunner;
use concord_wire::{CaseId, Token};
use lru::LruCache;

/// Cases kept in memory.
const CACHED_MAX: usize = 512;

/// The opening facts of cases.
pub(crate) struct Cases {
    ledger: NatsEventStore,
    shell: ServiceRunner,
    cached: Mutex<LruCache<CaseId, Arc<CaseOpened>>>,
}

impl Cases {
    pub(crate) async fn new(
        shell: &ServiceRunner,
    ) -> Result<Self, concord_runtime::event_store::Error> {
        let cached = LruCache::new(NonZeroUsize::new(CACHED_MAX).unwrap_or(NonZeroUsize::MIN));
        let ledger = NatsEventStore::new(shell.broker.clone()).await?;
        Ok(Self {
            ledger,
            shell: shell.clone(),
            cached: Mutex::new(cached),
        })
    }

    /// The opening of a case; none when the case is not known.
    pub(crate) async fn of(&self, case: &CaseId) -> Result<Option<Arc<CaseOpened>>, HandleError> {
        if let Some(opened) = self
            .cached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(case)
        {
            return Ok(Some(Arc::clone(opened)));
        }
        let fact = Token::fixed("opened");
        let subject = SystemSubject::Event {
            aggregate: Aggregate::Case,
            id: case.token(),
            event: fact,
        };
        debug_assert!(CaseEvent::EVENTS.iter().any(|info| info.name == "opened"));
        let subject = self.shell.broker.subjects().build(&subject);
        let Some(message) = self.ledger.last_on(&subject).await? else {
            return Ok(None);
        };
        let record = StoredEvent::<CaseEvent>::decode(&message.payload, message.sequence)?;
        let CaseEvent::Opened(opened) = record.event else {
            return Ok(None);
        };
        let opened = Arc::new(opened);
        self.cached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .put(case.clone(), Arc::clone(&opened));
        Ok(Some(opened))
    }
}
