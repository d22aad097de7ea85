//! Services that are given nothing new.

use std::time::Duration;

use async_nats::jetstream::consumer;
use concord_events::topology::StreamKind;
use concord_runtime::{Broker, clock};
use futures::TryStreamExt;
use serde_json::json;
use tokio::time::Instant;

use crate::shared::broker_api;
use crate::shared::failure::Failure;

/// How long to wait before it is looked again whether something is being worked on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The consumers of an installation, which hand nothing over until [`Paused::end`] or until the time is over.
pub(super) struct Paused<'b> {
    broker: &'b Broker,
    for_at_most: Duration,
    /// By stream and name.
    consumers: Vec<(String, String)>,
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
        })
    }

    /// Pauses all, or begins the time anew.
    pub(super) async fn renew(&self) -> Result<(), Failure> {
        let millis = u64::try_from(self.for_at_most.as_millis()).unwrap_or(u64::MAX);
        let until = clock::now().plus_millis(millis);
        self.each(&json!({ "pause_until": until })).await
    }

    /// Has everything handed over again.
    pub(super) async fn end(&self) -> Result<(), Failure> {
        self.each(&json!({})).await.map_err(|failure| {
            Failure::failed(format!(
                "the services could not be told to go on ({failure}); they do so by themselves within {} s",
                self.for_at_most.as_secs()
            ))
        })
    }

    async fn each(&self, body: &serde_json::Value) -> Result<(), Failure> {
        for (stream, consumer) in &self.consumers {
            let subject = format!("$JS.API.CONSUMER.PAUSE.{stream}.{consumer}");
            broker_api::ask(self.broker, subject, body).await?;
        }
        Ok(())
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
