//! `concord replay`: rebuilds aggregates and counts votes again from the stored events, with the domain alone.

use clap::Args;
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::event_store::archived::ArchivedPart;
use concord_wire::{CaseId, Token};
use serde::Serialize;

use crate::shared::archive_reader::unknown_case;
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, Cell, DOUBTFUL, FAINT, GOOD, Table, count, styled};
use crate::shared::stream_reader::{self, Scope, StreamMessage};

mod again;
mod rebuild;

use rebuild::{Rebuilt, Report};

/// Arguments of `concord replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord replay c-42
  concord replay --all --json

From the events alone it rebuilds every case, detection, debate, deadline, track record, precedent and the queue of people,
looks for conflicts again, decides again, and counts every vote again. The exit code is 1 when anything differs from what is
stored.")]
pub(crate) struct ReplayArgs {
    /// The case.
    #[arg(required_unless_present = "all", value_parser = |text: &str| CaseId::new(text).map_err(|e| e.to_string()))]
    case: Option<CaseId>,
    /// Everything that is stored.
    #[arg(long, conflicts_with = "case")]
    all: bool,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ReplayArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut rebuilt = Rebuilt::default();
    match &args.case {
        Some(case) => one(&broker, case, &mut rebuilt).await?,
        None => {
            let scope = Scope::all(StreamKind::Events).with_non_events();
            stream_reader::for_each(&broker, &scope, "rebuilding", |stored| {
                take(&broker, &mut rebuilt, &stored);
                Ok(())
            })
            .await?;
        }
    }
    let report = rebuilt.report();
    if args.json.json {
        output::json(&Printed {
            identical: report.differences.is_empty(),
            report: &report,
        })?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(if report.differences.is_empty() {
        0
    } else {
        FOUND
    })
}

#[derive(Serialize)]
struct Printed<'a> {
    identical: bool,
    #[serde(flatten)]
    report: &'a Report,
}

fn take(broker: &Broker, rebuilt: &mut Rebuilt, stored: &StreamMessage) {
    if stored.non_event.is_some() {
        return rebuilt.pass_over();
    }
    match broker.subjects().parse(&stored.subject) {
        Ok(SystemSubject::Event { aggregate, id, .. }) => {
            let event = rebuild::Stored {
                id: &id,
                sequence: stored.sequence,
                bytes: &stored.payload,
            };
            rebuilt.take(aggregate, &event)
        }
        _ => rebuilt.no_event(&stored.subject, stored.sequence),
    }
}

/// Takes the events of one case: its own, those of its detection, and those of the debates that the detection led to.
async fn one(broker: &Broker, case: &CaseId, rebuilt: &mut Rebuilt) -> Result<(), Failure> {
    let id = case.token();
    let mut stored = events_of(broker, Aggregate::Case, &id).await?;
    if stored.iter().all(|stored| stored.non_event.is_some()) {
        return Err(unknown_case(broker, case).await);
    }
    let detection = events_of(broker, Aggregate::Detection, &id).await?;
    for debate in detection
        .iter()
        .flat_map(|event| again::debates_of(&event.payload, event.sequence))
    {
        stored.extend(events_of(broker, Aggregate::Debate, &debate).await?);
    }
    stored.extend(detection);
    // In the order in which they happened, as in the stream.
    stored.sort_by_key(|event| event.sequence);
    for event in &stored {
        take(broker, rebuilt, event);
    }
    Ok(())
}

async fn events_of(
    broker: &Broker,
    aggregate: Aggregate,
    id: &Token,
) -> Result<Vec<StreamMessage>, Failure> {
    let mut events = Vec::new();
    let scope = Scope::of(
        StreamKind::Events,
        broker.subjects().events_of(aggregate, id),
    )
    .archived_in(ArchivedPart::Aggregate(aggregate, id.clone()))
    .with_non_events();
    stream_reader::for_each(broker, &scope, "reading events", |event| {
        events.push(event);
        Ok(())
    })
    .await?;
    Ok(events)
}

fn text(report: &Report) -> String {
    let mut table = Table::new(["REBUILT", "NUMBER", "FACTS"]);
    for row in &report.rebuilt {
        table.row([
            Cell::text(row.aggregate),
            Cell::number(row.aggregates),
            Cell::number(row.events),
        ]);
    }
    let mut text = table.to_string();
    let again = format!(
        "{} looked for again, {} decided again, {} ended again, {} counted again, {} of the queue decided again",
        count(report.detected_again, "detection"),
        count(report.decided_again, "case step"),
        count(report.ended_again, "debate"),
        count(report.votes_again, "vote"),
        count(report.queued_again, "step")
    );
    text.push_str(&format!("{}\n", styled(FAINT, again)));
    if report.passed_over > 0 {
        let note = format!(
            "{} passed over, which no service wrote",
            count(report.passed_over, "message")
        );
        text.push_str(&format!("{}\n", styled(DOUBTFUL, note)));
    }
    for difference in &report.differences {
        let place = format!("{} at {}", difference.aggregate, difference.sequence);
        text.push_str(&format!(
            "{} {place}: {}\n",
            styled(BAD, "differs"),
            difference.what
        ));
    }
    let verdict = match report.differences.len() {
        0 => styled(GOOD, "Everything is as it is stored."),
        differences => styled(BAD, format!("{}.", count(differences as u64, "difference"))),
    };
    text + &format!("{verdict}\n")
}
