//! `concord archive`: cases that are over, outside the streams.

use clap::Subcommand;
use concord_archive::{Archive, Location};
use concord_runtime::Broker;
use concord_runtime::event_store::archived::Archived;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;

mod list;
mod restore;
mod status;
mod verify;

/// The verbs of `concord archive`.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveVerb {
    /// Show how much is archived, and what waits to be removed from the streams.
    Status(status::StatusArgs),
    /// List the archived cases.
    List(list::ListArgs),
    /// Read everything that is archived, and name each segment and case that is not what was sealed.
    Verify(verify::VerifyArgs),
    /// Write everything that is archived of a case to files, in the form of `concord audit export`.
    Restore(restore::RestoreArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: ArchiveVerb) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let archived = Archived::read(&broker).await?;
    if let (Some(archive), true) = (&broker.archive, archived.segments().is_empty()) {
        look_at(archive).await?;
    }
    match verb {
        ArchiveVerb::Status(args) => status::run(&broker, &archived, &args).await,
        ArchiveVerb::List(args) => list::run(&archived, &args),
        ArchiveVerb::Verify(args) => verify::run(archive(&broker)?, &archived, &args).await,
        ArchiveVerb::Restore(args) => restore::run(&broker, &archived, &args).await,
    }
}

/// Looks whether a place is there from which nothing is to be read yet: what is wrong with it is better known before it is needed.
async fn look_at(archive: &Archive) -> Result<(), Failure> {
    // A store that does not answer, or lets nobody in, fails here.
    archive.names().await?;
    if let Location::Folder(path) = archive.location()
        && !path.is_dir()
    {
        output::complain(&format!(
            "there is no folder {}; the services make theirs with the first segment",
            path.display()
        ));
    }
    Ok(())
}

/// The archive, which somebody has to name.
fn archive(broker: &Broker) -> Result<&Archive, Failure> {
    broker.archive.as_ref().ok_or_else(|| {
        Failure::usage(
            "it is not said where the archive is; name it with --archive LOCATION, as the services' setting storage.archive \
             says",
        )
    })
}
