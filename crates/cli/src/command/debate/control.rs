//! What operators can do to a debate: hold, resume or extend its deadlines, and cancel it.

use clap::{ArgGroup, Args};
use concord_events::DeadlineControl;
use concord_wire::DebateId;
use concord_wire::subject::Service;
use serde_json::json;

use crate::shared::args::{ByArgs, debate_id};
use crate::shared::connection::{self, ConnectionArgs, command};
use crate::shared::debate_file::load;
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, span, styled};

/// The debate, and who gives the command.
#[derive(Debug, Args)]
pub(super) struct DebateArgs {
    /// The debate.
    #[arg(value_parser = debate_id)]
    debate: DebateId,
    #[command(flatten)]
    by: ByArgs,
}

/// Arguments of `concord debate hold` and `concord debate resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord debate hold d-4f1c --by eva --why \"maintenance until noon\"
  concord debate resume d-4f1c --by eva --why \"maintenance is over\"")]
pub(crate) struct ControlArgs {
    #[command(flatten)]
    of: DebateArgs,
}

/// Arguments of `concord debate extend`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("later").required(true),
    after_help = "Example: concord debate extend d-4f1c --hours 2 --by eva --why \"the filing comes at four\""
)]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    of: DebateArgs,
    /// By how many hours.
    #[arg(long, value_name = "H", group = "later", value_parser = hours)]
    hours: Option<u64>,
    /// By how many milliseconds.
    #[arg(long, value_name = "N", group = "later", value_parser = clap::value_parser!(u64).range(1..))]
    ms: Option<u64>,
}

/// Arguments of `concord debate cancel`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord debate cancel d-4f1c --by eva --why \"the deal is off\"")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    of: DebateArgs,
}

/// Hours as milliseconds; parts of an hour are allowed.
fn hours(text: &str) -> Result<u64, String> {
    let hours: f64 = text
        .parse()
        .map_err(|_| "a number of hours is expected, for example 2 or 0.5".to_owned())?;
    let millis = (hours * 3_600_000.0).round();
    if !millis.is_finite() || !(1.0..=1e15).contains(&millis) {
        return Err("a number of hours above 0 is expected, for example 2 or 0.5".to_owned());
    }
    // It was checked to be in range.
    Ok(millis as u64)
}

pub(super) async fn hold(connection: &ConnectionArgs, args: &ControlArgs) -> Result<u8, Failure> {
    control(connection, &args.of, DeadlineControl::Hold, 0).await
}

pub(super) async fn resume(connection: &ConnectionArgs, args: &ControlArgs) -> Result<u8, Failure> {
    control(connection, &args.of, DeadlineControl::Resume, 0).await
}

pub(super) async fn extend(connection: &ConnectionArgs, args: &ExtendArgs) -> Result<u8, Failure> {
    let later_ms = args.hours.or(args.ms).unwrap_or_default();
    control(connection, &args.of, DeadlineControl::Extend, later_ms).await
}

async fn control(
    connection: &ConnectionArgs,
    args: &DebateArgs,
    control: DeadlineControl,
    later_ms: u64,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let DebateArgs { debate, by } = args;
    let ByArgs { by, why, json } = by;
    load(&broker, debate).await?;
    let request = json!({ "debate_id": debate, "control": control, "later_ms": later_ms, "by": by, "why": why });
    let done = command(
        &broker,
        Service::DebateFacilitator,
        "control_debate",
        &request,
    )
    .await?;
    let (state, _) = load(&broker, debate).await?;
    let waits_for = state
        .ladder
        .map(|ladder| ladder.waits_for)
        .unwrap_or_default();
    if json.json {
        let answer = json!({
            "debate_id": debate, "control": control, "later_ms": later_ms, "waits_for": waits_for, "done": done,
        });
        output::json(&answer)?;
        return Ok(0);
    }
    let debate = styled(NAMED, debate);
    let sentence = match control {
        _ if done.event.is_none() => {
            format!("nothing had to be done: the deadlines of {debate} are as they were")
        }
        DeadlineControl::Hold => {
            format!("the deadlines of {debate} are held; resume them with concord debate resume")
        }
        DeadlineControl::Resume => format!("the deadlines of {debate} run again"),
        DeadlineControl::Extend => {
            format!("the deadlines of {debate} are {} later", span(later_ms))
        }
    };
    let mut text = format!("{sentence}\n");
    for deadline in waits_for {
        text.push_str(&format!("  {}  {}\n", deadline.due, deadline.name));
    }
    output::print(&text)?;
    Ok(0)
}

pub(super) async fn cancel(connection: &ConnectionArgs, args: &CancelArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let DebateArgs { debate, by } = &args.of;
    load(&broker, debate).await?;
    connection::cancel(
        &broker,
        (Service::DebateFacilitator, "cancel_debate"),
        ("debate", debate),
        by,
        ["is cancelled", "had ended already"],
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_have_parts() {
        assert_eq!((hours("2"), hours("0.5")), (Ok(7_200_000), Ok(1_800_000)));
        for wrong in ["0", "-1", "two", "NaN", "inf", "1e300"] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }
}
