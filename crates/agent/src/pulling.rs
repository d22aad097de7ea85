//! What the broker keeps for the agent in durable consumers of its own, which it asks for.

use std::sync::Arc;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, Info, pull};
use async_nats::jetstream::{self};
use concord_wire::subject::AgentInbox;
use futures::StreamExt;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::builder::Hears;
use crate::{Agent, Error};

type PullConsumer = jetstream::consumer::Consumer<pull::Config>;
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How many messages of a durable inbox are handled at the same time, on each lane. The broker keeps the others.
const CONCURRENT_MAX: usize = 32;
/// How long the broker keeps a request for messages while it has none.
const PULL_EXPIRES: Duration = Duration::from_secs(2);
/// A broker that sends nothing for so long has lost the request, for example because it was restarted.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long to wait before the broker is asked again after an error.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// The broker delivers a message again that is not acknowledged for so long.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered at most.
const DELIVERIES_MAX: i64 = 5;

/// A durable inbox that is being read.
struct Pulling {
    inbox: AgentInbox,
    consumer: PullConsumer,
    permits: Arc<Semaphore>,
    /// Everything until then that is the agent's was given to it, by the clock of the broker.
    given_until: DateTime,
}

impl Agent {
    /// Makes a durable inbox if it is not there, and begins to take what it holds.
    pub(crate) async fn start_pulling(&self, inbox: AgentInbox) -> Result<(), Error> {
        let consumer = self.consumer(&inbox, DeliverPolicy::New).await;
        let consumer = consumer.map_err(Error::broker("give an inbox"))?;
        let mut pulling = Pulling {
            inbox,
            given_until: given_until(consumer.cached_info()),
            consumer,
            permits: Arc::new(Semaphore::new(CONCURRENT_MAX)),
        };
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            let begun = agent.inner.closing.begun.clone();
            begun.run_until_cancelled(agent.pull(&mut pulling)).await;
        });
        Ok(())
    }

    async fn pull(&self, pulling: &mut Pulling) {
        loop {
            if let Err(error) = self.pull_batch(pulling).await {
                tracing::warn!(%error, "No messages from the broker.");
                sleep(RETRY).await;
                self.look_again(pulling).await;
            }
        }
    }

    /// A consumer that exists already is used as it is: it knows what was received before. Otherwise it is made, and begins there.
    async fn consumer(
        &self,
        inbox: &AgentInbox,
        begins: DeliverPolicy,
    ) -> Result<PullConsumer, AnyError> {
        let jetstream = &self.inner.jetstream;
        let stream = jetstream.get_stream_no_info(&inbox.stream).await?;
        if let Ok(consumer) = stream.get_consumer::<pull::Config>(&inbox.consumer).await {
            return Ok(consumer);
        }
        let config = pull::Config {
            durable_name: Some(inbox.consumer.clone()),
            filter_subject: inbox.filter.clone(),
            ack_policy: AckPolicy::Explicit,
            deliver_policy: begins,
            ack_wait: ACK_WAIT,
            max_deliver: DELIVERIES_MAX,
            ..pull::Config::default()
        };
        Ok(stream.create_consumer(config).await?)
    }

    /// Makes the consumer again if it is gone, or its stream was made anew: from behind what the agent was given.
    async fn look_again(&self, pulling: &mut Pulling) {
        let start_time = pulling.given_until + Duration::from_nanos(1);
        let begins = DeliverPolicy::ByStartTime { start_time };
        match self.consumer(&pulling.inbox, begins).await {
            Ok(consumer) => pulling.consumer = consumer,
            Err(error) => {
                let inbox = &pulling.inbox.consumer;
                tracing::warn!(%error, inbox, "An inbox was not made again.");
            }
        }
    }

    /// Pulls as many messages as there are free permits, and handles each as it comes. No more are pulled, because a message that
    /// waits here would use up its few deliveries.
    async fn pull_batch(&self, pulling: &mut Pulling) -> Result<(), AnyError> {
        let permits = &pulling.permits;
        let mut free = Arc::clone(permits).acquire_owned().await?;
        while let Ok(another) = Arc::clone(permits).try_acquire_owned() {
            free.merge(another);
        }
        let mut batch = pulling
            .consumer
            .batch()
            .max_messages(free.num_permits())
            .expires(PULL_EXPIRES)
            .messages()
            .await?;
        while let Ok(Some(delivery)) = timeout(SILENCE_MAX, batch.next()).await {
            let Some(permit) = free.split(1) else { break };
            let (agent, delivery) = (self.clone(), delivery?);
            let stored = delivery.info().map(|info| info.published);
            pulling.given_until =
                stored.map_or(pulling.given_until, |at| at.max(pulling.given_until));
            self.inner.working.spawn(async move {
                agent.process(delivery, Hears::OwnInbox).await;
                drop(permit);
            });
        }
        Ok(())
    }
}

/// The time until which everything was given to the agent when its consumer was found, by the clock of the broker.
fn given_until(found: &Info) -> DateTime {
    let has_all = found.num_pending == 0 && found.num_ack_pending == 0;
    // What waits there may be as old as the consumer.
    let given = found.delivered.last_active.filter(|_| has_all);
    given.unwrap_or(found.created)
}
