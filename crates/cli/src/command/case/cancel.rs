//! `concord case cancel`: ends a case and its debates without a decision.

use clap::Args;
use concord_wire::CaseId;
use concord_wire::subject::Service;

use crate::shared::args::{ByArgs, case_id};
use crate::shared::case_file;
use crate::shared::connection::{ConnectionArgs, cancel};
use crate::shared::failure::Failure;

/// Arguments of `concord case cancel`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord case cancel c-42 --by eva --why \"the deal is off\"")]
pub(crate) struct CancelArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    by: ByArgs,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &CancelArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let CancelArgs { case, by } = args;
    case_file::existing(&broker, case).await?;
    cancel(
        &broker,
        (Service::Coordinator, "cancel_case"),
        ("case", case),
        by,
        ["is cancelled, with its debates", "was cancelled already"],
    )
    .await
}
