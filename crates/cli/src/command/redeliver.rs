//! `concord redeliver`: what was stored since some time is handed out again.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{DeliverPolicy, Info};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Stream;
use clap::Args;
use concord_events::topology::StreamKind;
use concord_runtime::broker::{Operation, log_reader};
use concord_runtime::{Broker, clock};
use concord_wire::Timestamp;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::broker_api;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{BAD, Cell, Table, count, styled};
use crate::shared::since::{self, Since};

/// Arguments of `concord redeliver`.
#[derive(Debug, Args)]
#[command(after_help = "\
For after a broker's disk was full: nats-server may then have passed messages over that are stored, so that nobody was given them.
`concord check` says whether: it names what was said to services and has led to nothing. Every durable consumer of Concord's streams,
those of agents too, is set back to the first message since then, or to the first that it has not settled where that is earlier.

Whoever knows a message already does nothing about it, and services know all of them. Agents are given messages a second time under
the same message_id. Hosted agents are told again what happened in their cases, and asked again what other agents have asked them, but
not what they have answered a service in a case. E-mails and webhooks since then may be sent again. Each consumer is paused for a
moment, or for a minute if this command is killed meanwhile. It can be repeated, and needs the rights of an operator, and nats-server
2.14.

Examples:
  concord redeliver --since 10m --dry-run
  concord redeliver --since 2026-11-21T20:00:00Z
  concord redeliver --since 10m --consumer coordinator-inbox")]
pub(crate) struct RedeliverArgs {
    /// What was stored since then: a time such as 2026-11-21T20:00:00Z, or so long ago: 90s, 30m, 24h, 7d.
    #[arg(long, value_name = "WHEN", value_parser = since::parse)]
    since: Since,
    /// Only this consumer; can be given several times.
    #[arg(long, value_name = "NAME")]
    consumer: Vec<String>,
    /// Say what would be set back, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// How long a consumer is paused at the most, should this process end before it resumes it.
const PAUSE_MS: i64 = 60_000;
/// How long the broker may take until a consumer is paused.
const PAUSED_MAX: Duration = Duration::from_secs(10);
const PAUSED_INTERVAL: Duration = Duration::from_millis(20);
/// Longer than the clocks of brokers are apart, and than it takes them to hear of it.
const RESUMED_AFTER_MS: i64 = 500;
/// How often a consumer is set back for which something was delivered meanwhile.
const RESETS_MAX: usize = 5;
/// How many consumers are set back at once.
const AT_ONCE: usize = 16;

/// What is said of a durable inbox.
const BEGAN_WITH_NEW: &str = "the broker sets no consumer back that began with what was new; its agent may have missed something";

#[derive(Debug, Serialize)]
struct Report {
    since: Timestamp,
    /// False when nothing was changed.
    applied: bool,
    consumers: Vec<SetBack>,
}

/// A consumer, and where it begins again.
#[derive(Debug, Serialize)]
struct SetBack {
    stream: String,
    consumer: String,
    /// The sequence in the stream of the first message that it is given again.
    from: u64,
    /// How many messages it is given again; none where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    /// Why it was not set back.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &RedeliverArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let since = args.since.at(clock::now());
    let mut consumers = Vec::new();
    let mut unknown = args.consumer.clone();
    for kind in StreamKind::ALL {
        let stream = broker.stream(kind).await?;
        let names = names(&stream).await?;
        unknown.retain(|name| !names.contains(name));
        // Of the leader: another copy may lack what is new, and a stream would be left out.
        if let Some(first) = log_reader::first_since(&broker, kind, since).await? {
            let wanted = |name: &String| args.consumer.is_empty() || args.consumer.contains(name);
            for name in names.into_iter().filter(wanted) {
                consumers.extend(place(&stream, &name, first).await?);
            }
        }
    }
    if let Some(name) = unknown.first() {
        return Err(Failure::usage(format!(
            "there is no consumer {name}; `concord redeliver --since ... --dry-run` names them"
        )));
    }
    if !args.dry_run {
        let consumers = consumers.iter_mut().filter(|one| one.error.is_none());
        let set_back = stream::iter(consumers)
            .for_each_concurrent(AT_ONCE, |consumer| consumer.set_back(&broker));
        set_back.await;
    }
    let report = Report {
        since,
        applied: !args.dry_run,
        consumers,
    };
    args.json.print(&report, text)?;
    let is_refused = report.consumers.iter().any(|one| one.error.is_some());
    Ok(if is_refused { FOUND } else { 0 })
}

/// The consumers of a stream by name. Unlike a list of what they are, the broker leaves out none that has no leader at the moment.
async fn names(stream: &Stream<()>) -> Result<Vec<String>, Failure> {
    let names = stream.consumer_names().try_collect().await;
    // It names its cause itself, and so does the cause.
    names.map_err(|error| Operation::DescribeConsumer.failed(error.to_string()).into())
}

/// Where a consumer is to begin again; none for a view, which ends with whoever looks, and for one that has come to nothing since then.
async fn place(stream: &Stream<()>, name: &str, first: u64) -> Result<Option<SetBack>, Failure> {
    let info = match stream.consumer_info(name).await {
        Ok(info) => info,
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::unavailable(format!(
                "the consumer {name} cannot be looked at ({error}); nothing was changed: try again when the broker has recovered"
            )));
        }
    };
    // What it was given before and has not settled must not be passed over either. To set it forward would pass over what waits.
    let from = first.min(info.ack_floor.stream_sequence + 1);
    if info.config.durable_name.is_none() || info.delivered.stream_sequence < from {
        return Ok(None);
    }
    let began_with_new = info.config.deliver_policy == DeliverPolicy::New;
    Ok(Some(SetBack {
        stream: info.stream_name,
        consumer: info.name,
        from,
        messages: None,
        error: began_with_new.then(|| BEGAN_WITH_NEW.to_owned()),
    }))
}

