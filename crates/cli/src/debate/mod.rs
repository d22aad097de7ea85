//! `concord debate`: looking at debates, and what operators do to them.

use clap::Subcommand;
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_events::{DebateEvent, StoredEvent};
use concord_runtime::Broker;
use concord_runtime::event_store::nats::NatsEventStore;
use concord_wire::{CaseId, DebateId};

use crate::case::file;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;

mod control;
mod show;

pub(crate) use show::resolution_text;

/// What to do with debates.
#[derive(Debug, Subcommand)]
pub(crate) enum DebateVerb {
    /// Show a debate: its level, what it waits for, and what has happened.
    Show(show::ShowArgs),
    /// Hold the deadlines of a debate, until they are resumed.
    Hold(control::ControlArgs),
    /// Let held deadlines run again, later by the time they were held.
    Resume(control::ControlArgs),
    /// Give a debate more time: all its deadlines are later.
    Extend(control::ExtendArgs),
    /// End a debate without a result.
    Cancel(control::CancelArgs),
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, verb: DebateVerb) -> Result<u8, Failure> {
    match verb {
        DebateVerb::Show(args) => show::run(connection, &args).await,
        DebateVerb::Hold(args) => control::hold(connection, &args).await,
        DebateVerb::Resume(args) => control::resume(connection, &args).await,
        DebateVerb::Extend(args) => control::extend(connection, &args).await,
        DebateVerb::Cancel(args) => control::cancel(connection, &args).await,
    }
}

/// The case that a debate belongs to.
pub(crate) fn case_of(state: &DebateState, debate: &DebateId) -> Result<CaseId, Failure> {
    let case = state.opened.as_ref().map(|opened| opened.case_id.clone());
    case.ok_or_else(|| Failure::failed(format!("debate {debate} was never opened")))
}

/// A debate and its facts; an error when there is none under this id.
pub(crate) async fn load(
    broker: &Broker,
    debate: &DebateId,
) -> Result<(DebateState, Vec<StoredEvent<DebateEvent>>), Failure> {
    let ledger = NatsEventStore::new(broker.clone()).await?;
    let (state, records) = file::aggregate::<DebateMachine>(&ledger, &debate.token()).await?;
    match state.opened {
        Some(_) => Ok((state, records)),
        None => Err(Failure::failed(format!(
            "there is no debate {debate}; `concord queue` and `concord case show CASE --json` name those there are"
        ))),
    }
}
