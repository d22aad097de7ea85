//! `concord check`: the invariants of the design, over everything that is stored.

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use clap::Args;
use concord_domain::assurance::audit::{
    Auditor, Checked, Content, Dead, Ending, Passed, RawEvent, Report, StoredMessage,
};
use concord_events::dead_letter::header;
use concord_events::subject::SystemSubject;
use concord_events::topology::{ConsumerDefinition, ConsumerKind, StreamKind};
use concord_runtime::{Broker, service::clock};
use concord_wire::header::DIALECT;
use concord_wire::subject::Lane;
use concord_wire::{Dialect, Timestamp, dialect};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, Cell, DOUBTFUL, FAINT, GOOD, Table, count, styled};
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// Arguments of `concord check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord check --grace 5000

While work is under way, what may still happen is not held against anyone; the report says so. The exit code is 1 when an
invariant is violated.")]
pub(crate) struct CheckArgs {
    /// The time after which a deadline that is due may no longer be open, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    grace: u64,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Printed<'a> {
    holds: bool,
    /// The number of messages under way while the streams were read; 0 when the report is complete.
    under_way: u64,
    #[serde(flatten)]
    report: &'a Report,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &CheckArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let (before, at) = (under_way(&broker).await?, ends(&broker).await?);
    let mut auditor = Auditor::new();
    let since = feed(&broker, &mut auditor).await?;
    let after = under_way(&broker).await?;
    // The streams are read one after the other, so a message that is stored meanwhile may be missing in some of them.
    let moved: u64 = ends(&broker)
        .await?
        .iter()
        .zip(at)
        .map(|(now, then)| now.saturating_sub(then))
        .sum();
    let under_way = before.max(after).max(moved);
    let now = clock::now();
    let ending = Ending {
        now,
        grace_ms: args.grace,
        quiescent: under_way == 0,
        messages_since: since,
    };
    let report = auditor.finish(&ending);
    if args.json.json {
        output::json(&Printed {
            holds: report.holds(),
            under_way,
            report: &report,
        })?;
    } else {
        output::print(&text(&report, under_way))?;
    }
    Ok(if report.holds() { 0 } else { FOUND })
}

/// Messages that wait for a service, or are being handled.
async fn under_way(broker: &Broker) -> Result<u64, Failure> {
    let mut number = 0;
    // The timer may hold an event back for a while before it arms its deadline; nothing follows from that until it is due.
    let consumers = broker
        .layout
        .consumers()
        .into_iter()
        .filter(|consumer| consumer.kind != ConsumerKind::Deadlines);
    for ConsumerDefinition {
        stream,
        name,
        event,
        ..
    } in consumers
    {
        let missing = |error: &dyn std::error::Error| {
            Failure::failed(format!(
                "the consumer {name} cannot be looked at: {error}; see `concord doctor`"
            ))
        };
        let handle = broker
            .jetstream
            .get_stream_no_info(&stream)
            .await
            .map_err(|error| missing(&error))?;
        let info = match handle.consumer_info(&name).await {
            Ok(info) => info,
            // An installation that no service of this version has served yet lacks the consumers of events that are read
            // only since. Nothing waits in them; that nothing is missing which follows from an event is an invariant.
            Err(error) if event.is_some() && error.kind() == ConsumerInfoErrorKind::NotFound => {
                continue;
            }
            Err(error) => return Err(missing(&error)),
        };
        number += info.num_pending + info.num_ack_pending as u64;
    }
    Ok(number)
}

const STREAMS: [StreamKind; 4] = [
    StreamKind::Events,
    StreamKind::Messages,
    StreamKind::Urgent,
    StreamKind::Dead,
];

