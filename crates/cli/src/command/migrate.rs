//! `concord migrate`: streams that are not as this version and its settings define them.

use std::collections::BTreeSet;

use clap::Args;
use concord_runtime::Broker;
use concord_runtime::broker::migration::{self, Change};
use concord_runtime::broker::provision::Deviation;
use concord_runtime::delivery::ErrorChain;
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{BAD, Cell, GOOD, Table, styled};

/// Arguments of `concord migrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord migrate --config services.toml
  concord migrate --config services.toml --apply

Without --apply nothing is changed, and the exit code is 1 when something is to be. What streams should be follows from this version and from the settings storage.*: give
the services' own with --config. Where a change follows from a setting that neither the file nor the environment states, nothing is changed, and it is named.")]
pub(crate) struct MigrateArgs {
    /// Make the changes.
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Serialize)]
struct Report {
    /// What was changed, or would be.
    changes: Vec<Change>,
    /// Whether it was.
    applied: bool,
    /// What still differs.
    remaining: Vec<Change>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &MigrateArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let planned = plan(&broker).await?;
    let mut report = Report {
        remaining: planned.clone(),
        changes: planned,
        applied: false,
    };
    if args.apply {
        check_stated(connection, &report.changes)?;
    }
    if args.apply && !report.changes.is_empty() {
        migration::apply(&broker).await.map_err(|error| {
            Failure::failed(format!(
                "{}; what was changed before stays, and `concord migrate` shows what is left",
                ErrorChain(&error)
            ))
        })?;
        report.applied = true;
        report.remaining = plan(&broker).await?;
    }
    args.json.print(&report, text)?;
    Ok(if report.remaining.is_empty() {
        0
    } else {
        FOUND
    })
}

/// What follows from a setting is changed by nobody who has not stated that very one: the default in its place could remove what services
/// keep.
fn check_stated(connection: &ConnectionArgs, changes: &[Change]) -> Result<(), Failure> {
    let mut unstated = Vec::new();
    let mut settings = BTreeSet::new();
    for Change { deviation, .. } in changes {
        let Some(setting) = deviation.setting else {
            continue;
        };
        if !connection.states(setting)? {
            unstated.push(deviation);
            settings.insert(setting);
        }
    }
    let Some(Deviation {
        stream,
        property,
        found,
        expected,
        ..
    }) = unstated.first()
    else {
        return Ok(());
    };
    let settings: Vec<&str> = settings.into_iter().collect();
    Err(Failure::usage(format!(
        "{property} of {stream} is {found}, and would become {expected}, the default: state as the services have it what nobody has stated, \
         with --config FILE or in the environment: {}; nothing was changed",
        settings.join(", ")
    )))
}

async fn plan(broker: &Broker) -> Result<Vec<Change>, Failure> {
    let planned = migration::plan(broker).await;
    planned.map_err(|error| Failure::failed(ErrorChain(&error).to_string()))
}

fn text(report: &Report) -> String {
    if report.changes.is_empty() {
        return format!("{} Every stream is as it is defined.\n", styled(GOOD, "ok"));
    }
    let mut table = Table::new(["STREAM", "PROPERTY", "IS", "SHOULD BE", ""]);
    for change in &report.changes {
        let deviation = &change.deviation;
        let remark = match (change.impossible, change.loses) {
            (Some(why), _) => format!("cannot be changed: {why}"),
            (None, loses) => loses.unwrap_or_default().to_owned(),
        };
        table.row([
            Cell::text(&deviation.stream),
            Cell::text(deviation.property),
            Cell::text(&deviation.found),
            Cell::text(&deviation.expected),
            Cell::text(&remark),
        ]);
    }
    let end = match (report.applied, report.remaining.is_empty()) {
        (false, _) => "Nothing is changed yet: concord migrate --config FILE --apply, with the services' settings".to_owned(),
        (true, true) => format!("{} Changed.", styled(GOOD, "ok")),
        (true, false) => format!(
            "{} What cannot be changed stays. A stream with it is made anew: stop the services, concord backup, and move what is in it.",
            styled(BAD, "not all")
        ),
    };
    format!("{table}{end}\n")
}
