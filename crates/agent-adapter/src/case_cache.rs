//! The opening events of cases, kept in memory: who takes part, and the task, which an agent without memory is given beside a
//! question.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_events::{AggregateEvent, CaseEvent, CaseOpened};
use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_wire::CaseId;
use lru::LruCache;

/// Cases kept in memory.
const CACHED_MAX: usize = 512;
/// The name of the event that opens a case.
const OPENED: &str = "opened";

/// The opening events of the cases that were read last.
pub struct CaseCache<P> {
    ports: P,
    cached: Mutex<LruCache<CaseId, Arc<CaseOpened>>>,
}

impl<P: Ports> CaseCache<P> {
    /// An empty cache.
    pub fn new(ports: P) -> Self {
        debug_assert!(
            CaseEvent::EVENTS.iter().any(|info| info.name == OPENED),
            "no event of a case has the name \"{OPENED}\""
        );
        let cached = LruCache::new(NonZeroUsize::new(CACHED_MAX).unwrap_or(NonZeroUsize::MIN));
        Self {
            ports,
            cached: Mutex::new(cached),
        }
    }

    fn cached(&self) -> MutexGuard<'_, LruCache<CaseId, Arc<CaseOpened>>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The opening event of a case. None when no such case is stored.
    pub(crate) async fn opening_of(
        &self,
        case: &CaseId,
    ) -> Result<Option<Arc<CaseOpened>>, HandleError> {
        if let Some(opened) = self.cached().get(case) {
            return Ok(Some(Arc::clone(opened)));
        }
        let id = case.token();
        let stored = self.ports.last_named::<CaseEvent>(&id, OPENED);
        let Some(CaseEvent::Opened(opened)) = stored.await?.map(|stored| stored.event) else {
            return Ok(None);
        };
        let opened = Arc::new(opened);
        self.cached().put(case.clone(), Arc::clone(&opened));
        Ok(Some(opened))
    }
}
