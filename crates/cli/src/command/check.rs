//! `concord check`: the invariants of the design, over everything that is stored.

use std::path::PathBuf;

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use clap::Args;
use concord_domain::assurance::audit::{Auditor, Checked, Ending, Invariant, Passed, Report};
use concord_events::topology::{ConsumerDefinition, ConsumerKind, Layout, StreamKind};
use concord_runtime::broker::Operation;
use concord_runtime::{Broker, service::clock, signing};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde::Serialize;

use super::audit::evidence::{self, Evidence, KeyArgs};
use crate::shared::args::JsonArg;
use crate::shared::audit_feed;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, Cell, DOUBTFUL, FAINT, GOOD, Table, count, styled};
use crate::shared::stream_reader::{self, Scope};

/// Arguments of `concord check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord check --grace 5000
  concord audit head --json > head.json
  concord check --against head.json

While work is under way, what may still happen is not held against anyone; the report says so. With --against it also says
whether everything that a kept head covers is as it was: events, messages and dead letters. Given a bundle of `concord audit
export` it names the very messages. The exit code is 1 when an invariant is violated or something is not as it was.")]
pub(crate) struct CheckArgs {
    /// The time after which a deadline that is due may no longer be open, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    grace: u64,
    /// A head that `concord audit head --json` has written, or a bundle of `concord audit export`, kept where nobody who can
    /// write to the broker can write.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Printed<'a> {
    holds: bool,
    /// The number of messages under way while the streams were read; 0 when the report is complete.
    under_way: u64,
    #[serde(flatten)]
    report: Option<&'a Report>,
    /// Why the invariants could not be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Evidence>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &CheckArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let evidence = match &args.against {
        Some(kept) => Some(evidence::of_broker(&broker, kept, &args.keys).await?),
        None => None,
    };
    let (checked, error) = match invariants(&broker, args.grace).await {
        Ok(checked) => (Some(checked), None),
        // Whoever has rewritten streams has often removed their consumers; what differs is to be said all the same.
        Err(failure) if evidence.is_some() => (None, Some(failure.to_string())),
        Err(failure) => return Err(failure),
    };
    let holds = checked.as_ref().is_some_and(|(report, _)| report.holds())
        && evidence.as_ref().is_none_or(Evidence::holds);
    if args.json.json {
        output::json(&Printed {
            holds,
            under_way: checked.as_ref().map_or(0, |(_, under_way)| *under_way),
            report: checked.as_ref().map(|(report, _)| report),
            error,
            against: evidence.as_ref(),
        })?;
    } else {
        let invariants = match (&checked, error) {
            (Some((report, under_way)), _) => text(report, *under_way),
            (None, error) => format!(
                "{} {}\n",
                styled(BAD, "The invariants cannot be checked:"),
                error.unwrap_or_default()
            ),
        };
        let evidence = evidence.as_ref().map_or(String::new(), Evidence::text);
        output::print(&format!("{invariants}{evidence}"))?;
    }
    Ok(if holds { 0 } else { FOUND })
}

/// Checks the invariants; the number of messages that were under way.
async fn invariants(broker: &Broker, grace_ms: u64) -> Result<(Report, u64), Failure> {
    let stillness = Stillness::begin(broker).await?;
    let mut auditor = Auditor::verifying(signing::fits);
    let since = messages_since(broker).await?;
    for kind in StreamKind::EVIDENCE {
        let scope = Scope::all(kind).with_non_events();
        stream_reader::for_each(broker, &scope, "checking", |stored| {
            audit_feed::take(&broker.layout, &mut auditor, kind, &stored)
        })
        .await?;
    }
    let under_way = stillness.end(broker).await?;
    let ending = Ending {
        now: clock::now(),
        grace_ms,
        quiescent: under_way == 0,
        messages_since: since,
    };
    Ok((auditor.finish(&ending), under_way))
}

/// How much was under way when reading the streams began.
pub(crate) struct Stillness {
    under_way: u64,
    ends: Vec<u64>,
}

impl Stillness {
    /// Before the streams are read.
    pub(crate) async fn begin(broker: &Broker) -> Result<Self, Failure> {
        Ok(Self {
            under_way: under_way(broker).await?,
            ends: ends(broker).await?,
        })
    }

    /// After that: the number of messages that were under way meanwhile; 0 when nothing is missing in what was read.
    pub(crate) async fn end(self, broker: &Broker) -> Result<u64, Failure> {
        let after = under_way(broker).await?;
        // The streams are read one after the other, so a message that is stored meanwhile may be missing in some of them.
        let moved: u64 = ends(broker)
            .await?
            .iter()
            .zip(self.ends)
            .map(|(now, then)| now.saturating_sub(then))
            .sum();
        Ok(self.under_way.max(after).max(moved))
    }
}

/// Messages that wait for a service, or are being handled.
async fn under_way(broker: &Broker) -> Result<u64, Failure> {
    let mut number = 0;
    // The timer may hold an event back for a while before it arms its deadline; nothing follows from that until it is due.
    let consumers = broker
        .layout
        .consumers()
        .into_iter()
        .filter(|consumer| consumer.kind != ConsumerKind::Deadlines)
        .chain(inboxes_of_adapter(&broker.layout));
    for ConsumerDefinition {
        stream,
        name,
        event,
        service,
        kind,
        ..
    } in consumers
    {
        let handle = broker
            .jetstream
            .get_stream_no_info(&stream)
            .await
            .map_err(|error| Operation::OpenStream.failed(error))?;
        number += match handle.consumer_info(&name).await {
            Ok(info) => info.num_pending + info.num_ack_pending as u64,
            // An installation may do without the adapter. One that no service of this version has served yet lacks the
            // consumers of events, and of types of answers, that are read only since. Nothing waits in them; that nothing is
            // missing which follows from an event is an invariant.
            Err(error)
                if error.kind() == ConsumerInfoErrorKind::NotFound
                    && (event.is_some()
                        || kind == ConsumerKind::Exchange
                        || service == Service::AgentAdapter) =>
            {
                0
            }
            Err(error) => {
                let failed = Failure::from(Operation::DescribeConsumer.failed(error));
                return Err(failed.and(format!("the consumer is {name}")));
            }
        };
    }
    Ok(number)
}

