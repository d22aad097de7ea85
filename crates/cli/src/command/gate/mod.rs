//! `concord gate`: people review what stands provisionally, and let a case go on.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use concord_domain::aggregates::case::{CaseMachine, CaseState};
use concord_events::{CaseEvent, StoredEvent};
use concord_wire::{AgentId, CaseId};

use crate::shared::args::{JsonArg, case_id};
use crate::shared::case_file::unknown;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;

mod beside;
mod first_reviews;
mod list;
mod review;
mod show;
mod standing;
mod waiting;

/// The verbs of `concord gate`.
#[derive(Debug, Subcommand)]
pub(crate) enum GateVerb {
    /// List the cases that wait at a gate; with a case, its gates: passed and ahead.
    #[command(after_help = "Examples:\n  concord gate list\n  concord gate list c-42")]
    List(ListArgs),
    /// Show what requires review at the gate ahead.
    #[command(after_help = "Examples:\n  concord gate show c-42\n  concord gate show c-42 --json")]
    Show(GateArgs),
    /// Confirm or override a provisional decision, have it debated again, or pass the gate.
    Review(Box<review::ReviewArgs>),
}

/// Arguments of `concord gate list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The case; every case that has something to review, or only waits to pass its gate, when left out.
    #[arg(value_parser = case_id)]
    case: Option<CaseId>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord gate show`.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: GateVerb) -> Result<u8, Failure> {
    match verb {
        GateVerb::List(ListArgs { case: None, json }) => {
            let waiting = waiting::read(&connection.connect().await?).await?;
            json.print(&waiting, |waiting| waiting::text(waiting))?;
            Ok(0)
        }
        GateVerb::List(ListArgs {
            case: Some(case),
            json,
        }) => {
            let source = EventSource::new(&connection.connect().await?).await?;
            let (state, events) = load(&source, &case).await?;
            let first = first_reviews::all(&source, &state).await?;
            json.print(&list::shown(&case, &state, &events, first), list::text)?;
            Ok(0)
        }
        GateVerb::Show(GateArgs { case, json }) => {
            let source = EventSource::new(&connection.connect().await?).await?;
            let (state, _) = load(&source, &case).await?;
            let first = first_reviews::all(&source, &state).await?;
            json.print(&show::shown(&case, &state, first), show::text)?;
            Ok(0)
        }
        GateVerb::Review(args) => review::run(connection, &args).await,
    }
}

/// A case and its events; an error when there is none under this id.
async fn load(
    source: &EventSource,
    case: &CaseId,
) -> Result<(CaseState, Vec<StoredEvent<CaseEvent>>), Failure> {
    let (state, events) = source.aggregate::<CaseMachine>(&case.token()).await?;
    if state.opened.is_some() {
        Ok((state, events))
    } else {
        Err(unknown(case))
    }
}

/// What a gate waits for, and who has reviewed first where a second reviewer must say the same.
fn waits_for<'a>(number: usize, first: impl IntoIterator<Item = &'a AgentId>) -> String {
    let waits = match number {
        0 => "waits to pass".to_owned(),
        number => requires_review(number),
    };
    let first: BTreeSet<&str> = first.into_iter().map(AgentId::as_str).collect();
    match Vec::from_iter(first).join(", ") {
        nobody if nobody.is_empty() => waits,
        names => format!("{waits}, a second reviewer after {names}"),
    }
}

/// "1 provisional decision requires review": the sentence of the specification.
fn requires_review(number: usize) -> String {
    match number {
        1 => "1 provisional decision requires review".to_owned(),
        number => format!("{number} provisional decisions require review"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gate_waits_for_is_said_with_who_was_first() {
        let (eva, hal) = (AgentId::new("eva").unwrap(), AgentId::new("hal").unwrap());
        for (number, first, said) in [
            (0, vec![], "waits to pass"),
            (0, vec![&eva], "waits to pass, a second reviewer after eva"),
            (1, vec![], "1 provisional decision requires review"),
            (
                2,
                vec![&hal, &eva, &hal],
                "2 provisional decisions require review, a second reviewer after eva, hal",
            ),
        ] {
            assert_eq!(waits_for(number, first), said);
        }
    }
}
