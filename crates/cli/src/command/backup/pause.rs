//! Services that are given nothing new.

use std::time::Duration;

use async_nats::jetstream::consumer;
use concord_events::topology::StreamKind;
use concord_runtime::{Broker, clock};
use futures::TryStreamExt;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::shared::broker_api;
use crate::shared::failure::Failure;

/// How long to wait before it is looked again whether something is being worked on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// How often the pause is renewed before it would be over.
const RENEWALS: u32 = 4;

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
        let body = json!({ "pause_until": clock::now().plus_millis(millis) });
        let Ok(answers) = timeout_at(over, self.each(&body)).await else {
            return Err(self.went_on());
        };
        let answers = answers?;
        if Instant::now() >= over {
            return Err(self.went_on());
        }
        // What counts is the broker's clock.
        let left = answers
            .iter()
            .map(|answer| answer.get("pause_remaining").and_then(Value::as_u64));
        let left = left.map(|nanos| Duration::from_nanos(nanos.unwrap_or(0)));
        let left = left.min().unwrap_or(self.for_at_most);
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
        let answers = timeout(self.for_at_most, self.each(&json!({}))).await;
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
    async fn each(&self, body: &Value) -> Result<Vec<Value>, Failure> {
        let asked = self.consumers.iter().map(|(stream, consumer)| {
            let subject = format!("$JS.API.CONSUMER.PAUSE.{stream}.{consumer}");
            broker_api::ask(self.broker, subject, body)
        });
        let answers: Result<Vec<_>, _> = join_all(asked).await.into_iter().collect();
        Ok(answers?.into_iter().flatten().collect())
    }

    /// Waits until no event and no deadline is being worked on. Messages may be: they are copied before the events that follow from them.
    pub(super) async fn quiet(&self, within: Duration) -> Result<(), Failure> {
        let until = Instant::now() + within;
        loop {
            let mut busy = Vec::new();
            for kind in [StreamKind::Events, StreamKind::Timers] {
                let stream = self.broker.layout.stream_name(kind);
                let infos = infos(self.broker, &stream).await?.into_iter();
                let pending = infos.filter(|info| info.num_ack_pending > 0);
                busy.extend(
                    pending.map(|info| format!("{} of {}", info.num_ack_pending, info.name)),
                );
            }
            if busy.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(Failure::failed(format!(
                    "after {} s something is still being worked on, or waits for a further try: {}; give it more time with \
                     --wait, or stop the services first",
                    within.as_secs(),
                    busy.join(", ")
                )));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

/// The consumers of a stream; none where there is no such stream.
pub(super) async fn infos(broker: &Broker, stream: &str) -> Result<Vec<consumer::Info>, Failure> {
    let Ok(stream) = broker.jetstream.get_stream(stream).await else {
        return Ok(Vec::new());
    };
    let infos: Result<Vec<_>, _> = stream.consumers().try_collect().await;
    infos.map_err(|error| Failure::failed(format!("the consumers cannot be listed: {error}")))
}
