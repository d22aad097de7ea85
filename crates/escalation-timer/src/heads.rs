//! The head of the log: everything that is stored is digested in order, so that nobody can rewrite it unseen.
//!
//! A round reads what the streams have got since the last head, with consumers of its own, and stores one more head. One
//! replica makes rounds; should two for a moment, the lock lets one head follow another. Nothing waits for it: a head that
//! comes later covers more.

use std::ops::ControlFlow;
use std::time::Duration;

use concord_domain::Context;
use concord_domain::aggregates::head::{Advance, HeadMachine, HeadState, head_id};
use concord_domain::assurance::evidence::{Fold, digest_of};
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, Head, StreamInterval};
use concord_runtime::broker::log_reader::{self, StreamEnd};
use concord_runtime::delivery::ErrorChain;
use concord_runtime::ports::Clock;
use concord_runtime::service::{ServiceRunner, settings};
use concord_runtime::signing::SigningKey;
use concord_runtime::{Aggregates, NatsPorts, Outcome};
use concord_wire::{MessageId, Timestamp};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::TimerSettings;

/// How often is looked whether there is something new.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Messages younger than this are left to the next head: what no client can parse is deleted within this time.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// Messages of one stream that one head digests, so that a long log is digested in parts that stay.
const DIGESTED_MAX: u64 = 100_000;

/// The duty of making heads.
const DUTY: &str = "heads";

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Makes heads.
pub(crate) struct Heads {
    runner: ServiceRunner,
    aggregates: Aggregates<HeadMachine, NatsPorts>,
    key: Option<SigningKey>,
    interval: Duration,
    messages: u64,
    started: Timestamp,
    number: Gauge,
    fails: Gauge,
    digested: Counter,
}

/// What is read for one head.
struct Digested {
    streams: Vec<StreamInterval>,
    /// Messages that are no heads.
    others: u64,
    /// Whether some stream has more.
    more: bool,
}

/// The key of the installation, where the settings name one.
pub(crate) fn key(own: &TimerSettings) -> Result<Option<SigningKey>, settings::Error> {
    let path = own.head_key.as_deref();
    let key = path.map(SigningKey::read).transpose();
    key.map_err(|error| settings::Error::Value {
        key: "service.head_key".to_owned(),
        message: ErrorChain(&error).to_string(),
    })
}

impl Heads {
    /// With the key of the installation, where the settings name one.
    pub(crate) fn new(runner: &ServiceRunner, own: &TimerSettings) -> Result<Self, AnyError> {
        let key = key(own)?;
        let (number, digested) = (Gauge::default(), Counter::default());
        let fails = Gauge::default();
        runner.metrics.register_own(|registry| {
            registry.register(
                "head_number",
                "The number of the last head of the log that this process knows.",
                number.clone(),
            );
            registry.register(
                "head_messages",
                "Messages, events and dead letters that this process has digested into heads.",
                digested.clone(),
            );
            let help =
                "Whether this process has failed to make the last head that was due: 1 or 0.";
            registry.register("heads_fail", help, fails.clone());
        });
        Ok(Self {
            aggregates: Aggregates::new(runner.ports.clone(), &runner.cache),
            key,
            interval: Duration::from_millis(own.head_interval_ms),
            messages: own.head_messages.max(1),
            started: runner.ports.now(),
            runner: runner.clone(),
            number,
            fails,
            digested,
        })
    }

    /// Makes rounds until the service stops.
    pub(crate) async fn run(self) {
        let stop = self.runner.stop.clone();
        let look = self.interval.min(LOOK_INTERVAL);
        loop {
            tokio::select! {
                () = tokio::time::sleep(look) => {}
                () = stop.cancelled() => return,
            }
            while self.runner.replicas.has_duty(DUTY) {
                tokio::select! {
                    () = self.runner.give_way() => {}
                    () = stop.cancelled() => return,
                }
                let made = self.round().await;
                self.note(made.as_ref().err());
                if !matches!(made, Ok(true)) {
                    break;
                }
            }
            if !self.runner.replicas.has_duty(DUTY) {
                self.note(None);
            }
        }
    }

    /// Logs why a round failed, and says it to whoever asks how this process is, until a round succeeds.
    fn note(&self, failure: Option<&AnyError>) {
        let failure = failure.map(|error| {
            let error = ErrorChain(&**error);
            tracing::warn!(%error, "No head was made; the next round follows.");
            format!("no head of the log is made: {error}")
        });
        self.fails.set(i64::from(failure.is_some()));
        self.runner.note(DUTY, failure);
    }

