//! `concord check`: the invariants of the design, over everything that is stored.

use std::path::PathBuf;

use clap::Args;
use concord_domain::assurance::audit::{Auditor, Checked, Ending, Invariant, Passed, Report};
use concord_events::topology::StreamKind;
use concord_runtime::{Broker, service::clock, signing};
use concord_wire::Timestamp;
use serde::Serialize;

use super::audit::evidence::{self, Evidence, KeyArgs};
use crate::shared::args::JsonArg;
use crate::shared::audit_feed;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, Cell, DOUBTFUL, FAINT, GOOD, Table, count, styled};
use crate::shared::stillness::{self, Judged, Stillness, UnderWay};
use crate::shared::stream_reader::{self, Scope};

/// Arguments of `concord check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord check --grace 5000
  concord audit head --json > head.json
  concord check --against head.json

While work is under way, what may still follow from it is not held against anyone: all that is older than that is judged, and
the report says up to when. With --against it also says
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
    /// Where some were: the time up to which everything that is stored is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_until: Option<Timestamp>,
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
            under_way: checked
                .as_ref()
                .map_or(0, |(_, under_way)| under_way.number),
            judged_until: checked
                .as_ref()
                .and_then(|(_, under_way)| Some(under_way.judged?.until)),
            report: checked.as_ref().map(|(report, _)| report),
            error,
            against: evidence.as_ref(),
        })?;
    } else {
        let invariants = match (&checked, error) {
            (Some((report, under_way)), _) => text(report, under_way),
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

/// Checks the invariants; what was under way.
async fn invariants(broker: &Broker, grace_ms: u64) -> Result<(Report, UnderWay), Failure> {
    let stillness = Stillness::begin(broker).await?;
    let mut auditor = Auditor::verifying(signing::fits);
    let since = stillness::messages_since(broker).await?;
    for kind in StreamKind::EVIDENCE {
        let scope = Scope::all(kind).with_non_events();
        stream_reader::for_each(broker, &scope, "checking", |stored| {
            audit_feed::take(&broker.layout, &mut auditor, kind, &stored)
        })
        .await?;
    }
    let under_way = stillness.end(broker).await?;
    let ending = Ending {
        messages_since: since,
        ..under_way.ending(clock::now(), grace_ms)
    };
    Ok((auditor.finish(&ending), under_way))
}

/// The report for people.
pub(crate) fn text(report: &Report, under_way: &UnderWay) -> String {
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
    if under_way.number > 0 {
        let number = count(under_way.number, "message");
        let note = format!("{number} under way: what may still follow is not held against anyone");
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
    text + &format!("{}\n", verdict(report, under_way))
}

/// The last line: what can be said, and of what.
fn verdict(report: &Report, under_way: &UnderWay) -> String {
    if !report.holds() {
        return styled(BAD, "Violated.");
    }
    match (under_way.number, under_way.judged) {
        (0, _) => styled(GOOD, "Every invariant holds."),
        (_, Some(Judged { until, .. })) => {
            let what = format!("Every invariant holds for what was stored before {until}.");
            styled(GOOD, what)
        }
        (_, None) => styled(DOUBTFUL, "Nothing is violated so far."),
    }
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
