//! The broker's scheduler: arming, cancelling and listing.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use concord_events::Aggregate;
use concord_events::Deadline;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::SystemFilters;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_runtime::broker::Operation;
use concord_runtime::delivery::HandleError;
use concord_runtime::service::ServiceContext;
use concord_runtime::service::api::{Answer, Verb, answer};
use concord_wire::{Fault, Timestamp, Token, header};
use futures::TryStreamExt;
use lru::LruCache;
use serde::{Deserialize, Serialize};

/// How long a delivered deadline stays in the stream; what nobody took by then is the watchdog's.
const DUE_TTL: &str = "24h";

/// How many delivered deadlines are remembered until the fact that closes them comes, a moment later. Of one that is
/// forgotten too soon the broker is told in vain.
const DELIVERED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);

type Key = (Aggregate, Token, Token);

/// A deadline as the broker holds and delivers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Armed {
    pub(crate) aggregate: Aggregate,
    pub(crate) id: Token,
    pub(crate) name: Token,
    pub(crate) due: Timestamp,
}

/// The broker's scheduler.
#[derive(Clone)]
pub(crate) struct Schedule {
    shell: ServiceContext,
    timers: Arc<Stream<()>>,
    /// What the broker has delivered to this process, and so holds no longer.
    delivered: Arc<Mutex<LruCache<Key, ()>>>,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Schedule {
    pub(crate) async fn new(shell: &ServiceContext) -> Result<Self, AnyError> {
        let timers = Arc::new(shell.broker.stream(StreamKind::Timers).await?);
        let delivered = Arc::new(Mutex::new(LruCache::new(DELIVERED_MAX)));
        Ok(Self {
            shell: shell.clone(),
            timers,
            delivered,
        })
    }

    pub(crate) fn shell(&self) -> &ServiceContext {
        &self.shell
    }

    fn delivered<T>(&self, change: impl FnOnce(&mut LruCache<Key, ()>) -> T) -> T {
        change(
            &mut self
                .delivered
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Remembers that the broker has delivered the deadline.
    pub(crate) fn was_delivered(&self, aggregate: Aggregate, id: &Token, name: &Token) {
        self.delivered(|delivered| delivered.put((aggregate, id.clone(), name.clone()), ()));
    }

    /// Has the broker deliver the deadline when it is due, in place of an earlier one of the same name.
    pub(crate) async fn arm(
        &self,
        aggregate: Aggregate,
        id: &Token,
        deadline: &Deadline,
    ) -> Result<(), HandleError> {
        let Deadline { name, due } = deadline.clone();
        self.delivered(|delivered| delivered.pop(&(aggregate, id.clone(), name.clone())));
        let subjects = self.shell.broker.subjects();
        let target = subjects.build(&SystemSubject::TimerDue {
            aggregate,
            id: id.clone(),
            name: name.clone(),
        });
        let subject = subjects.build(&SystemSubject::TimerArmed {
            aggregate,
            id: id.clone(),
            name: name.clone(),
        });
        let mut headers = HeaderMap::new();
        // No message id: a deadline that is cancelled and armed again must not be taken for a duplicate.
        headers.insert(header::SCHEDULE, format!("@at {due}"));
        headers.insert(header::SCHEDULE_TARGET, target);
        headers.insert(header::SCHEDULE_TTL, DUE_TTL);
        let body = serde_json::to_vec(&Armed {
            aggregate,
            id: id.clone(),
            name,
            due,
        })?;
        let stored = self.shell.broker.store(subject, headers, body.into()).await;
        stored.map_err(|error| Operation::ScheduleDeadline.failed(error))?;
        Ok(())
    }

    /// Has the broker hold the deadline no longer. One that is being delivered at this moment is seen through later. Most
    /// deadlines that pass are closed by what follows from that, and the broker need not be told of those.
    pub(crate) async fn cancel(
        &self,
        aggregate: Aggregate,
        id: &Token,
        name: &Token,
    ) -> Result<(), HandleError> {
        if self
            .delivered(|delivered| delivered.pop(&(aggregate, id.clone(), name.clone())))
            .is_some()
        {
            return Ok(());
        }
        let subjects = self.shell.broker.subjects();
        let subject = subjects.build(&SystemSubject::TimerArmed {
            aggregate,
            id: id.clone(),
            name: name.clone(),
        });
        let purged = self.timers.purge().filter(subject).await;
        purged.map_err(|error| Operation::ScheduleDeadline.failed(error))?;
        Ok(())
    }

    /// Answers `armed`: the deadlines that the broker holds, up to a thousand, earliest first.
    pub(crate) fn verb(&self) -> Verb {
        let schedule = self.clone();
        Arc::new(move |_: Bytes| {
            let schedule = schedule.clone();
            let listed: Answer = Box::pin(async move {
                let armed = tokio::time::timeout(Duration::from_secs(5), schedule.list()).await;
                let armed = armed
                    .map_err(|error| failed(&error))?
                    .map_err(|error| failed(&*error))?;
                answer(&armed)
            });
            listed
        })
    }

    async fn list(&self) -> Result<Vec<Armed>, AnyError> {
        const LISTED_MAX: usize = 1_000;
        let filter = self.shell.broker.subjects().armed();
        let subjects: Vec<(String, usize)> = self
            .timers
            .info_with_subjects(filter)
            .await?
            .try_collect()
            .await?;
        let mut armed: Vec<Armed> = Vec::new();
        for (subject, _) in subjects.into_iter().take(LISTED_MAX) {
            // One that fires meanwhile is gone, which is no fault.
            if let Ok(message) = self.timers.direct_get_last_for_subject(subject).await {
                // What stands in the place of a deadline hides it from the broker; it is fired by the watchdog.
                if !is_acknowledgement(&message.payload) {
                    armed.push(serde_json::from_slice(&message.payload)?);
                }
            }
        }
        armed.sort_by(|a, b| a.due.cmp(&b.due).then_with(|| a.id.cmp(&b.id)));
        Ok(armed)
    }
}

fn failed(error: &dyn std::error::Error) -> Fault {
    Fault::new(
        concord_wire::ErrorCode::InternalError,
        "",
        format!("The armed deadlines could not be listed: {error}."),
        "Ask again; `concord doctor` says whether the broker is well.",
    )
}
