//! The archive: cases that are over are written to it, and then removed from the streams.
//!
//! It is done here because here everything that is stored is digested into heads: what no head covers yet is not archived, so that
//! heads hold across archive and streams. One replica makes rounds. Of one round each part may be done twice or end anywhere:
//!
//! 1. Cases that are over are gathered and written as a segment, under a name that nobody else has.
//! 2. `sealed` is appended under the lock: now the segment counts. Where another replica was faster, the files are removed.
//! 3. Every service learns within seconds what is sealed, and appends nothing to it any more.
//! 4. After a while what is sealed is read back, compared, and removed from the streams; then `purged` is appended.

mod gather;
mod read_through;
mod removal;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use concord_archive::{Archive, CaseContents, Error as ArchiveError, SegmentPlace, pack};
use concord_domain::Context;
use concord_domain::aggregates::archive::{ArchiveInput, ArchiveMachine, ArchiveState, archive_id};
use concord_domain::aggregates::head::{HeadMachine, head_id};
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{
    Aggregate, SEGMENT_AGGREGATES_MAX, SEGMENT_CASES_MAX, SegmentSealed, SegmentsPurged,
};
use concord_runtime::broker::log_reader;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::ports::Clock;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::ARCHIVE;
use concord_runtime::{Aggregates, NatsPorts, Outcome, Ports};
use concord_wire::{CaseId, MessageId, Timestamp};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::TimerSettings;
use crate::heads::goes_on;
use gather::{Bounds, Ends, Failed, SEGMENT_BYTES_MAX};
use read_through::ReadThrough;
use removal::Removal;

/// How often is looked whether there is something to archive, or to remove.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long after it was sealed a segment is removed from the streams. Meanwhile every service looks five times what is sealed.
const PURGE_AFTER_MS: u64 = 10_000;
/// Events that one round looks at to find cases that are over.
const LOOKED_AT_MAX: usize = 20_000;
/// How long a case that is not finished is left alone, at most, and one that is too large.
const RETRY_MS_MAX: u64 = 3_600_000;

/// What to do where what was sealed last is not in the archive.
const NOT_THERE: &str = "Nothing is sealed and nothing is removed from the streams until storage.archive names the place where all is \
                         that was sealed: mount the folder, or put all files of the archive there";

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Cases that were decided or cancelled, and when to look at them.
type Candidates = BTreeMap<CaseId, Timestamp>;

/// Archives cases.
pub(crate) struct Archiver {
    runner: ServiceRunner,
    archive: Archive,
    state: Aggregates<ArchiveMachine, NatsPorts>,
    heads: Option<Aggregates<HeadMachine, NatsPorts>>,
    after_ms: u64,
    case_bytes_max: usize,
    /// The sequence from which on cases are looked for.
    next: u64,
    candidates: Candidates,
    /// What the consumers of this round have read.
    read: ReadThrough,
    sealed: Counter,
    purged: Counter,
    waiting: Gauge,
    fails: Gauge,
}

/// The duty of archiving.
const DUTY: &str = "archive";

impl Archiver {
    /// With the archive of the installation, which the settings must name.
    pub(crate) fn new(runner: &ServiceRunner, own: &TimerSettings) -> Result<Self, AnyError> {
        let Some(archive) = runner.broker.archive.clone() else {
            return Err("storage.archive names no place".into());
        };
        let has_heads = own.head_interval_ms > 0;
        let (sealed, purged) = (Counter::default(), Counter::default());
        let (waiting, fails) = (Gauge::default(), Gauge::default());
        runner.metrics.register_own(|registry| {
            let help = "Cases that this process has written to the archive.";
            registry.register("archived_cases", help, sealed.clone());
            let help = "Archived cases that this process has removed from the streams.";
            registry.register("purged_cases", help, purged.clone());
            let help =
                "Cases that are decided or cancelled and not archived yet, as this process knows.";
            registry.register("archive_candidates", help, waiting.clone());
            let help = "Whether the last round of archiving by this process failed: 1 or 0.";
            registry.register("archive_fails", help, fails.clone());
        });
        Ok(Self {
            state: Aggregates::new(runner.ports.clone(), &runner.cache),
            heads: has_heads.then(|| Aggregates::new(runner.ports.clone(), &runner.cache)),
            after_ms: runner.broker.archive_after_ms,
            case_bytes_max: own.archive_case_bytes_max,
            archive,
            next: 1,
            candidates: BTreeMap::new(),
            read: ReadThrough::default(),
            runner: runner.clone(),
            sealed,
            purged,
            waiting,
            fails,
        })
    }

