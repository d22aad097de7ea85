//! Services that are given nothing new.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::consumer;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_runtime::broker::provision::is_missing;
use concord_runtime::broker::timestamp;
use concord_runtime::{Broker, clock};
use concord_wire::Timestamp;
use futures::TryStreamExt;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::shared::broker_api;
use crate::shared::failure::Failure;
use crate::shared::output;

/// How long to wait before it is looked again whether something is being worked on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// How often it is said what is waited for.
const SAID_INTERVAL: Duration = Duration::from_secs(5);

/// How often the pause is renewed before it would be over.
const RENEWALS: u32 = 4;

/// For how long everything goes on that waits for a further try, beyond the time for an acknowledgement: whoever asks for messages has to ask
/// anew, which services do within four seconds.
const GOES_ON: Duration = Duration::from_secs(1);

/// How long the leader of a consumer may take to hear of a pause that the broker has agreed to.
const HEARD_MAX: Duration = Duration::from_secs(2);

/// The consumers of an installation, which hand nothing over until [`Paused::end`] or until the time is over.
pub(super) struct Paused<'b> {
    broker: &'b Broker,
    for_at_most: Duration,
    /// By stream and name.
    consumers: Vec<(String, String)>,
    /// Those that somebody has paused for longer than a backup does. They are left as they are, also when it ends.
    kept: BTreeSet<(String, String)>,
    pause: Mutex<Pause>,
}

/// The pause that this process has begun; without anything before it has.
#[derive(Default)]
struct Pause {
    /// Until when nothing is handed over for certain.
    over: Option<Instant>,
    /// What the consumers were told last, and before that: not each may have heard of the last yet.
    told: Vec<Timestamp>,
}

impl<'b> Paused<'b> {
    /// Those that there are. None is paused before [`Paused::renew`].
    ///
    /// It fails where one is paused for no longer than a backup pauses it: whoever did that is about to have it go on.
    pub(super) async fn of(broker: &'b Broker, for_at_most: Duration) -> Result<Self, Failure> {
        let (mut consumers, mut kept) = (Vec::new(), BTreeSet::new());
        let mut paused_by_another = None;
        for info in durable(broker).await? {
            let left = info.pause_remaining.filter(|_| info.paused);
            let consumer = (info.stream_name, info.name);
            match left {
                None => consumers.push(consumer),
                Some(left) if left > for_at_most => drop(kept.insert(consumer)),
                Some(left) => {
                    paused_by_another = paused_by_another.max(Some((left, consumer.1)));
                }
            }
        }
        if let Some((left, name)) = paused_by_another {
            return Err(Failure::failed(format!(
                "consumers are paused already, {name} among them: another backup or `concord redeliver` is under way, or one was killed; the \
                 pause ends by itself in {} s, where nobody renews it",
                left.as_secs() + 1
            )));
        }
        Ok(Self {
            broker,
            for_at_most,
            consumers,
            kept,
            pause: Mutex::default(),
        })
    }

    /// Pauses all, or begins the time anew. It fails where something was handed over since it began first.
    pub(super) async fn renew(&self) -> Result<(), Failure> {
        let mut pause = self.pause.lock().await;
        let begun = Instant::now();
        let over = pause.over.unwrap_or(begun + self.for_at_most);
        let millis = u64::try_from(self.for_at_most.as_millis()).unwrap_or(u64::MAX);
        let until = clock::now().plus_millis(millis);
        // What it is told now would hide that it had gone on.
        let renewed = async {
            self.stands_still(&pause.told).await?;
            self.each(Some(until)).await
        };
        let Ok(left) = timeout_at(over, renewed).await else {
            return Err(self.went_on());
        };
        let left = left?;
        if Instant::now() >= over {
            return Err(self.went_on());
        }
        let left = left.into_iter().min().unwrap_or(self.for_at_most);
        if left + begun.elapsed() < self.for_at_most / 2 {
            return Err(Failure::failed(format!(
                "the broker would hand nothing over for {} s only in place of {}; set the clocks of this machine and of the broker, or give it \
                 more time with --pause-max",
                left.as_secs(),
                self.for_at_most.as_secs()
            )));
        }
        let before = pause.told.pop();
        *pause = Pause {
            over: Some(begun + left),
            told: before.into_iter().chain([until]).collect(),
        };
        Ok(())
    }

