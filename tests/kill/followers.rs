//! Who follows a stream hears again soon after the broker has died that had its consumer.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{self, stream};
use concord_runtime::broker::followed;
use concord_testkit::{connect, wait_for};
use futures::StreamExt;
use tokio::time::{sleep, timeout};

use crate::kill::brokers::{BROKERS, Brokers};

const PATIENCE: Duration = Duration::from_secs(60);
/// It is 17 seconds on one machine, of which a new consumer takes a part; it was 44 as the client does it by itself.
const DEAF_MAX: Duration = Duration::from_secs(35);

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_hears_again_soon_after_its_broker_has_died() {
    let brokers = Brokers::start().await;
    let urls = brokers.url();
    let context = jetstream::new(connect(&urls).await);
    let stream = wait_for("the stream", PATIENCE, async || {
        let config = stream::Config {
            name: "FOLLOWED".to_owned(),
            subjects: vec!["followed".to_owned()],
            num_replicas: BROKERS,
            ..stream::Config::default()
        };
        let made = context.get_or_create_stream(config).await;
        made.map_err(|error| error.to_string())
    })
    .await;
    // On a broker to which this client is not connected: a client that connects anew asks anew.
    let mine = context.client().server_info().server_name;
    let (consumer, its) = wait_for("a consumer elsewhere", PATIENCE, async || {
        let config: OrderedConfig = followed(&context.client());
        let made = stream.create_consumer(config).await;
        let consumer = made.map_err(|error| error.to_string())?;
        let cluster = consumer.cached_info().cluster.clone().unwrap_or_default();
        let leader = cluster.leader.ok_or("no leader")?;
        if leader == mine {
            Err(leader)
        } else {
            Ok((consumer, leader))
        }
    })
    .await;
    let mut messages = consumer.messages().await.expect("it is followed");
    let heard = tokio::spawn(async move { messages.next().await });
    sleep(Duration::from_secs(1)).await;
    let its = (0..BROKERS).find(|one| its == format!("broker-{one}"));
    brokers.kill(its.expect("one of these"));
    let killed = Instant::now();
    wait_for("a message is stored", PATIENCE, async || {
        let sent = context.publish("followed", "news".into()).await;
        let sent = sent.map_err(|error| error.to_string())?.await;
        sent.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let heard = timeout(PATIENCE, heard).await.expect("it is heard");
    heard
        .expect("no panic")
        .expect("a message")
        .expect("no error");
    assert!(killed.elapsed() < DEAF_MAX, "{:?}", killed.elapsed());
}