/// The consumers of what is addressed to the agent adapter itself.
fn inboxes_of_adapter(layout: &Layout) -> impl Iterator<Item = ConsumerDefinition> {
    const SERVICE: Service = Service::AgentAdapter;
    let kinds = [
        ConsumerKind::Inbox(SERVICE),
        ConsumerKind::UrgentInbox(SERVICE),
    ];
    kinds
        .map(|kind| layout.consumers_of(kind))
        .into_iter()
        .flatten()
}

/// The last sequence of each stream that is read.
async fn ends(broker: &Broker) -> Result<Vec<u64>, Failure> {
    let mut ends = Vec::new();
    for kind in StreamKind::EVIDENCE {
        ends.push(info(broker, kind).await?.last_sequence);
    }
    Ok(ends)
}

async fn info(
    broker: &Broker,
    kind: StreamKind,
) -> Result<async_nats::jetstream::stream::State, Failure> {
    let info = broker.stream(kind).await?.get_info().await;
    let name = broker.layout.stream_name(kind);
    info.map(|info| info.state).map_err(|error| {
        Failure::failed(format!(
            "the stream {name} cannot be read: {error}; see `concord doctor`"
        ))
    })
}

/// The time from which on messages are kept, where older ones are gone.
pub(crate) async fn messages_since(broker: &Broker) -> Result<Option<Timestamp>, Failure> {
    let mut since = None;
    for kind in StreamKind::EVIDENCE {
        let state = info(broker, kind).await?;
        if kind.lane().is_some() && state.first_sequence > 1 {
            let first =
                concord_runtime::broker::timestamp(state.first_timestamp.unix_timestamp_nanos());
            // The broker knows no first time of an empty stream.
            since = since.max(Some(if state.messages == 0 {
                clock::now()
            } else {
                first
            }));
        }
    }
    Ok(since)
}

/// The report for people.
pub(crate) fn text(report: &Report, under_way: u64) -> String {
    let mut table = Table::new(["NO", "INVARIANT", "HELD OVER", "", "VIOLATIONS", ""]);
    for checked in &report.invariants {
        let Checked {
            number,
            name,
            examined,
            unit,
            violations,
            complete,
            ..
        } = checked;
        let style = if *violations == 0 { GOOD } else { BAD };
        table.row([
            Cell::number(number),
            Cell::text(name),
            Cell::number(examined),
            Cell::text(unit),
            Cell::number(violations).with(style),
            Cell::text(if *complete { "" } else { "so far" }).with(FAINT),
        ]);
    }
    let mut text = table.to_string();
    let read = format!(
        "{}, {} and {} read",
        count(report.events, "event"),
        count(report.messages, "message"),
        count(report.dead, "dead letter")
    );
    text.push_str(&format!("{}\n", styled(FAINT, read)));
    if under_way > 0 {
        let note = format!(
            "{} under way: what may still happen is not held against anyone",
            count(under_way, "message")
        );
        text.push_str(&format!("{}\n", styled(DOUBTFUL, note)));
    }
    if let Some(Passed { number, first }) = &report.foreign {
        let (place, what) = (&first.place, &first.what);
        let at = first
            .sequence
            .map_or(String::new(), |sequence| format!(" at {sequence}"));
        let note = format!(
            "{} in the place of events, dead letters and services' messages that no service wrote, passed over; the first is",
            count(*number, "message")
        );
        text.push_str(&format!(
            "{}: {place}{at}: {what}\n",
            styled(DOUBTFUL, note)
        ));
    }
    text.push_str(&violated(report));
    let verdict = if report.holds() {
        styled(GOOD, "Every invariant holds.")
    } else {
        styled(BAD, "Violated.")
    };
    text + &format!("{verdict}\n")
}

/// The first violation of each invariant, and what can be done about it.
fn violated(report: &Report) -> String {
    let mut text = String::new();
    for (checked, violation) in report.violations() {
        let at = violation
            .sequence
            .map_or(String::new(), |sequence| format!(" at {sequence}"));
        let first = format!("{} {}, first violation", checked.number, checked.name);
        text.push_str(&format!(
            "{} {}{at}: {}\n",
            styled(BAD, first),
            violation.place,
            violation.what
        ));
    }
    let lost = [Invariant::EffectsPublished, Invariant::MessagesKept];
    let is_violated = |kind| {
        report
            .of(kind)
            .is_some_and(|checked| checked.violations > 0)
    };
    if lost.into_iter().any(is_violated) {
        text.push_str(
            "Where the broker has lost deliveries, as it may when its disk is full, they are made again by: concord redeliver --since WHEN\n",
        );
    }
    if is_violated(Invariant::Replay) {
        text.push_str(
            "Where an event does not name the one before it, a broker whose disk was full may have let it pass; what is missing is done again by: concord redeliver --since WHEN\n",
        );
    }
    text
}
