//! The opening events of cases, kept in memory: who takes part, and the task, which an agent without memory is given beside a
//! question.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_domain::rules::size_budget::json_bytes;
use concord_events::{AggregateEvent, CaseEvent, CaseOpened};
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::ByteLru;
use concord_runtime::{Consistency, Ports};
use concord_wire::CaseId;

/// Bytes of the opening events that are kept in memory: a task may have more than half a megabyte.
const CACHED_BYTES_MAX: usize = 4 << 20;
/// The name of the event that opens a case.
const OPENED: &str = "opened";

/// The opening events of the cases that were read last.
pub struct CaseCache<P> {
    ports: P,
    cached: Mutex<ByteLru<CaseId, Arc<CaseOpened>>>,
}

impl<P: Ports> CaseCache<P> {
    /// An empty cache.
    pub fn new(ports: P) -> Self {
        debug_assert!(
            CaseEvent::EVENTS.iter().any(|info| info.name == OPENED),
            "no event of a case has the name \"{OPENED}\""
        );
        Self {
            ports,
            cached: Mutex::new(ByteLru::new(CACHED_BYTES_MAX)),
        }
    }

    fn cached(&self) -> MutexGuard<'_, ByteLru<CaseId, Arc<CaseOpened>>> {
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
        let stored = async |from| self.ports.last_named::<CaseEvent>(&id, OPENED, from).await;
        let opening = match stored(Consistency::Any).await? {
            // A copy that lags does not have it yet. That there is no such case has everybody woken, so the leader is asked.
            None => stored(Consistency::Leader).await?,
            opening => opening,
        };
        let Some(CaseEvent::Opened(opened)) = opening.map(|opening| opening.event) else {
            return Ok(None);
        };
        let opened = Arc::new(opened);
        let bytes = json_bytes(&*opened);
        self.cached().put(case.clone(), Arc::clone(&opened), bytes);
        Ok(Some(opened))
    }
}
