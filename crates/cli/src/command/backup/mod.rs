//! `concord backup` and `concord restore`: everything that an installation keeps in the broker, as files.
//!
//! The streams are copied one after another, so a copy would hold what follows from an event and not the event, or say that something
//! was done and not hold what it did. While it is made the broker therefore hands nothing over to the services: what is said meanwhile is
//! stored, and done afterwards. Messages are copied before the events that follow from them: a message that is in the copy and was
//! done with meanwhile is given again, and its event is recognised. Events come last but for the archive, which is written before an event
//! says so.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use concord_events::topology::{Layout, StreamKind};
use concord_runtime::Broker;
use concord_runtime::service::shutdown;

use crate::command::audit;
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, styled};

mod directory;
mod pause;
mod request;
mod restore;
mod snapshot;

pub(crate) use restore::{RestoreArgs, run as restore};

use directory::{Manifest, StreamCopy};

/// Arguments of `concord backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord backup /backups/2026-11-25
  concord restore /backups/2026-11-25 --server nats://new-broker:4222

While the copy is made the services are given nothing new: what is said meanwhile is stored, and done afterwards. When the command is
killed, they go on after --pause-max.")]
pub(crate) struct BackupArgs {
    /// A directory that does not exist, or is empty.
    directory: PathBuf,
    /// How long to wait until nothing is being worked on, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// After how many seconds the services go on at the latest, whatever becomes of this command. It is renewed for each stream.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pause_max: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// The streams of an installation in the order in which they are copied; those of buckets may be missing.
fn streams(layout: &Layout) -> Vec<String> {
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
    directory::prepare(&args.directory)?;
    // Asked before anything is paused, so that whatever is paused goes on.
    let asked = shutdown::on_signal()
        .map_err(|error| Failure::failed(format!("signals cannot be waited for: {error}")))?;
    let paused = tokio::select! {
        paused = pause::Paused::of(&broker, Duration::from_secs(args.pause_max)) => paused?,
        denied = connection.denied() => return Err(denied),
    };
    let copied = tokio::select! {
        copied = copy(&broker, &paused, args) => copied,
        denied = connection.denied() => Err(denied),
        () = asked.cancelled() => Err(Failure::failed("interrupted; the copy is not complete, and the services go on")),
    };
    // Whatever has happened, and before anything is said.
    let resumed = paused.end().await;
    let manifest = copied?;
    resumed?;
    args.json.print(&manifest, text)?;
    Ok(0)
}

async fn copy(
    broker: &Broker,
    paused: &pause::Paused<'_>,
    args: &BackupArgs,
) -> Result<Manifest, Failure> {
    paused.renew().await?;
    // Everything up to this head is in the copy.
    let head = audit::latest_head(broker).await?;
    if let Some(head) = &head {
        directory::write_head(&args.directory, head)?;
    }
    paused.quiet(Duration::from_secs(args.wait)).await?;
    let mut copies: Vec<StreamCopy> = Vec::new();
    for name in streams(&broker.layout) {
        paused.renew().await?;
        output::complain(&format!("copying {name}"));
        if let Some(copy) = snapshot::copy(broker, &name, &args.directory).await? {
            copies.push(copy);
        }
    }
    let manifest = Manifest::new(broker, copies, head.is_some());
    directory::write_manifest(&args.directory, &manifest)?;
    Ok(manifest)
}

fn text(manifest: &Manifest) -> String {
    let mut table = Table::new(["STREAM", "MESSAGES", "LAST SEQUENCE", "BYTES OF THE COPY"]);
    for copy in &manifest.streams {
        table.row([
            Cell::text(&copy.stream),
            Cell::number(copy.messages),
            Cell::number(copy.last_sequence),
            Cell::number(copy.bytes),
        ]);
    }
    format!(
        "{}Everything that {} keeps in the broker is copied. What services read from files, and an archive in a folder, is not.\n",
        table,
        styled(NAMED, &manifest.installation)
    )
}