    /// Makes rounds until the service stops.
    pub(crate) async fn run(mut self) {
        let stop = self.runner.stop.clone();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            // Two who archive at the same time write the same segment; the lock decides, and one has worked in vain.
            if !self.runner.replicas.has_duty(DUTY) {
                self.note(Ok(()));
                continue;
            }
            tokio::select! {
                () = self.runner.give_way() => {}
                () = stop.cancelled() => return,
            }
            // A round that is broken off is one that a crash ends.
            tokio::select! {
                done = self.round() => self.note(done),
                () = stop.cancelled() => return,
            }
        }
    }

    /// Logs why a round failed, and says it to whoever asks how this process is, until a round succeeds.
    fn note(&self, done: Result<(), AnyError>) {
        let failure = done.err().map(|error| {
            let error = ErrorChain(&*error);
            tracing::warn!(%error, "Archiving failed; the next round follows.");
            error.to_string()
        });
        self.fails.set(i64::from(failure.is_some()));
        self.runner.note(ARCHIVE, failure);
    }

    async fn round(&mut self) -> Result<(), AnyError> {
        self.find().await?;
        self.read = ReadThrough::default();
        let removal = Removal::new(&self.runner, &self.archive).await?;
        let mut failed = None;
        loop {
            let state = self.state.load(&archive_id()).await?.state;
            let due = self.due(&state).filter(|_| failed.is_none());
            // At the same time, so that the streams do not grow while cases are decided as fast as they can be.
            let at_once = due.as_deref().filter(|_| !removal.is_dear());
            let (sealed, purged) = tokio::join!(self.seal(&state), removal.segment(at_once));
            let sealed = sealed?;
            // What cannot be removed hinders nobody from sealing.
            let mut purged = purged.unwrap_or_else(|error| {
                failed = Some(error);
                None
            });
            if !sealed && removal.is_dear() {
                purged = removal.segment(due.as_deref()).await?;
            }
            match (due, purged) {
                (Some(due), Some(purged)) => self.removed(&due, purged).await?,
                _ if !sealed => break,
                _ => {}
            }
        }
        self.waiting
            .set(i64::try_from(self.candidates.len()).unwrap_or(i64::MAX));
        failed.map_or(Ok(()), Err)
    }

    /// The first segment that waits to be removed from the streams, if it has waited long enough.
    fn due(&self, state: &ArchiveState) -> Option<Arc<SegmentSealed>> {
        let now = self.runner.ports.now();
        let (_, waiting) = state.waiting.first_key_value()?;
        let is_due = now.millis_since(waiting.since) >= PURGE_AFTER_MS;
        is_due.then(|| Arc::clone(&waiting.sealed))
    }

    /// Takes into account that a segment was removed from the streams.
    async fn removed(
        &mut self,
        sealed: &SegmentSealed,
        purged: SegmentsPurged,
    ) -> Result<(), AnyError> {
        let now = self.runner.ports.now();
        let cases = sealed.cases.len() - purged.kept.len();
        let kept = purged.kept.iter().cloned();
        self.candidates.extend(kept.map(|case| (case, now)));
        let number = sealed.number;
        let cause = format!("purged/{number}/{}", self.runner.ports.unique_id());
        if self.step(&cause, &ArchiveInput::Purge(purged)).await? {
            self.purged.inc_by(cases as u64);
        }
        Ok(())
    }

    /// Finds cases that were decided or cancelled long enough ago.
    async fn find(&mut self) -> Result<(), AnyError> {
        let broker = &self.runner.broker;
        let before = self.before();
        let filters = ["decided", "cancelled"]
            .map(|name| broker.subjects().event_of_kind(Aggregate::Case, name));
        let (mut looked_at, mut next) = (0, self.next);
        let candidates = &mut self.candidates;
        let kind = StreamKind::Events;
        log_reader::read_matching(broker, kind, &filters, self.next, |message| {
            if message.at > before || looked_at >= LOOKED_AT_MAX {
                return ControlFlow::Break(());
            }
            looked_at += 1;
            next = message.sequence + 1;
            let subject = broker.subjects().parse(&message.subject);
            if let Ok(SystemSubject::Event { id, .. }) = subject
                && let Ok(case) = CaseId::new(id.as_str())
            {
                candidates.entry(case).or_insert(before);
            }
            ControlFlow::Continue(())
        })
        .await?;
        self.next = next;
        Ok(())
    }

    fn before(&self) -> Timestamp {
        let now = self.runner.ports.now().unix_millis();
        Timestamp::from_unix_millis(now.saturating_sub_unsigned(self.after_ms))
    }

    /// Seals one segment. Whether there may be another.
    async fn seal(&mut self, state: &ArchiveState) -> Result<bool, AnyError> {
        let now = self.runner.ports.now();
        let waiting = state.waiting_cases();
        self.candidates.retain(|case, _| !waiting.contains(case));
        let due = self.candidates.iter().filter(|(_, at)| **at <= now);
        let due: Vec<CaseId> = due
            .map(|(case, _)| case.clone())
            .take(SEGMENT_CASES_MAX)
            .collect();
        if due.is_empty() {
            return Ok(false);
        }
        // First, so that the cases are looked at again in the next round and not after a while.
        self.archive_is_there(state).await?;
        // Those that turn out not to be finished wait for a later round; the others are put out below.
        let retry = now.plus_millis(self.after_ms.clamp(1_000, RETRY_MS_MAX));
        for case in &due {
            self.candidates.insert(case.clone(), retry);
        }
        let bounds = Bounds {
            before: self.before(),
            ends: self.ends().await?,
            case_bytes_max: self.case_bytes_max,
        };
        let found = gather::read(&self.runner.broker, due, &bounds).await;
        for case in &found.gone {
            self.candidates.remove(case);
        }
        let left = found.left.into_iter();
        self.candidates.extend(left.map(|case| (case, now)));
        for failed in found.failed {
            self.put_off(failed, now);
        }
        let cases = within_bounds(&mut self.candidates, found.finished, now);
        if cases.is_empty() {
            return Ok(true);
        }
        if let Some(consumer) = self.read.behind(&self.runner.broker, &cases).await? {
            tracing::info!(%consumer, "Cases are not archived yet: this consumer has not read all of them.");
            return Ok(true);
        }
        let packed = pack(self.place(state), &cases)?;
        if let Err(error) = self.archive.keep(&packed).await {
            let cases = cases.into_iter();
            self.candidates.extend(cases.map(|one| (one.case_id, now)));
            return Err(error.into());
        }
        let sealed = packed.sealed();
        let cause = format!("sealed/{}", sealed.name);
        let is_sealed = self.step(&cause, &ArchiveInput::Seal(sealed)).await?;
        forget(&mut self.candidates, &cases, is_sealed);
        if is_sealed {
            self.sealed.inc_by(cases.len() as u64);
        } else {
            self.archive.discard(&packed).await?;
        }
        Ok(true)
    }

    /// Whether the last segment is where the next one is to be written. A volume that is not mounted leaves an empty folder, or none,
    /// and what is written there is lost to the archive when it is back.
    async fn archive_is_there(&self, state: &ArchiveState) -> Result<(), AnyError> {
        let Some(last) = &state.last else {
            return Ok(());
        };
        let found = self.archive.manifest(last).await;
        found.map(|_| ()).map_err(|error| match error {
            ArchiveError::Location { .. } => error.into(),
            ArchiveError::Missing { .. } | ArchiveError::Tampered { .. } => {
                format!("{NOT_THERE} ({})", ErrorChain(&error)).into()
            }
        })
    }

    /// Has a case that could not be read wait, and no other with it.
    fn put_off(&mut self, failed: Failed, now: Timestamp) {
        let case = failed.case;
        if failed.is_too_large {
            let bytes_max = self.case_bytes_max;
            tracing::warn!(%case, bytes_max, "A case stays in the streams: more is stored of it than service.archive_case_bytes_max.");
            self.candidates.insert(case, now.plus_millis(RETRY_MS_MAX));
        } else {
            let error = ErrorChain(&failed.error);
            tracing::warn!(%case, %error, "A case is not archived yet: it could not be read.");
        }
    }

    fn place(&self, state: &ArchiveState) -> SegmentPlace {
        let ports = &self.runner.ports;
        SegmentPlace {
            installation: self.runner.broker.subjects().prefix().to_owned(),
            number: state.next_number(),
            previous: state.last.as_ref().map(|last| last.manifest.clone()),
            at: ports.now(),
            unique: ports.unique_id(),
        }
    }

    /// Up to where each stream may be archived: what the last head covers. Everything where no heads are made.
    async fn ends(&self) -> Result<Ends, AnyError> {
        let Some(heads) = &self.heads else {
            return Ok(Ends::new());
        };
        let known = heads.load(&head_id()).await?.state;
        let mut ends = Ends::new();
        for kind in StreamKind::EVIDENCE {
            // Of a stream that was made anew no head covers anything yet.
            let end = log_reader::end(&self.runner.broker, kind).await?;
            ends.insert(kind, goes_on(known.last.as_ref(), kind, &end).next() - 1);
        }
        Ok(ends)
    }

    /// One step of the archive: whether it led to an event.
    async fn step(&self, cause: &str, input: &ArchiveInput) -> Result<bool, AnyError> {
        let context = Context::of_message(self.runner.ports.now(), MessageId::derived(cause));
        let outcome = self
            .state
            .step(&archive_id(), &context, input, None)
            .await?;
        Ok(matches!(outcome, Outcome::Appended { .. }))
    }
}

