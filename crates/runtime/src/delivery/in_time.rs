//! What was stored before a deadline counts, also where the service comes to it only afterwards: because it was not there, was paused, or is
//! behind.
//!
//! So a deadline of a case or a debate waits until the service has read what those who are asked in it have said to it by then. See `docs/adr/0117`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concord_events::DeadlineElapsed;
use concord_events::topology::ConsumerKind;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, CaseId, Timestamp};
use futures::future::try_join;
use tokio::sync::Mutex;

use crate::broker::Unavailable;
use crate::broker::inbox_progress::Progress;
use crate::codec::message_lookup::SearchStart;
use crate::context::ServiceContext;
use crate::delivery::HandleError;
use crate::ports::{Ports, Search};

/// A deadline waits no longer than this: somebody whose messages cannot be read now must not keep a case open.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long it waits before it looks again, doubled each time up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_millis(800);

/// One of the two consumers of what is sent to the service.
struct Inbox {
    lane: Lane,
    kind: ConsumerKind,
    /// The name of the consumer.
    consumer: String,
    /// How often the broker was asked.
    asked: AtomicU64,
    /// What it has said last, and which time that was.
    known: Mutex<(u64, Progress)>,
}

/// Has deadlines wait for what was stored before them.
pub struct InTime<P> {
    service: ServiceContext<P>,
    normal: Inbox,
    urgent: Inbox,
    /// Whether what is said outside of cases can be for one.
    outside_cases: bool,
}

impl<P: Ports> InTime<P> {
    /// For deadlines that this service applies.
    pub fn new(service: &ServiceContext<P>) -> Self {
        let inbox = |lane, kind: ConsumerKind| {
            let consumers = service.ports.layout().consumers_of(kind).into_iter();
            let consumer: String = consumers.map(|definition| definition.name).collect();
            service.handled.watch(&consumer);
            Inbox {
                lane,
                kind,
                consumer,
                asked: AtomicU64::new(0),
                known: Mutex::default(),
            }
        };
        Self {
            normal: inbox(Lane::Normal, ConsumerKind::Inbox(service.service)),
            urgent: inbox(Lane::Urgent, ConsumerKind::UrgentInbox(service.service)),
            service: service.clone(),
            outside_cases: false,
        }
    }

    /// Also for what is said outside of cases: an answer to a question of a debate need not name its case.
    #[must_use]
    pub fn and_outside_cases(self) -> Self {
        Self {
            outside_cases: true,
            ..self
        }
    }

    /// Waits until the service has read what certain agents had stored in a case before a deadline was due; a minute at most. What others
    /// send changes nothing that the deadline decides, so a flood of theirs delays nothing.
    pub async fn wait(
        &self,
        case: &CaseId,
        heard: &[AgentId],
        elapsed: &DeadlineElapsed,
    ) -> Result<(), HandleError> {
        let ports = &self.service.ports;
        let began = ports.now();
        let mut pause = PAUSE_FIRST;
        while let Some((lane, sequence)) = self.first_unread(case, heard, elapsed.due).await? {
            if u128::from(ports.now().millis_since(began)) >= WAIT_MAX.as_millis() {
                self.service.metrics.deadlines_unread.inc();
                tracing::warn!(
                    %case, deadline = %elapsed.name, lane = lane.as_str(), sequence,
                    "A deadline is applied although a message that was stored before it is not read; it will be late."
                );
                break;
            }
            ports.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Ok(())
    }

    /// The first message of these agents to the service in a case that was stored by then and is not read.
    async fn first_unread(
        &self,
        case: &CaseId,
        heard: &[AgentId],
        due: Timestamp,
    ) -> Result<Option<(Lane, u64)>, Unavailable> {
        if heard.is_empty() {
            return Ok(None);
        }
        let (normal, urgent) =
            try_join(self.progress(&self.normal), self.progress(&self.urgent)).await?;
        let subjects = self.service.ports.subjects();
        for (inbox, progress) in [(&self.normal, normal), (&self.urgent, urgent)] {
            let all = subjects.service_inbox(inbox.lane, self.service.service);
            let outside = self.outside_cases.then(|| subjects.outside_cases(&all));
            let filters = [Some(subjects.in_case(&all, case)), outside];
            for filter in filters.into_iter().flatten().filter(|_| !progress.is_all) {
                let inbox = (inbox, filter.as_str());
                // Mostly nobody has said anything.
                let anybody = self.find(inbox, &progress, due, |_| true).await?;
                if anybody.is_some()
                    && let Some(found) = self.find_of(inbox, &progress, heard, due).await?
                {
                    return Ok(Some((inbox.0.lane, found)));
                }
            }
        }
        Ok(None)
    }

    /// The first message of these agents that is not read. Each is searched for alone: the search ends after so many messages, and another's
    /// flood must not be these.
    async fn find_of(
        &self,
        (inbox, filter): (&Inbox, &str),
        progress: &Progress,
        heard: &[AgentId],
        due: Timestamp,
    ) -> Result<Option<u64>, Unavailable> {
        let subjects = self.service.ports.subjects();
        let all = subjects.service_inbox(inbox.lane, self.service.service);
        for agent in heard {
            let (filter, of_agent) = (
                subjects.only_from(filter, agent),
                subjects.only_from(&all, agent),
            );
            let is_unread = |sequence| {
                !self.service.handled.contains(&inbox.consumer, sequence)
                    && !progress.has_read(sequence, &of_agent)
            };
            let found = self.find((inbox, &filter), progress, due, is_unread);
            if let Some(found) = found.await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first message beyond what is done with that was stored by then and is wanted.
    async fn find(
        &self,
        (inbox, filter): (&Inbox, &str),
        progress: &Progress,
        due: Timestamp,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<Option<u64>, Unavailable> {
        let start = SearchStart::Sequence(progress.through.saturating_add(1));
        let mut search = Search::new(inbox.lane, filter, start);
        while let Some(stored) = search.next(&self.service.ports).await? {
            if stored.stored_at > due {
                break;
            }
            if is_wanted(stored.sequence) {
                return Ok(Some(stored.sequence));
            }
        }
        Ok(None)
    }

    /// How far an inbox is read, as the broker says after this was called. Of thousands of deadlines that are due at one instant, those that
    /// wait for an answer share the next one.
    async fn progress(&self, inbox: &Inbox) -> Result<Progress, Unavailable> {
        let before = inbox.asked.load(Ordering::Relaxed);
        let mut known = inbox.known.lock().await;
        if known.0 <= before {
            let number = inbox.asked.fetch_add(1, Ordering::Relaxed) + 1;
            let progress = self.service.ports.progress(inbox.kind).await?;
            let handled = &self.service.handled;
            handled.forget_through(&inbox.consumer, progress.through);
            *known = (number, progress);
        }
        Ok(known.1.clone())
    }
}
