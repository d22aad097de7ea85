//! A way past a flood: while more of one sender's messages wait than may be worked on, those of all others are read by
//! their senders' subjects and handled at once. The consumer that they wait in comes to them later, and passes them by.
//!
//! A consumer is read in order, and cannot leave out a sender; but the broker can be asked for what certain others sent.
//! All replicas share one such consumer, which lives as long as the flood. What is read past the flood by one replica and
//! in its turn by another is a repetition, which changes nothing. See `docs/adr/0032`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use concord_events::topology;
use concord_wire::AgentId;
use concord_wire::subject::Service;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::admission::rate_limit::Limit;
use crate::broker::provision::PullConsumer;
use crate::broker::pull::Pull;
use crate::delivery::worker::Pulling;
use crate::delivery::{ErrorChain, Handler};
use crate::service::ServiceRunner;

/// So many messages have to wait before anything is read past them: fewer are read in a moment.
const WAITING_MIN: u64 = 1_000;
/// How many senders are read past a flood: the services, then those that were heard last, then whoever is registered, then
/// strangers.
/// The broker compares each message with each of them.
const SENDERS_MAX: usize = 256;
/// What was handled past a flood and not yet passed by; of what is forgotten the work is done again, as a repetition.
const HANDLED_MAX: usize = 65_536;
/// How often is looked who else is there, and whether the flood is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// After so long without a replica that reads, the broker forgets the consumer.
const INACTIVE_MAX: Duration = Duration::from_secs(30);
/// How often some more of a flood is let by.
const TICK: Duration = Duration::from_millis(10);

/// What became of a delivery that was handled past a flood, when its turn came, in the metrics.
pub(crate) const PASSED: &str = "passed";

mod unknown_senders;

use unknown_senders::Strangers;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How a process reads a consumer whose senders have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In order.
    Through,
    /// Past a flood.
    Past,
}

/// What the two ways to read one consumer know of each other.
#[derive(Debug, Default)]
pub(crate) struct Bypass {
    /// The sequence that was delivered in order last, and how many wait behind it.
    at: AtomicU64,
    waiting: AtomicU64,
    is_needed: AtomicBool,
    /// Messages of senders that flood, since the last tick.
    let_by: AtomicU32,
    needed: Notify,
    handled: Mutex<BTreeSet<u64>>,
}

