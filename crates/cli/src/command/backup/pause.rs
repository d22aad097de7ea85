//! Services that are given nothing new.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::consumer;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_runtime::{Broker, clock};
use concord_wire::Timestamp;
use futures::TryStreamExt;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::shared::broker_api;
use crate::shared::failure::Failure;

/// How long to wait before it is looked again whether something is being worked on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// How often the pause is renewed before it would be over.
const RENEWALS: u32 = 4;

/// For how long everything goes on that waits for a further try, beyond the time for an acknowledgement: whoever asks for messages has to ask
/// anew, which services do within four seconds.
const GOES_ON: Duration = Duration::from_secs(1);

/// The consumers of an installation, which hand nothing over until [`Paused::end`] or until the time is over.
pub(super) struct Paused<'b> {
    broker: &'b Broker,
    for_at_most: Duration,
    /// By stream and name.
    consumers: Vec<(String, String)>,
    /// Until when nothing is handed over for certain; `None` before the first pause.
    until: Mutex<Option<Instant>>,
}

impl<'b> Paused<'b> {
    /// Those that there are. None is paused before [`Paused::renew`].
    pub(super) async fn of(broker: &'b Broker, for_at_most: Duration) -> Result<Self, Failure> {
        let mut consumers = Vec::new();
        for kind in StreamKind::ALL {
            let stream = broker.layout.stream_name(kind);
            let infos = infos(broker, &stream).await?.into_iter();
            let durable = infos.filter(|info| info.config.durable_name.is_some());
            consumers.extend(durable.map(|info| (stream.clone(), info.name)));
        }
        Ok(Self {
            broker,
            for_at_most,
            consumers,
            until: Mutex::new(None),
        })
    }

    /// Pauses all, or begins the time anew. It fails where something was handed over since it began first.
    pub(super) async fn renew(&self) -> Result<(), Failure> {
        let mut until = self.until.lock().await;
        let begun = Instant::now();
        let over = until.unwrap_or(begun + self.for_at_most);
        let millis = u64::try_from(self.for_at_most.as_millis()).unwrap_or(u64::MAX);
        let pause_until = Some(clock::now().plus_millis(millis));
        let Ok(left) = timeout_at(over, self.each(pause_until)).await else {
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
        *until = Some(begun + left);
        Ok(())
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
            if is_stuck && !is_asked {
                // No service runs. What is left is given to those that are started, here and where the copy is restored.
                return Ok(());
            }
            if Instant::now() > until {
                return Err(still_busy(within, busy));
            }
            if is_stuck {
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
            let mut until = self.until.lock().await;
            self.end().await?;
            tokio::time::sleep(patience + GOES_ON).await;
            *until = None;
        }
        self.renew().await
    }
}

fn still_busy<'i>(within: Duration, busy: impl Iterator<Item = &'i consumer::Info>) -> Failure {
    let busy = busy.map(|info| format!("{} of {}", info.num_ack_pending, info.name));
    let busy: Vec<String> = busy.collect();
    Failure::failed(format!(
        "after {} s something is still being worked on, or waits for a further try: {}; give it more time with --wait, or mend what the logs of \
         these services say fails again and again, or stop all services first",
        within.as_secs(),
        busy.join(", ")
    ))
}

/// The consumers of a stream; none where there is no such stream.
pub(super) async fn infos(broker: &Broker, stream: &str) -> Result<Vec<consumer::Info>, Failure> {
    let Ok(stream) = broker.jetstream.get_stream(stream).await else {
        return Ok(Vec::new());
    };
    let infos: Result<Vec<_>, _> = stream.consumers().try_collect().await;
    infos.map_err(|error| Failure::failed(format!("the consumers cannot be listed: {error}")))
}