/// The last sequence of each stream that is read.
async fn ends(broker: &Broker) -> Result<Vec<u64>, Failure> {
    let mut ends = Vec::new();
    for kind in STREAMS {
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

/// Gives the auditor everything that is stored; the time from which on messages are kept, where older ones are gone.
async fn feed(broker: &Broker, auditor: &mut Auditor) -> Result<Option<Timestamp>, Failure> {
    let mut since = None;
    for kind in STREAMS {
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
        stream_reader::for_each(
            broker,
            &Scope::all(kind).with_non_events(),
            "checking",
            |stored| {
                match (kind, kind.lane()) {
                    (StreamKind::Events, _) => event(broker, auditor, &stored)?,
                    (_, Some(lane)) => message(broker, auditor, lane, &stored),
                    _ => dead(broker, auditor, &stored),
                }
                Ok(())
            },
        )
        .await?;
    }
    Ok(since)
}

fn event(broker: &Broker, auditor: &mut Auditor, stored: &StreamMessage) -> Result<(), Failure> {
    if let Some(foreign) = stored.non_event {
        auditor.foreign(stored.sequence, &stored.subject, foreign);
        return Ok(());
    }
    let Ok(SystemSubject::Event {
        aggregate,
        id,
        event: name,
    }) = broker.subjects().parse(&stored.subject)
    else {
        return Err(Failure::failed(format!(
            "{} at {} is among the events and is none; it was stored by another version, or by no service",
            stored.subject, stored.sequence
        )));
    };
    let bytes = &stored.payload;
    auditor.event(&RawEvent {
        sequence: stored.sequence,
        aggregate,
        id: &id,
        event: &name,
        bytes,
    });
    Ok(())
}

fn message(broker: &Broker, auditor: &mut Auditor, lane: Lane, stored: &StreamMessage) {
    match broker.subjects().parse(&stored.subject) {
        Ok(subject) => auditor.message(&StoredMessage {
            sequence: stored.sequence,
            subject: &subject,
            declared: Dialect::parse(stored.header(DIALECT)),
            content: Content::Bytes(&stored.payload),
        }),
        // Only messages to a service have to be answered and kept.
        Err(_) if reaches_a_service(broker, lane, &stored.subject) => {
            auditor.malformed_message(lane, stored.sequence)
        }
        Err(_) => {}
    }
}

/// True when a subject that cannot be parsed matches the inbox of a service.
fn reaches_a_service(broker: &Broker, lane: Lane, subject: &str) -> bool {
    let inboxes = broker
        .layout
        .consumers()
        .into_iter()
        .filter(|consumer| consumer.stream_kind.lane() == Some(lane));
    inboxes
        .map(|consumer| consumer.filter)
        .any(|filter| matches(&filter, subject))
}

/// True when a subject matches a filter with wildcards.
fn matches(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for expected in filter.split('.') {
        match (expected, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (expected, Some(found)) if expected == found => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

fn dead(broker: &Broker, auditor: &mut Auditor, stored: &StreamMessage) {
    let subject = broker.subjects().parse(stored.header(header::SUBJECT)).ok();
    let stream = stored.header(header::STREAM);
    let lanes = [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ];
    let lane = lanes
        .into_iter()
        .find(|(kind, _)| broker.layout.stream_name(*kind) == stream)
        .map(|(_, lane)| lane);
    let position = lane.zip(stored.header(header::SEQUENCE).parse().ok());
    let id = dialect::id_of(&stored.payload);
    auditor.dead(&Dead {
        subject: subject.as_ref(),
        position,
        message_id: id.as_ref(),
    });
}

fn text(report: &Report, under_way: u64) -> String {
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
        count(report.events, "fact"),
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
            "{} in the place of events and services' messages that no service wrote, passed over; the first is",
            count(*number, "message")
        );
        text.push_str(&format!(
            "{}: {place}{at}: {what}\n",
            styled(DOUBTFUL, note)
        ));
    }
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
    let verdict = if report.holds() {
        styled(GOOD, "Every invariant holds.")
    } else {
        styled(BAD, "Violated.")
    };
    text + &format!("{verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_broker_matches_them() {
        for (subject, matching) in [
            ("a.b.c.d", true),
            ("a.x.c.d.e", true),
            ("a.b.c", false),
            ("a.b.d.d", false),
            ("b.b.c.d", false),
        ] {
            assert_eq!(matches("a.*.c.>", subject), matching, "{subject}");
        }
        assert!(matches("a.b", "a.b") && !matches("a.b", "a.b.c"));
    }
}