impl Bypass {
    /// A message was delivered in order, with so many behind it.
    pub(crate) fn came_to(&self, sequence: u64, waiting: u64) {
        self.at.store(sequence, Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    /// The sender of the message that came last floods.
    pub(crate) fn flooded(&self) {
        self.let_by.fetch_add(1, Ordering::Relaxed);
        if self.waiting.load(Ordering::Relaxed) >= WAITING_MIN
            && !self.is_needed.swap(true, Ordering::Relaxed)
        {
            self.needed.notify_one();
        }
    }

    /// Lets no more than so many messages a second of senders that flood come by, as long as the others are read past them:
    /// nobody waits for these then, and whatever the flood is given is taken from the others.
    pub(crate) async fn hold_back(&self, rate: u32) {
        let ticks = u32::try_from(Duration::from_secs(1).as_millis() / TICK.as_millis())
            .unwrap_or(u32::MAX);
        if self.is_needed.load(Ordering::Relaxed)
            && self.let_by.load(Ordering::Relaxed) >= (rate / ticks).max(1)
        {
            tokio::time::sleep(TICK).await;
            self.let_by.store(0, Ordering::Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < WAITING_MIN / 2
    }

    fn handled<T>(&self, change: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
        change(&mut self.handled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers what was handled past the flood.
    pub(crate) fn remember(&self, sequence: u64) {
        self.handled(|handled| {
            handled.insert(sequence);
            if handled.len() > HANDLED_MAX {
                handled.pop_first();
            }
        });
    }

    /// Whether a message was handled past the flood, when it comes there a second time.
    pub(crate) fn knows(&self, sequence: u64) -> bool {
        self.handled(|handled| handled.contains(&sequence))
    }

    /// Whether a message was handled past the flood; asked once, when its turn has come.
    pub(crate) fn has_handled(&self, sequence: u64) -> bool {
        self.handled(|handled| handled.remove(&sequence))
    }
}

/// What reads past a flood in a consumer. Its filter is that of all senders.
pub(crate) fn consumer(through: &PullConsumer) -> PullConsumer {
    PullConsumer {
        name: topology::bypass(&through.name),
        ..through.clone()
    }
}

/// Reads past floods by `consumer` until `stop`.
pub(crate) async fn run<H: Handler>(
    past: Pulling<H>,
    (bypass, limit): (Arc<Bypass>, Limit),
    consumer: PullConsumer,
    stop: CancellationToken,
) {
    let past = Past {
        shell: past.shell().clone(),
        pulling: past,
        bypass,
        limit,
        consumer,
    };
    while !stop.is_cancelled() {
        tokio::select! {
            () = past.bypass.needed.notified() => {}
            () = stop.cancelled() => return,
        }
        let name = &past.consumer.name;
        tracing::warn!(consumer = %name, "A flood: what others send is read past it.");
        let flooded = past.pulling.consumer().to_owned();
        past.shell.note(
            &flooded,
            Some(format!(
                "a flood waits in {flooded}; what others send is read past it"
            )),
        );
        while !past.bypass.is_over() && !stop.is_cancelled() {
            if let Err(error) = past.read(&stop).await {
                tracing::warn!(consumer = %name, error = %ErrorChain(&*error), "Reading past a flood failed; trying again.");
                tokio::select! {
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                    () = stop.cancelled() => {}
                }
            }
        }
        past.bypass.is_needed.store(false, Ordering::Relaxed);
        past.shell.note(&flooded, None);
    }
}

struct Past<H> {
    shell: ServiceRunner,
    pulling: Pulling<H>,
    bypass: Arc<Bypass>,
    limit: Limit,
    /// The consumer that reads past the flood.
    consumer: PullConsumer,
}

/// The consumer that reads past a flood, as this replica wants it.
struct Bound {
    /// What this replica has it read; another may have it read more.
    senders: BTreeSet<String>,
    /// Whether it was there and was made anew.
    anew: bool,
}

impl<H: Handler> Past<H> {
    /// What one sender sends of what is read past the flood.
    fn only_from(&self, sender: &AgentId) -> String {
        self.shell
            .broker
            .subjects()
            .only_from(&self.consumer.filter, sender)
    }

    /// Reads what others than the flooding senders sent until the flood is over.
    async fn read(&self, stop: &CancellationToken) -> Result<(), AnyError> {
        let stream = self
            .shell
            .broker
            .jetstream
            .get_stream_no_info(&self.consumer.stream)
            .await?;
        let strangers = Strangers::default();
        tokio::select! {
            read = self.read_beside(&stream, &strangers, stop) => read?,
            never = strangers.watch(self, &stream) => never,
        }
        if !stop.is_cancelled() {
            // Another replica that still reads from it makes it anew.
            stream.delete_consumer(&self.consumer.name).await?;
        }
        Ok(())
    }

    async fn read_beside(
        &self,
        stream: &Stream<()>,
        strangers: &Strangers,
        stop: &CancellationToken,
    ) -> Result<(), AnyError> {
        let mut read = self
            .bind(stream, &BTreeSet::new(), strangers)
            .await?
            .senders;
        let mut messages = Pull::start(&self.shell.broker, &self.consumer).await?;
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        loop {
            tokio::select! {
                taken = messages.next() => self.pulling.start(taken?).await,
                _ = look.tick() => {
                    if self.bypass.is_over() {
                        break;
                    }
                    let bound = self.bind(stream, &read, strangers).await?;
                    if bound.anew {
                        // What was asked of the earlier one is not answered any more.
                        messages = Pull::start(&self.shell.broker, &self.consumer).await?;
                    }
                    read = bound.senders;
                }
                () = stop.cancelled() => break,
            }
        }
        messages.stop().await
    }

    /// Creates the consumer, from where the other one has come to. Where somebody is new it is created anew: one that were
    /// only told so would go on from where it has come to, and leave what the new one sent before that to its turn.
    async fn bind(
        &self,
        stream: &Stream<()>,
        read: &BTreeSet<String>,
        strangers: &Strangers,
    ) -> Result<Bound, AnyError> {
        let past = &self.consumer;
        let filter = |sender: &AgentId| self.only_from(sender);
        let known = self.shell.limits.known(self.limit);
        let mut wanted: BTreeSet<String> = Service::ALL
            .iter()
            .map(|service| filter(&service.agent_id()))
            .collect();
        let registered = self.shell.registered();
        let strangers = strangers.found();
        let others = registered
            .iter()
            .chain(&strangers)
            .filter(|agent| !known.flooding.contains(agent));
        for sender in known.quiet.iter().chain(others) {
            if wanted.len() >= SENDERS_MAX {
                break;
            }
            wanted.insert(filter(sender));
        }
        if wanted == *read {
            return Ok(Bound {
                senders: wanted,
                anew: false,
            });
        }
        // Another replica may have made it, and may know others.
        let found = stream
            .consumer_info(&past.name)
            .await
            .ok()
            .map(|info| info.config);
        let is_new = |sender: &String| {
            found
                .as_ref()
                .is_some_and(|found| !found.filter_subjects.contains(sender))
        };
        let anew = wanted.iter().any(is_new);
        let since = match found.as_ref().map(|config| config.deliver_policy) {
            Some(DeliverPolicy::ByStartSequence { start_sequence }) if !anew => start_sequence,
            _ => self.bypass.at.load(Ordering::Relaxed).max(1),
        };
        let flooding: BTreeSet<String> = known.flooding.iter().map(filter).collect();
        let others = found.into_iter().flat_map(|config| config.filter_subjects);
        let others = others.filter(|other| !flooding.contains(other));
        let mut filters = wanted.clone();
        filters.extend(others.take(SENDERS_MAX.saturating_sub(wanted.len())));
        let config = pull::Config {
            durable_name: Some(past.name.clone()),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: since,
            },
            ack_policy: AckPolicy::Explicit,
            ack_wait: past.ack_wait,
            max_deliver: -1,
            max_ack_pending: past.ack_pending_max,
            filter_subjects: filters.into_iter().collect(),
            inactive_threshold: INACTIVE_MAX,
            memory_storage: true,
            ..pull::Config::default()
        };
        if anew {
            stream.delete_consumer(&past.name).await?;
        }
        stream.create_consumer(config).await?;
        Ok(Bound {
            senders: wanted,
            anew,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_when_much_waits_and_until_little_does() {
        let bypass = Bypass::default();
        bypass.came_to(1, WAITING_MIN - 1);
        bypass.flooded();
        assert!(
            !bypass.is_needed.load(Ordering::Relaxed),
            "what waits is read in a moment"
        );
        bypass.came_to(2, WAITING_MIN);
        assert!(
            !bypass.is_needed.load(Ordering::Relaxed),
            "many senders are no flood"
        );
        bypass.flooded();
        assert!(bypass.is_needed.load(Ordering::Relaxed));
        for (waiting, over) in [
            (WAITING_MIN - 1, false),
            (WAITING_MIN / 2, false),
            (WAITING_MIN / 2 - 1, true),
        ] {
            bypass.came_to(3, waiting);
            assert_eq!(bypass.is_over(), over, "{waiting}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_let_by_at_its_rate_while_others_are_read_past_it() {
        let bypass = Bypass::default();
        let began = tokio::time::Instant::now();
        let let_by = async |messages: u32| {
            for number in 0..messages {
                bypass.came_to(u64::from(number), WAITING_MIN);
                bypass.flooded();
                bypass.hold_back(2_000).await;
            }
        };
        let_by(1).await;
        bypass.is_needed.store(false, Ordering::Relaxed);
        bypass.hold_back(2_000).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing is read past it");
        let_by(4_000).await;
        let took = began.elapsed();
        assert!(
            (Duration::from_millis(1_980)..=Duration::from_millis(2_020)).contains(&took),
            "{took:?}"
        );
        // Others are not counted.
        for _ in 0..4_000 {
            bypass.hold_back(2_000).await;
        }
        assert!(began.elapsed() - took <= TICK);
    }

    #[test]
    fn what_was_handled_is_passed_by_once_and_the_memory_of_it_is_bounded() {
        let bypass = Bypass::default();
        bypass.remember(7);
        assert!(!bypass.has_handled(6));
        assert!(bypass.has_handled(7));
        assert!(!bypass.has_handled(7), "it comes by once");
        (1..=HANDLED_MAX as u64 + 1).for_each(|sequence| bypass.remember(sequence));
        assert!(!bypass.has_handled(1));
        assert!(bypass.has_handled(2));
        assert_eq!(bypass.handled(|handled| handled.len()), HANDLED_MAX - 1);
    }
}
