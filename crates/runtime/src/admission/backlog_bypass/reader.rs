//! Reads past the backlog of a flood what others than the flooding senders sent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use concord_events::topology;
use concord_wire::AgentId;
use concord_wire::subject::Service;
use prometheus_client::metrics::gauge::Gauge;

use super::unknown_senders::UnknownSenders;
use super::{BacklogBypass, is_over};
use crate::admission::rate_limit::{RateLimit, Senders};
use crate::admission::{Admission, Gate, Limited};
use crate::broker::Broker;
use crate::broker::provision::{ACK_PENDING_MAX, PullConsumer};
use crate::broker::pull::{Pull, Taken};
use crate::error_chain::ErrorChain;

/// How many senders are read past a flood: the services, then those that were heard last, then whoever is registered, then
/// unknown ones. The broker compares each message with each of them.
const SENDERS_MAX: usize = 256;
/// How often the reader looks who else is there, and whether the flood is over.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// After this time without a replica that reads, the broker forgets the consumer.
const INACTIVE_MAX: Duration = Duration::from_secs(30);

pub(super) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Has messages worked on that were read past a backlog.
pub(crate) trait Intake: Send + Sync + 'static {
    /// Starts to work on a message; returns when it is under way.
    fn start(&self, taken: Taken) -> impl Future<Output = ()> + Send;
}

/// Reads past floods in one consumer.
pub(crate) struct BypassReader {
    pub(super) broker: Broker,
    pub(super) admission: Arc<Admission>,
    pub(super) bypass: Arc<BacklogBypass>,
    pub(super) limit: RateLimit,
    /// The name of the consumer that is read in order.
    flooded: String,
    /// How many messages wait in it, also while another replica reads it: this one may stand by before the flood is over.
    lag: Gauge,
    /// The consumer that reads past the flood. Its filter is that of all senders.
    pub(super) consumer: PullConsumer,
}

/// The consumer that reads past a flood, as this replica wants it.
struct BoundConsumer {
    /// The subjects of the senders that this replica has it read; another replica may have it read more.
    subjects: BTreeSet<String>,
    /// Whether it existed and was created anew.
    anew: bool,
}

impl BypassReader {
    /// The reader past floods in `consumer`, whose gate is `gate`; none where its senders have no limit.
    pub(crate) fn new(
        broker: &Broker,
        gate: &Gate,
        consumer: &PullConsumer,
        lag: &Gauge,
    ) -> Option<Self> {
        let Limited { limit, bypass, .. } = gate.limited.as_ref()?;
        Some(Self {
            broker: broker.clone(),
            admission: Arc::clone(&gate.admission),
            bypass: Arc::clone(bypass),
            limit: *limit,
            flooded: consumer.name.clone(),
            lag: lag.clone(),
            consumer: PullConsumer {
                name: topology::bypass(&consumer.name),
                ..consumer.clone()
            },
        })
    }

    /// The consumer that reads past the flood, while there is one.
    pub(crate) fn consumer(&self) -> &PullConsumer {
        &self.consumer
    }

    fn is_over(&self) -> bool {
        is_over(self.lag.get())
    }