/// As many of the cases as one segment may contain; the others are next.
fn within_bounds(
    candidates: &mut Candidates,
    cases: Vec<CaseContents>,
    now: Timestamp,
) -> Vec<CaseContents> {
    let (mut bytes, mut aggregates) = (0, 0);
    let (mut taken, mut full) = (Vec::new(), false);
    for case in cases {
        if case.aggregates.len() > SEGMENT_AGGREGATES_MAX {
            let (case, most) = (case.case_id, SEGMENT_AGGREGATES_MAX);
            tracing::warn!(%case, most, "A case stays in the streams: it has more requests, debates and deadlines than a segment may.");
            candidates.insert(case, now.plus_millis(RETRY_MS_MAX));
            continue;
        }
        let size = |message: &concord_archive::ArchivedMessage| message.payload.len();
        bytes += case.messages.iter().map(size).sum::<usize>();
        aggregates += case.aggregates.len();
        full |= aggregates > SEGMENT_AGGREGATES_MAX || bytes > SEGMENT_BYTES_MAX;
        if full && !taken.is_empty() {
            candidates.insert(case.case_id, now);
        } else {
            taken.push(case);
        }
    }
    taken
}

/// Forgets the cases of a segment that was sealed. One is refused where another replica was faster, whose segment may contain others:
/// its cases wait as those do that were not finished.
fn forget(candidates: &mut Candidates, cases: &[CaseContents], is_sealed: bool) {
    if is_sealed {
        for case in cases {
            candidates.remove(&case.case_id);
        }
    }
}

#[cfg(test)]
mod tests;
