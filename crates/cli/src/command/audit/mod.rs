//! `concord audit`: evidence that is kept elsewhere, and checked with or without the broker.

use clap::Subcommand;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

pub(crate) mod bundle;
pub(crate) mod evidence;
mod export;
mod head;
mod source;
mod verify;

pub(crate) use head::latest as latest_head;

/// The verbs of `concord audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Show the latest head of the log, or write it for `concord check --against`.
    Head(head::HeadArgs),
    /// Write a bundle of everything that is stored: events, messages, dead letters, the head and its keys.
    Export(export::ExportArgs),
    /// Check a bundle without the broker: heads, signatures, and the invariants.
    Verify(verify::VerifyArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: AuditVerb) -> Result<u8, Failure> {
    match verb {
        AuditVerb::Head(args) => head::run(&connection.connect().await?, &args).await,
        AuditVerb::Export(args) => export::run(&connection.connect().await?, &args).await,
        AuditVerb::Verify(args) => verify::run(&args).await,
    }
}