    /// Makes a head if it is time for one. Whether there is more to digest.
    async fn round(&self) -> Result<bool, AnyError> {
        let loaded = self.aggregates.load(&head_id()).await?;
        let HeadState { last } = &*loaded.state;
        self.number
            .set(last.as_ref().map_or(0, |last| last.number.cast_signed()));
        let mut ends = Vec::new();
        for kind in StreamKind::EVIDENCE {
            ends.push((kind, log_reader::end(&self.runner.broker, kind).await?));
        }
        let now = self.runner.ports.now();
        if !self.is_due(last.as_ref(), &ends, now) {
            return Ok(false);
        }
        self.say_what_is_anew(last.as_ref(), &ends);
        let Digested {
            streams,
            others,
            more,
        } = self.digest(last.as_ref(), &ends, now).await?;
        if others == 0 {
            return Ok(false);
        }
        let mut head = Head {
            number: last.as_ref().map_or(1, |last| last.number + 1),
            previous: last.as_ref().map(|last| last.digest.clone()),
            at: now,
            streams,
            digest: String::new(),
            signature: None,
        };
        head.digest = digest_of(&head);
        head.signature = self.key.as_ref().map(|key| key.sign(&head));
        let cause = MessageId::derived(&format!("head/{}/{}", head.number, head.digest));
        let context = Context::of_message(now, cause);
        let number = head.number;
        let input = Advance(head);
        let outcome = self
            .aggregates
            .step(&head_id(), &context, &input, None)
            .await?;
        if matches!(outcome, Outcome::Appended { .. }) {
            self.number.set(number.cast_signed());
            self.digested.inc_by(others);
        }
        Ok(more)
    }

    /// Whether a head is to be made: there is something new, and it is much or has waited long enough.
    fn is_due(
        &self,
        last: Option<&Head>,
        ends: &[(StreamKind, StreamEnd)],
        now: Timestamp,
    ) -> bool {
        let new = stored_since(last, ends);
        let since = last.map_or(self.started, |last| last.at);
        let waited = Duration::from_millis(now.millis_since(since));
        new >= self.messages || (new > 0 && waited >= self.interval)
    }

    /// Says of streams that were made anew that they were, to whoever asks how this process is, as long as it lives.
    fn say_what_is_anew(&self, last: Option<&Head>, ends: &[(StreamKind, StreamEnd)]) {
        for (kind, end) in ends {
            let Some((last, _)) = covered(last, *kind).filter(|known| is_anew(*known, end)) else {
                continue;
            };
            let stream = self.runner.broker.layout.stream_name(*kind);
            let text = format!(
                "the stream {stream} was made anew after {}: what it held before is gone, and heads digest it from its beginning",
                last.at
            );
            tracing::warn!("{text}");
            self.runner.note(&format!("{DUTY} of {stream}"), Some(text));
        }
    }

    async fn digest(
        &self,
        last: Option<&Head>,
        ends: &[(StreamKind, StreamEnd)],
        now: Timestamp,
    ) -> Result<Digested, AnyError> {
        let settled = SETTLED_AFTER.min(self.interval);
        let heads = self.runner.broker.subjects();
        let heads = heads.event_of_kind(Aggregate::Head, "advanced");
        let heads = heads.split('*').next().unwrap_or_default().to_owned();
        let mut digested = Digested {
            streams: Vec::new(),
            others: 0,
            more: false,
        };
        for (kind, end) in ends {
            let mut fold = goes_on(last, *kind, end);
            let first = fold.next();
            if end.last_sequence >= first {
                let Digested { others, more, .. } = &mut digested;
                let each = |message: log_reader::LogMessage| {
                    let age = Duration::from_millis(now.millis_since(message.at));
                    if age < settled || message.sequence > end.last_sequence {
                        return ControlFlow::Break(());
                    }
                    if fold.count() >= DIGESTED_MAX || fold.is_full_for(message.sequence) {
                        *more = true;
                        return ControlFlow::Break(());
                    }
                    *others += u64::from(!message.subject.starts_with(&heads));
                    fold.take(message.sequence, message.at, &message.digest(*kind));
                    ControlFlow::Continue(())
                };
                log_reader::read(&self.runner.broker, *kind, first, each).await?;
            }
            digested.streams.push(fold.interval());
        }
        Ok(digested)
    }
}

/// What the last head covers of a stream, by the heads before it.
fn covered(last: Option<&Head>, kind: StreamKind) -> Option<(&Head, &StreamInterval)> {
    let last = last?;
    let interval = last.streams.iter().find(|one| one.stream == kind)?;
    Some((last, interval))
}

/// Whether a stream was lost and made anew since a head: it ends before what the head covers, and holds nothing of that time. One that has
/// lost its end alone, or that an older copy was restored of, goes on where it has passed what is covered.
fn is_anew((last, before): (&Head, &StreamInterval), end: &StreamEnd) -> bool {
    let holds_nothing = end.first_at.is_none_or(|first| first > last.at);
    end.last_sequence < before.last_sequence && holds_nothing
}

/// Where the digest of a stream goes on: behind what is covered, or at the beginning of one that was made anew.
pub(crate) fn goes_on(last: Option<&Head>, kind: StreamKind, end: &StreamEnd) -> Fold {
    match covered(last, kind) {
        Some(known @ (_, before)) if is_anew(known, end) => Fold::anew(before, end.kept_ms),
        known => Fold::after(known.map(|(_, before)| before), kind, end.kept_ms),
    }
}

/// How much was stored since the last head. Each stream counts by itself: what one lacks is not missing from another.
fn stored_since(last: Option<&Head>, ends: &[(StreamKind, StreamEnd)]) -> u64 {
    let since = |(kind, end): &(StreamKind, StreamEnd)| {
        // The last head itself is no reason for the next.
        let own = u64::from(*kind == StreamKind::Events && last.is_some());
        let covered = goes_on(last, *kind, end).next() - 1;
        end.last_sequence.saturating_sub(covered + own)
    };
    ends.iter().map(since).sum()
}

#[cfg(test)]
mod tests;
