//! `concord redeliver` on three brokers, under load: what agents have been given and have not acknowledged is given again when the
//! consumer gets another leader.
//!
//! nats-server sets a consumer back by an entry in the consumer's own log. Deliveries that follow it there, because they were made before
//! it was applied, leave the copies of the state with their numbers, and everything up to these numbers is passed over by the next leader
//! (record 110).

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::{self, consumer::PullConsumer, consumer::pull, stream::Stream};
use concord_runtime::clock;
use concord_testkit::{COMMAND_MAX, command, connect, finish, programs_of, wait_for};
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;

use crate::kill::brokers::{BROKERS, Brokers};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long it takes from one broker to another, so that deliveries are made while the entry is on its way.
const DELAY: Duration = Duration::from_millis(50);
/// How often something is stored meanwhile.
const INTERVAL: Duration = Duration::from_millis(5);
const AGENT: &str = "test-agent-ann";
/// More than are handed out again, and after it, until the end of the test: what is passed over is behind a number that is not reached.
const BEFORE: usize = 4_000;
const UNSETTLED: usize = 20;

/// Makes Concord's streams, on all three.
async fn streams(brokers: &Brokers) {
    let program = programs_of(&["concord-cli"]).join("concord");
    wait_for("the streams", PATIENCE, async || {
        let mut migrate = command(&program);
        let migrate = migrate.args(["migrate", "--server", &brokers.url(), "--apply"]);
        let made = finish(migrate.env("CONCORD_STORAGE__REPLICAS", BROKERS.to_string())).await;
        (made.code == 0).then_some(()).ok_or(made.err)
    })
    .await;
}

/// Stores so many messages to an agent.
async fn store(context: &jetstream::Context, to: &str, many: usize) {
    let stored = (0..many).map(async |_| {
        let subject = format!("concord.v1.msg.c-1.ben.{to}.status");
        context.publish(subject, "{}".into()).await?.await
    });
    try_join_all(stored).await.expect("they are stored");
}

/// Reads and acknowledges, until all that is stored is settled.
async fn settle(consumer: &PullConsumer) {
    wait_for("all to be settled", PATIENCE, async || {
        let batch = consumer.fetch().max_messages(500).messages().await;
        let batch = batch.map_err(|error| error.to_string())?;
        let settled = batch.try_for_each(async |message| message.ack().await);
        settled.await.map_err(|error| error.to_string())?;
        let info = consumer.get_info().await;
        let info = info.map_err(|error| error.to_string())?;
        let left = info.num_pending + info.num_ack_pending as u64;
        (left == 0).then_some(()).ok_or(format!("{left} are left"))
    })
    .await;
}

/// The numbers in the stream of what a consumer is given within this time, none of it acknowledged. A leader that goes ends it.
async fn given(consumer: &PullConsumer, many: usize, within: Duration) -> BTreeSet<u64> {
    let batch = consumer.fetch().max_messages(many);
    let batch = batch.expires(within).messages().await.expect("an answer");
    let messages = batch.take_while(|message| std::future::ready(message.is_ok()));
    let numbers =
        messages.map(|message| message.expect("it is one").info().unwrap().stream_sequence);
    numbers.collect().await
}

/// Has what was stored just now handed out again, while more is stored and given.
async fn redeliver_under_load(brokers: &Brokers, context: &jetstream::Context, ann: &PullConsumer) {
    let since = clock::now().to_string();
    store(context, "ann", 1).await;
    settle(ann).await;
    let program = programs_of(&["concord-cli"]).join("concord");
    let mut redeliver = command(&program);
    redeliver.args(["--server", &brokers.url(), "redeliver", "--since", &since]);
    let storing = async {
        let mut next = tokio::time::interval(INTERVAL);
        loop {
            next.tick().await;
            let subject = "concord.v1.msg.c-1.ben.ann.status";
            let sent = context.client().publish(subject, "{}".into()).await;
            sent.expect("the broker is there");
        }
    };
    let reading = async {
        loop {
            // On a slow machine the client may think that the broker is gone; it asks again.
            let messages = ann.messages().await.expect("they are read");
            let _ = messages
                .try_for_each(async |message| {
                    message.ack().await.expect("the broker is there");
                    Ok(())
                })
                .await;
        }
    };
    let done = tokio::select! {
        done = finish(&mut redeliver) => done,
        () = storing => unreachable!("it goes on"),
        () = reading => unreachable!("it goes on"),
    };
    let said = done.good();
    assert!(said.contains(AGENT), "{said}");
}

async fn agent(stream: &Stream) -> PullConsumer {
    let config = pull::Config {
        durable_name: Some(AGENT.to_owned()),
        filter_subject: "concord.v1.msg.*.*.ann.*".to_owned(),
        ack_wait: Duration::from_secs(3),
        ..pull::Config::default()
    };
    let made = stream.create_consumer(config).await;
    made.expect("the agent's consumer")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_settled_outlives_a_leader_after_it_was_set_back() {
    let brokers = Brokers::start().await;
    streams(&brokers).await;
    let urls = brokers.url();
    let context = jetstream::new(connect(&urls).await);
    let stream = context.get_stream("CONCORD_MESSAGES").await.unwrap();
    let ann = agent(&stream).await;
    for _ in 0..BEFORE / 200 {
        store(&context, "ann", 200).await;
    }
    settle(&ann).await;
    brokers.delay(DELAY);
    redeliver_under_load(&brokers, &context, &ann).await;
    settle(&ann).await;

    store(&context, "ann", UNSETTLED).await;
    store(&context, "cyd", 3).await;
    let unsettled = given(&ann, UNSETTLED, COMMAND_MAX).await;
    assert_eq!(unsettled.len(), UNSETTLED);
    // What it asks for now finds that nothing more is for ann, which the consumer notes.
    assert!(given(&ann, 1, Duration::from_millis(500)).await.is_empty());
    let step_down = format!("CONSUMER.LEADER.STEPDOWN.CONCORD_MESSAGES.{AGENT}");
    wait_for("the leader to go", PATIENCE, async || {
        let answer: Result<Value, _> = context.request(step_down.clone(), &()).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let is_gone = answer["success"] == true;
        is_gone.then_some(()).ok_or(answer.to_string())
    })
    .await;

    let mut again = BTreeSet::new();
    wait_for("all to be given again", PATIENCE, async || {
        again.extend(given(&ann, UNSETTLED, Duration::from_secs(2)).await);
        let missing = unsettled.difference(&again).count();
        (missing == 0)
            .then_some(())
            .ok_or(format!("{missing} are missing"))
    })
    .await;
}