    /// Fails where a consumer is not paused any more as this process has told it, or as it was found.
    async fn stands_still(&self, told: &[Timestamp]) -> Result<(), Failure> {
        let begun = Instant::now();
        while !told.is_empty() {
            let mut all = durable(self.broker).await?.into_iter();
            let Some(other) = all.find(|info| !self.is_paused(info, told)) else {
                break;
            };
            if begun.elapsed() > HEARD_MAX {
                return Err(Failure::failed(format!(
                    "the services went on before everything was copied, because somebody else has resumed {0}, or paused it anew: another \
                     backup, or `nats consumer resume {1} {0}`; begin again when nobody does",
                    other.name, other.stream_name
                )));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Whether a consumer hands nothing over because of what it was told; also one that is not of those which were paused.
    fn is_paused(&self, info: &consumer::Info, told: &[Timestamp]) -> bool {
        let consumer = place(info);
        if self.kept.contains(&consumer) {
            return info.paused;
        }
        let until = info
            .config
            .pause_until
            .map(|until| timestamp(until.unix_timestamp_nanos()));
        let is_told = until.is_some_and(|until| told.contains(&until));
        info.paused && is_told || !self.consumers.contains(&consumer)
    }

    /// Renews the pause for as long as it is polled; why it cannot any more.
    pub(super) async fn keep(&self) -> Failure {
        loop {
            tokio::time::sleep(self.for_at_most / RENEWALS).await;
            if let Err(failure) = self.renew().await {
                return failure;
            }
        }
    }

    fn went_on(&self) -> Failure {
        Failure::failed(format!(
            "the services went on before everything was copied, because the pause could not be renewed within {} s; begin again, or give it \
             more time with --pause-max",
            self.for_at_most.as_secs()
        ))
    }

    /// Has everything handed over again.
    pub(super) async fn end(&self) -> Result<(), Failure> {
        let answers = timeout(self.for_at_most, self.each(None)).await;
        let answers =
            answers.unwrap_or_else(|_| Err(Failure::unavailable("the broker does not answer")));
        answers.map(drop).map_err(|failure| {
            Failure::failed(format!(
                "the services could not be told to go on ({failure}); they do so by themselves within {} s",
                self.for_at_most.as_secs()
            ))
        })
    }

    /// Asks about all at once: there may be hundreds, and each has to be asked whatever is said about another.
    async fn each(&self, until: Option<Timestamp>) -> Result<Vec<Duration>, Failure> {
        let asked = self
            .consumers
            .iter()
            .map(|(stream, consumer)| broker_api::pause(self.broker, (stream, consumer), until));
        let answers: Result<Vec<_>, _> = join_all(asked).await.into_iter().collect();
        Ok(answers?.into_iter().flatten().collect())
    }

    /// Waits until no event and no deadline is being worked on. Messages may be: they are copied before the events that follow from them.
    ///
    /// The broker counts alike what is worked on, what waits for a further try, and what a process had that is gone. Who works says so within
    /// the time that a consumer waits; what is left after twice that would stay for as long as nothing is handed over.
    pub(super) async fn quiet(&self, within: Duration) -> Result<(), Failure> {
        let mut until = Instant::now() + within;
        let (mut since, mut is_asked) = (Instant::now(), false);
        let mut said = None;
        loop {
            let infos = self.waited_for().await?;
            let busy = infos.iter().filter(|info| info.num_ack_pending > 0);
            let Some(patience) = busy.clone().map(|info| info.config.ack_wait).max() else {
                return Ok(());
            };
            // Some of the time is for letting go on, however long a consumer waits.
            let patience = patience.min(within / 4);
            is_asked |= infos.iter().any(|info| info.num_waiting > 0);
            let is_stuck = since.elapsed() > patience.saturating_mul(2);
            let is_kept = |info: &consumer::Info| self.kept.contains(&place(info));
            if is_stuck && (!is_asked || busy.clone().all(is_kept)) {
                // No service runs, or none is to be given it. What is left is given to those that are started, here and where the copy is
                // restored.
                return Ok(());
            }
            if Instant::now() > until {
                return Err(still_busy(within, busy));
            }
            if said.is_none_or(|said: Instant| said.elapsed() >= SAID_INTERVAL) {
                output::complain(&format!("waiting until this is done: {}", named(busy)));
                said = Some(Instant::now());
            }
            if is_stuck {
                output::complain(
                    "what waits for a further try is given to the services for a moment",
                );
                self.let_go_on(patience).await?;
                (since, is_asked) = (Instant::now(), false);
                // What was handed over last has time to be done.
                until = until.max(since + patience);
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// The consumers of events and deadlines that a backup waits for. It does not for those by which people and callbacks are told: these may
    /// wait long for a further try, and told again after a restore is a repetition.
    async fn waited_for(&self) -> Result<Vec<consumer::Info>, Failure> {
        let layout = &self.broker.layout;
        let telling = layout.adapter_consumers().into_iter().filter(|one| {
            matches!(
                one.kind,
                ConsumerKind::Notices(_) | ConsumerKind::Completions
            )
        });
        let telling: BTreeSet<String> = telling.map(|one| one.name).collect();
        let mut all = Vec::new();
        for kind in [StreamKind::Events, StreamKind::Timers] {
            all.extend(infos(self.broker, &layout.stream_name(kind)).await?);
        }
        all.retain(|info| info.config.durable_name.is_some() && !telling.contains(&info.name));
        Ok(all)
    }

    /// Has everything handed over for a moment, so that what waits is tried again, or by another process, and pauses all anew.
    async fn let_go_on(&self, patience: Duration) -> Result<(), Failure> {
        {
            // Whoever renews the pause waits meanwhile, and begins it anew.
            let mut pause = self.pause.lock().await;
            self.end().await?;
            tokio::time::sleep(patience + GOES_ON).await;
            *pause = Pause::default();
        }
        self.renew().await
    }
}

fn still_busy<'i>(within: Duration, busy: impl Iterator<Item = &'i consumer::Info>) -> Failure {
    Failure::failed(format!(
        "after {} s something is still being worked on, or waits for a further try: {}; give it more time with --wait, or mend what the logs of \
         these services say fails again and again, or stop all services first",
        within.as_secs(),
        named(busy)
    ))
}

/// How much each of these consumers waits for.
fn named<'i>(busy: impl Iterator<Item = &'i consumer::Info>) -> String {
    let busy = busy.map(|info| format!("{} of {}", info.num_ack_pending, info.name));
    let busy: Vec<String> = busy.collect();
    busy.join(", ")
}

/// The stream of a consumer, and its name.
fn place(info: &consumer::Info) -> (String, String) {
    (info.stream_name.clone(), info.name.clone())
}

/// The consumers that a backup has to do with: those of whoever looks end with him.
async fn durable(broker: &Broker) -> Result<Vec<consumer::Info>, Failure> {
    let mut all = Vec::new();
    for kind in StreamKind::ALL {
        all.extend(infos(broker, &broker.layout.stream_name(kind)).await?);
    }
    all.retain(|info| info.config.durable_name.is_some());
    Ok(all)
}

/// The consumers of a stream; none where there is no such stream.
pub(super) async fn infos(broker: &Broker, stream: &str) -> Result<Vec<consumer::Info>, Failure> {
    let unlisted = |error: &dyn std::error::Error| {
        Failure::unavailable(format!("the consumers cannot be listed: {error}"))
    };
    let stream = match broker.jetstream.get_stream(stream).await {
        Ok(stream) => stream,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unlisted(&error)),
    };
    let infos: Result<Vec<_>, _> = stream.consumers().try_collect().await;
    infos.map_err(|error| unlisted(&error))
}