impl SetBack {
    /// Sets the consumer back while it is paused. What a consumer with copies hands out before the broker has applied the reset, but after
    /// it was asked for, leaves the copies with a wrong state, and the next leader passes over what waits then (record 110).
    async fn set_back(&mut self, broker: &Broker) {
        match self.while_paused(broker).await {
            Ok(info) => self.messages = Some(info.num_pending),
            Err(why) => {
                self.error = Some(format!("{why}; run it again when the broker has recovered"));
            }
        }
    }

    async fn while_paused(&self, broker: &Broker) -> Result<Info, Failure> {
        let stream = broker.jetstream.get_stream_no_info(&self.stream).await;
        let stream = stream.map_err(|error| Failure::failed(error.to_string()))?;
        if info(&stream, &self.consumer).await?.paused {
            // By somebody else, whose business it is to resume it.
            return self.reset_paused(&stream).await;
        }
        let until = clock::now().unix_millis() + PAUSE_MS;
        let left = self.pause(broker, Some(until)).await?;
        let left_ms = i64::try_from(left.unwrap_or_default().as_millis()).unwrap_or(PAUSE_MS);
        let set_back = self.reset_paused(&stream).await;
        // Where the broker does not answer, the pause ends by itself.
        let ahead_ms = PAUSE_MS - left_ms;
        let _ = self.resume((broker, &stream), ahead_ms).await;
        set_back
    }

    async fn pause(
        &self,
        broker: &Broker,
        until_ms: Option<i64>,
    ) -> Result<Option<Duration>, Failure> {
        let until = until_ms.map(Timestamp::from_unix_millis);
        broker_api::pause(broker, (&self.stream, &self.consumer), until).await
    }

    async fn reset_paused(&self, stream: &Stream<()>) -> Result<Info, Failure> {
        self.wait_for(stream, true).await?;
        for _ in 0..RESETS_MAX {
            let reset = stream.reset_consumer(&self.consumer, Some(self.from)).await;
            reset.map_err(|error| Failure::failed(format!("the broker refuses it: {error}")))?;
            let info = info(stream, &self.consumer).await?;
            // Otherwise a delivery came between, for instance one that an agent has just said to be working on.
            if info.delivered.consumer_sequence == 0 {
                return Ok(info);
            }
        }
        Err(Failure::failed("it is being read all the time"))
    }

    /// Ends the pause, where the broker's clock is so far ahead of this one. The broker hands out what waits when the time of a pause has
    /// come; of one that is ended before, only when the next message comes, or the next request.
    async fn resume(
        &self,
        (broker, stream): (&Broker, &Stream<()>),
        ahead_ms: i64,
    ) -> Result<(), Failure> {
        let until = clock::now().unix_millis() + ahead_ms + RESUMED_AFTER_MS;
        self.pause(broker, Some(until)).await?;
        self.wait_for(stream, false).await?;
        self.pause(broker, None).await.map(drop)
    }

    /// The broker answers before the consumer's leader has heard of the pause.
    async fn wait_for(&self, stream: &Stream<()>, paused: bool) -> Result<(), Failure> {
        let begun = Instant::now();
        while info(stream, &self.consumer).await?.paused != paused {
            if begun.elapsed() > PAUSED_MAX {
                return Err(Failure::failed(
                    "the broker did not pause it (is the clock here right?)",
                ));
            }
            tokio::time::sleep(PAUSED_INTERVAL).await;
        }
        Ok(())
    }
}

async fn info(stream: &Stream<()>, consumer: &str) -> Result<Info, Failure> {
    let info = stream.consumer_info(consumer).await;
    info.map_err(|error| Failure::unavailable(format!("it cannot be looked at: {error}")))
}

fn text(report: &Report) -> String {
    let since = report.since;
    if report.consumers.is_empty() {
        return format!("Nothing was handed out since {since}.\n");
    }
    let mut table = Table::new(["STREAM", "CONSUMER", "FROM", "MESSAGES", ""]);
    let (mut messages, mut refused) = (0, 0_u64);
    for one in &report.consumers {
        messages += one.messages.unwrap_or(0);
        refused += u64::from(one.error.is_some());
        if one.messages != Some(0) {
            table.row([
                Cell::text(&one.stream),
                Cell::text(&one.consumer),
                Cell::text(one.from),
                Cell::text(
                    one.messages
                        .map_or_else(String::new, |many| many.to_string()),
                ),
                Cell::text(one.error.as_deref().unwrap_or_default()),
            ]);
        }
    }
    if !report.applied {
        return format!(
            "{table}Nothing is changed. Without --dry-run what these were given since {since} is handed out again.\n"
        );
    }
    let given = format!("Messages that are handed out again: {messages}.");
    if refused == 0 {
        return format!("{table}{given}\n");
    }
    let refused = styled(BAD, count(refused, "consumer"));
    format!("{table}{given} {refused} could not be set back.\n")
}