    /// Reads past floods until the service stops.
    pub(crate) async fn run(self, intake: impl Intake) {
        let stop = &self.admission.stop;
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.bypass.needed.notified() => {}
                () = stop.cancelled() => return,
            }
            let (name, flooded) = (&self.consumer.name, &self.flooded);
            tracing::warn!(consumer = %name, "A flood: what others send is read past it.");
            let restriction =
                format!("a flood waits in {flooded}; what others send is read past it");
            self.admission.restrictions.set(flooded, Some(restriction));
            while !self.is_over() && !stop.is_cancelled() {
                if let Err(error) = self.read(&intake).await {
                    tracing::warn!(consumer = %name, error = %ErrorChain(&*error), "Reading past a flood failed; trying again.");
                    tokio::select! {
                        () = tokio::time::sleep(LOOK_INTERVAL) => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
            self.bypass.is_needed.store(false, Ordering::Relaxed);
            self.admission.restrictions.set(flooded, None);
        }
    }

    /// The subjects of what one sender sends, of what is read past the flood.
    pub(super) fn only_from(&self, sender: &AgentId) -> String {
        self.broker
            .subjects()
            .only_from(&self.consumer.filter, sender)
    }

    /// Reads what others than the flooding senders sent until the flood is over.
    async fn read(&self, intake: &impl Intake) -> Result<(), AnyError> {
        let stream = &self.consumer.stream;
        let stream = self.broker.jetstream.get_stream_no_info(stream).await?;
        let unknown = UnknownSenders::default();
        tokio::select! {
            read = self.read_and_look(&stream, &unknown, intake) => read?,
            never = unknown.watch(self, &stream) => never,
        }
        if !self.admission.stop.is_cancelled() {
            // Another replica that still reads from it creates it anew.
            stream.delete_consumer(&self.consumer.name).await?;
        }
        Ok(())
    }

    async fn read_and_look(
        &self,
        stream: &Stream<()>,
        unknown: &UnknownSenders,
        intake: &impl Intake,
    ) -> Result<(), AnyError> {
        let bound = self.bind(stream, &BTreeSet::new(), unknown).await?;
        let mut read = bound.subjects;
        let mut messages = Pull::start(&self.broker, &self.consumer, &self.broker.room).await?;
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        loop {
            tokio::select! {
                taken = messages.next() => intake.start(taken?).await,
                _ = look.tick() => {
                    if self.is_over() {
                        break;
                    }
                    let bound = self.bind(stream, &read, unknown).await?;
                    if bound.anew {
                        // What was asked of the earlier one is not answered any more.
                        messages = Pull::start(&self.broker, &self.consumer, &self.broker.room).await?;
                    }
                    read = bound.subjects;
                }
                () = self.admission.stop.cancelled() => break,
            }
        }
        messages.stop().await
    }

    /// The subjects of the senders that are to be read past the flood.
    fn wanted(&self, senders: &Senders, unknown: &UnknownSenders) -> BTreeSet<String> {
        let mut wanted: BTreeSet<String> = Service::ALL
            .iter()
            .map(|service| self.only_from(&service.agent_id()))
            .collect();
        let registered = self.admission.registered();
        let unknown = unknown.found();
        let others = registered
            .iter()
            .chain(&unknown)
            .filter(|agent| !senders.flooding.contains(agent));
        for sender in senders.quiet.iter().chain(others) {
            if wanted.len() >= SENDERS_MAX {
                break;
            }
            wanted.insert(self.only_from(sender));
        }
        wanted
    }

    /// Creates the consumer, from where the other one has come to. Where a sender is new it is created anew: one that was only
    /// updated would go on from where it has come to, and leave what the new sender sent before that to be read in order.
    async fn bind(
        &self,
        stream: &Stream<()>,
        read: &BTreeSet<String>,
        unknown: &UnknownSenders,
    ) -> Result<BoundConsumer, AnyError> {
        let senders = self.admission.limits.senders(self.limit);
        let wanted = self.wanted(&senders, unknown);
        if wanted == *read {
            return Ok(BoundConsumer {
                subjects: wanted,
                anew: false,
            });
        }
        // Another replica may have created it, and may know others.
        let found = stream.consumer_info(&self.consumer.name).await.ok();
        let found = found.map(|info| info.config);
        let is_new = |subject: &String| {
            found
                .as_ref()
                .is_some_and(|found| !found.filter_subjects.contains(subject))
        };
        let anew = wanted.iter().any(is_new);
        let start_sequence = match found.as_ref().map(|config| config.deliver_policy) {
            Some(DeliverPolicy::ByStartSequence { start_sequence }) if !anew => start_sequence,
            _ => self.bypass.position(),
        };
        let flooding: BTreeSet<String> = senders
            .flooding
            .iter()
            .map(|sender| self.only_from(sender))
            .collect();
        let others = found.into_iter().flat_map(|config| config.filter_subjects);
        let others = others.filter(|other| !flooding.contains(other));
        let mut filters = wanted.clone();
        filters.extend(others.take(SENDERS_MAX.saturating_sub(wanted.len())));
        if anew {
            stream.delete_consumer(&self.consumer.name).await?;
        }
        let config = self.config(start_sequence, filters);
        stream.create_consumer(config).await?;
        Ok(BoundConsumer {
            subjects: wanted,
            anew,
        })
    }

    fn config(&self, start_sequence: u64, filters: BTreeSet<String>) -> pull::Config {
        pull::Config {
            durable_name: Some(self.consumer.name.clone()),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.consumer.ack_wait,
            max_deliver: -1,
            max_ack_pending: ACK_PENDING_MAX,
            filter_subjects: filters.into_iter().collect(),
            inactive_threshold: INACTIVE_MAX,
            memory_storage: true,
            ..pull::Config::default()
        }
    }
}
