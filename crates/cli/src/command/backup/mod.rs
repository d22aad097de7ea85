//! `concord backup` and `concord restore`: everything that an installation keeps in the broker, as files.
//!
//! The streams are copied one after another, so a copy would hold what follows from an event and not the event, or say that something
//! was done and not hold what it did. While it is made the broker therefore hands nothing over to the services: what is said meanwhile is
//! stored, and done afterwards. Messages are copied before the events that follow from them: a message that is in the copy and was
//! done with meanwhile is given again, and its event is recognised. Events come last but for the archive, which is written before an event
//! says so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use concord_events::topology::{Layout, StreamKind};
use concord_runtime::Broker;
use concord_runtime::clock;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::command::audit;
use crate::shared::args::JsonArg;
use crate::shared::broker_api;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, styled};
use crate::shared::own_folder::asked_to_end;

mod dated;
mod directory;
mod pause;
mod restore;
mod snapshot;

pub(crate) use restore::{RestoreArgs, run as restore};

use directory::{Manifest, StreamCopy};

/// Arguments of `concord backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord backup /backups/2026-11-25
  concord backup /backups --dated --keep 14
  concord restore /backups/2026-11-25 --server nats://new-broker:4222

While the copy is made the services are given nothing new: what is said meanwhile is stored, and done afterwards. When the command is
killed, they go on after --pause-max.")]
pub(crate) struct BackupArgs {
    /// A directory that does not exist, or is empty; with --dated one that holds backups.
    directory: PathBuf,
    /// Make the backup in a new directory of DIRECTORY that is named for the time in UTC, such as 20261125T030000Z.
    #[arg(long)]
    dated: bool,
    /// Remove older dated backups of DIRECTORY when this one is complete, so that so many are left.
    #[arg(long, value_name = "NUMBER", requires = "dated", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,
    /// How long to wait until nothing is being worked on, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// After how many seconds the services go on at the latest when this command has died. While it runs, the pause is renewed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pause_max: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// The streams of an installation that there are, in the order in which they are copied. Asked by their descriptions: brokers that form a
/// cluster do not answer at all when they are to copy a stream that does not exist.
async fn streams(broker: &Broker) -> Result<Vec<String>, Failure> {
    let mut there = Vec::new();
    for name in in_order(&broker.layout) {
        let subject = format!("$JS.API.STREAM.INFO.{name}");
        let found = broker_api::ask(broker, subject, &Value::Null).await?;
        there.extend(found.map(|_| name));
    }
    Ok(there)
}

/// The streams that an installation may have, in the order in which they are copied; those of buckets may be missing.
fn in_order(layout: &Layout) -> Vec<String> {
    let before = [
        StreamKind::Messages,
        StreamKind::Urgent,
        StreamKind::Dead,
        StreamKind::Memory,
        StreamKind::Timers,
    ];
    let mut names: Vec<String> = before.map(|kind| layout.stream_name(kind)).into();
    names.push(format!("OBJ_{}", layout.payload_bucket()));
    names.push(layout.stream_name(StreamKind::Events));
    names.push(format!("OBJ_{}", layout.archive_bucket()));
    names
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &BackupArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    // Asked before anything is written or paused, so that nothing is left and whatever is paused goes on.
    let asked = asked_to_end()?;
    let now = clock::now();
    let target = match args.dated {
        true => args.directory.join(dated::name(now)),
        false => args.directory.clone(),
    };
    let begun = directory::prepare(&target)?;
    if args.dated {
        dated::remove_left(&args.directory, &target);
    }
    let copied = copy_paused(connection, &broker, args, &target, &asked).await;
    let (manifest, resumed) = match copied {
        Ok(copied) => copied,
        Err(failure) => return Err(begun.discard(failure)),
    };
    begun.complete();
    resumed?;
    let removed = match args.keep {
        Some(keep) => dated::remove_older(&args.directory, usize::from(keep))?,
        None => Vec::new(),
    };
    let made = Made {
        manifest,
        directory: target,
        removed,
    };
    args.json.print(&made, text)?;
    Ok(0)
}

/// Copies everything while nothing is handed over. Of a copy that is complete, also what came of telling the services to go on.
async fn copy_paused(
    connection: &ConnectionArgs,
    broker: &Broker,
    args: &BackupArgs,
    target: &Path,
    asked: &CancellationToken,
) -> Result<(Manifest, Result<(), Failure>), Failure> {
    let interrupted =
        || Failure::failed("interrupted; the copy is not complete, and the services go on");
    let looked = async {
        let streams = streams(broker).await?;
        let paused = pause::Paused::of(broker, Duration::from_secs(args.pause_max)).await?;
        Ok::<_, Failure>((streams, paused))
    };
    let (streams, paused) = tokio::select! {
        looked = looked => looked?,
        denied = connection.denied() => return Err(denied),
        () = asked.cancelled() => return Err(interrupted()),
    };
    let copied = tokio::select! {
        copied = copy((broker, &streams), &paused, target, Duration::from_secs(args.wait)) => copied,
        failure = paused.keep() => Err(failure),
        denied = connection.denied() => Err(denied),
        () = asked.cancelled() => Err(interrupted()),
    };
    // Whatever has happened, and before anything is said.
    match (copied, paused.end().await) {
        (Ok(manifest), resumed) => Ok((manifest, resumed)),
        (Err(failure), Ok(())) => Err(failure),
        (Err(failure), Err(stand_still)) => Err(failure.and(stand_still)),
    }
}

async fn copy(
    (broker, streams): (&Broker, &[String]),
    paused: &pause::Paused<'_>,
    target: &Path,
    wait: Duration,
) -> Result<Manifest, Failure> {
    paused.renew().await?;
    // Everything up to this head is in the copy.
    let head = audit::latest_head(broker).await?;
    if let Some(head) = &head {
        directory::write_head(target, head)?;
    }
    paused.quiet(wait).await?;
    let mut copies: Vec<StreamCopy> = Vec::new();
    for name in streams {
        output::complain(&format!("copying {name}"));
        copies.push(snapshot::copy(broker, name, target).await?);
    }
    // Whatever was handed over since the first one ends it here at the latest.
    paused.renew().await?;
    let manifest = Manifest::new(broker, copies, head.is_some());
    directory::write_manifest(target, &manifest)?;
    Ok(manifest)
}

/// A backup as it is printed.
#[derive(Debug, Serialize)]
struct Made {
    #[serde(flatten)]
    manifest: Manifest,
    directory: PathBuf,
    /// Older backups that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<PathBuf>,
}

fn text(made: &Made) -> String {
    let Made {
        manifest,
        directory,
        removed,
    } = made;
    let mut table = Table::new(["STREAM", "MESSAGES", "LAST SEQUENCE", "BYTES OF THE COPY"]);
    for copy in &manifest.streams {
        table.row([
            Cell::text(&copy.stream),
            Cell::number(copy.messages),
            Cell::number(copy.last_sequence),
            Cell::number(copy.bytes),
        ]);
    }
    let removed = removed.iter();
    let removed: String = removed
        .map(|old| format!("{} is removed.\n", old.display()))
        .collect();
    format!(
        "{table}Everything that {} keeps in the broker is copied to {}. What services read from files, and an archive in a folder, is \
         not.\n{removed}",
        styled(NAMED, &manifest.installation),
        directory.display()
    )
}
