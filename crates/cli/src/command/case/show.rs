//! `concord case show`: a case with its findings, conflicts and decision.

use anstyle::Style;
use clap::Args;
use concord_domain::aggregates::case::Phase;
use concord_runtime::Broker;
use concord_wire::CaseId;

use crate::command::case::view;
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::case_file::{self, CaseFile, unknown};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{BAD, DOUBTFUL, GOOD, NAMED, PLAIN};

/// Arguments of `concord case show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord case show c-42
  concord case show c-42 --version 1
  concord case show c-42 --json

The JSON is the decision package with the debates of the case, and the whole input of its task.")]
pub(crate) struct ShowArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// Show the case as it was with this version of its decision: what had been found and debated, and how that had ended. What was said in
    /// its debates is shown up to now. The current version when left out.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let Some(version) = args.version else {
        return show(&broker, &args.case, args.json).await;
    };
    let file = case_file::read_version(&broker, &args.case, version).await?;
    args.json.print(&with_input(file), view::text)?;
    Ok(0)
}

/// Prints a case, as text or JSON.
pub(super) async fn show(broker: &Broker, case: &CaseId, json: JsonArg) -> Result<u8, Failure> {
    let file = case_file::read(broker, case)
        .await?
        .ok_or_else(|| unknown(case))?;
    json.print(&with_input(file), view::text)?;
    Ok(0)
}

/// The decision package leaves the input out, for a meeting needs no contract of many pages. Whoever rules has a part of it in the
/// brief, which sends them here for the whole.
fn with_input(mut file: CaseFile) -> CaseFile {
    if let Some(opened) = &file.state.opened {
        file.package.task.input.clone_from(&opened.task.input);
    }
    file
}

/// The name of a phase.
pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::New => "new",
        Phase::Collecting => "collecting",
        Phase::Detecting => "detecting",
        Phase::Deliberating => "deliberating",
        Phase::Decided => "decided",
        Phase::Cancelled => "cancelled",
    }
}

/// The style of a phase.
pub(super) fn phase_style(phase: Phase) -> Style {
    match phase {
        Phase::New => PLAIN,
        Phase::Collecting | Phase::Detecting => NAMED,
        Phase::Deliberating => DOUBTFUL,
        Phase::Decided => GOOD,
        Phase::Cancelled => BAD,
    }
}
