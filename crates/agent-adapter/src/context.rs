//! What a program without memory must be given beside a question: the task of the case.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_protocol::event::{CaseEvent, Facts, Record};
use concord_protocol::payload::Task;
use concord_protocol::subject::{Aggregate, Subject};
use concord_protocol::{CaseId, Token};
use concord_runtime::consume::Problem;
use concord_runtime::nats_ledger::NatsLedger;
use concord_runtime::service::Shell;
use lru::LruCache;

/// Tasks kept in memory.
const CACHED_MAX: usize = 512;

/// The tasks of cases, read from their opening facts.
pub(crate) struct Tasks {
    ledger: NatsLedger,
    shell: Shell,
    cached: Mutex<LruCache<CaseId, Arc<Task>>>,
}

impl Tasks {
    pub(crate) async fn new(shell: &Shell) -> Result<Self, concord_runtime::ledger::Error> {
        let cached = LruCache::new(NonZeroUsize::new(CACHED_MAX).unwrap_or(NonZeroUsize::MIN));
        let ledger = NatsLedger::new(shell.broker.clone()).await?;
        Ok(Self { ledger, shell: shell.clone(), cached: Mutex::new(cached) })
    }

    /// The task of a case; none when the case is not known.
    pub(crate) async fn of(&self, case: &CaseId) -> Result<Option<Arc<Task>>, Problem> {
        if let Some(task) = self.cached.lock().unwrap_or_else(PoisonError::into_inner).get(case) {
            return Ok(Some(Arc::clone(task)));
        }
        let fact = Token::fixed("opened");
        let opened = Subject::Event { aggregate: Aggregate::Case, id: case.token(), fact };
        debug_assert!(CaseEvent::FACTS.iter().any(|info| info.name == "opened"));
        let subject = self.shell.broker.subjects().build(&opened);
        let Some(message) = self.ledger.last_on(&subject).await? else { return Ok(None) };
        let record = Record::<CaseEvent>::decode(&message.payload, message.sequence)?;
        let CaseEvent::Opened(opened) = record.event else { return Ok(None) };
        let task = Arc::new(opened.task);
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).put(case.clone(), Arc::clone(&task));
        Ok(Some(task))
    }
}
