//! The raw broker: what a hand-written loop does with the same messages and none of Concord's decisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer, stream};
use concord_installation::NatsServer;
use concord_wire::header;
use futures::StreamExt;
use tokio::sync::Semaphore;

use super::measurements::Options;
use super::process::{Rate, Times};

/// Bytes of a message in, about those of an answer in a debate.
const IN_BYTES: usize = 600;
/// Bytes of a message appended, about those of the fact it leads to.
const OUT_BYTES: usize = 1_200;
/// Messages that belong to one aggregate, as the ten answers of a debate in [`super::step`]; in the same order, so the first
/// of every aggregate comes before the second of any.
const PER_AGGREGATE: usize = 10;

/// The last sequence of each aggregate: what a hand-written loop must know to append under the lock.
type Heads = Arc<Vec<AtomicU64>>;

/// Messages pulled, appended under the lock and acknowledged.
pub(super) async fn measure(options: &Options, round: usize) -> anyhow::Result<Rate> {
    let server = NatsServer::spawn(
        &NatsServer::find()?,
        &options.directory.join(format!("raw-{round}")),
        None,
    )
    .await?;
    let client = async_nats::connect(server.url()).await?;
    let context = jetstream::new(client);
    let input = context.create_stream(stream::Config {
        name: "IN".into(),
        subjects: vec!["in.>".into()],
        ..Default::default()
    });
    let input = input.await?;
    let output = stream::Config {
        name: "OUT".into(),
        subjects: vec!["out.>".into()],
        allow_direct: true,
        ..Default::default()
    };
    context.create_stream(output).await?;
    fill(&context, options.messages, aggregates(options)).await?;
    let config = consumer::pull::Config {
        durable_name: Some("work".into()),
        max_ack_pending: 20_000,
        ack_wait: Duration::from_secs(30),
        ..Default::default()
    };
    let consumer = input.create_consumer(config).await?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(options.in_flight * 2)
        .messages()
        .await?
        .take(options.messages);
    let permits = Arc::new(Semaphore::new(options.in_flight));
    let heads: Heads = Arc::new(
        (0..aggregates(options))
            .map(|_| AtomicU64::new(0))
            .collect(),
    );
    let broker = server.pid().context("the broker has ended")?;
    let times = || Times::of([("nats-server", broker), ("client", std::process::id())]);
    let (started, before) = (Instant::now(), times()?);
    while let Some(message) = messages.next().await {
        let message = message?;
        let permit = Arc::clone(&permits).acquire_owned().await?;
        let (context, heads) = (context.clone(), Arc::clone(&heads));
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = append(&context, &heads, &message).await {
                eprintln!("a raw append failed: {error}");
            }
        });
    }
    let in_flight = u32::try_from(options.in_flight).context("too many in flight")?;
    let _all = permits.acquire_many(in_flight).await?;
    let rate = Rate::new(options.messages, started.elapsed(), &before, &times()?);
    server.stop().await;
    Ok(rate)
}

fn aggregates(options: &Options) -> usize {
    options.messages.div_ceil(PER_AGGREGATE)
}

async fn fill(
    context: &jetstream::Context,
    messages: usize,
    aggregates: usize,
) -> anyhow::Result<()> {
    let body = bytes::Bytes::from(vec![b'x'; IN_BYTES]);
    let mut pending = Vec::new();
    for number in 0..messages {
        let subject = format!("in.{}.{}", number % aggregates, number / aggregates);
        pending.push(context.publish(subject, body.clone()).await?.into_future());
        if pending.len() == 1_000 {
            futures::future::try_join_all(pending.drain(..)).await?;
        }
    }
    futures::future::try_join_all(pending).await?;
    Ok(())
}

async fn append(
    context: &jetstream::Context,
    heads: &Heads,
    message: &jetstream::Message,
) -> anyhow::Result<()> {
    let sequence = message
        .info()
        .map_err(anyhow::Error::from_boxed)?
        .stream_sequence;
    let aggregate = (sequence - 1) % heads.len() as u64;
    let head = usize::try_from(aggregate)
        .ok()
        .and_then(|aggregate| heads.get(aggregate))
        .context("no such aggregate")?;
    let mut headers = HeaderMap::new();
    headers.insert(header::MESSAGE_ID, format!("e-{sequence}"));
    headers.insert(
        header::EXPECTED_LAST_SUBJECT_SEQUENCE,
        head.load(Ordering::Acquire).to_string(),
    );
    headers.insert(header::EXPECTED_LAST_SUBJECT, format!("out.{aggregate}.*"));
    let body = vec![b'y'; OUT_BYTES].into();
    let stored = context
        .publish_with_headers(format!("out.{aggregate}.answered"), headers, body)
        .await?
        .await?;
    head.store(stored.sequence, Ordering::Release);
    message.ack().await.map_err(anyhow::Error::from_boxed)
}
