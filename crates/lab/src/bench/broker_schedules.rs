//! The broker's own lateness: bare schedules that are due at one instant, delivered to a durable consumer.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer, stream};
use concord_wire::{Timestamp, header};
use futures::StreamExt;

use super::deadlines::{Lateness, now_ms};

/// From the last arming to the instant.
const REST: Duration = Duration::from_secs(3);
/// Arming this many takes a second at most.
const ARMED_PER_SECOND: usize = 10_000;

/// Arms `schedules` for one instant, and says how late each was delivered.
pub(super) async fn measure(
    context: &jetstream::Context,
    schedules: usize,
) -> anyhow::Result<Lateness> {
    let config = stream::Config {
        name: "BARE".into(),
        subjects: vec!["bare.>".into()],
        allow_message_schedules: true,
        allow_message_ttl: true,
        allow_direct: true,
        max_messages_per_subject: 1,
        ..Default::default()
    };
    let bare = context.create_stream(config).await?;
    let config = consumer::pull::Config {
        durable_name: Some("bare".into()),
        filter_subject: "bare.due.*".into(),
        max_ack_pending: 20_000,
        ..Default::default()
    };
    let consumer = bare.create_consumer(config).await?;
    let arming = Duration::from_secs_f64(schedules as f64 / ARMED_PER_SECOND as f64);
    let due = now_ms()? + u64::try_from((arming + REST).as_millis())?;
    arm(
        context,
        schedules,
        Timestamp::from_unix_millis(i64::try_from(due)?),
    )
    .await?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(500)
        .messages()
        .await?
        .take(schedules);
    let mut late = Vec::with_capacity(schedules);
    while let Some(message) = messages.next().await {
        late.push(now_ms()?.saturating_sub(due));
        message?.ack().await.map_err(anyhow::Error::from_boxed)?;
    }
    context.delete_stream("BARE").await?;
    Ok(Lateness::of(late))
}

async fn arm(context: &jetstream::Context, schedules: usize, due: Timestamp) -> anyhow::Result<()> {
    let mut pending = Vec::new();
    for number in 0..schedules {
        let mut headers = HeaderMap::new();
        headers.insert(header::SCHEDULE, format!("@at {due}"));
        headers.insert(header::SCHEDULE_TARGET, format!("bare.due.{number}"));
        headers.insert(header::SCHEDULE_TTL, "1h");
        let sent = context
            .publish_with_headers(format!("bare.armed.{number}"), headers, "due".into())
            .await?;
        pending.push(sent.into_future());
        if pending.len() == 1_000 {
            futures::future::try_join_all(pending.drain(..)).await?;
        }
    }
    futures::future::try_join_all(pending).await?;
    Ok(())
}
