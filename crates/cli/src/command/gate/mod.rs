//! `concord gate`: people review what stands provisionally, and let a case go on.

use clap::Subcommand;
use concord_domain::aggregates::case::{CaseMachine, CaseState};
use concord_events::{CaseEvent, StoredEvent};
use concord_runtime::Broker;
use concord_runtime::event_store::nats::NatsEventStore;
use concord_wire::CaseId;

use crate::shared::case_file;
use crate::shared::case_file::unknown;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod list;
mod review;
mod show;

/// What to do with gates.
#[derive(Debug, Subcommand)]
pub(crate) enum GateVerb {
    /// List the gates of a case: passed and ahead.
    List(list::ListArgs),
    /// Show what requires review at the gate ahead.
    Show(show::ShowArgs),
    /// Confirm or override a provisional decision, have it debated again, or pass the gate.
    Review(Box<review::ReviewArgs>),
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, verb: GateVerb) -> Result<u8, Failure> {
    match verb {
        GateVerb::List(args) => list::run(connection, &args).await,
        GateVerb::Show(args) => show::run(connection, &args).await,
        GateVerb::Review(args) => review::run(connection, &args).await,
    }
}

/// A case and its facts; an error when there is none under this id.
async fn load(
    broker: &Broker,
    case: &CaseId,
) -> Result<(CaseState, Vec<StoredEvent<CaseEvent>>), Failure> {
    let ledger = NatsEventStore::new(broker.clone()).await?;
    let (state, records) = case_file::aggregate::<CaseMachine>(&ledger, &case.token()).await?;
    if state.opened.is_some() {
        Ok((state, records))
    } else {
        Err(unknown(case))
    }
}

/// "1 provisional decision requires review": the sentence of the specification.
fn requires_review(number: usize) -> String {
    match number {
        1 => "1 provisional decision requires review".to_owned(),
        number => format!("{number} provisional decisions require review"),
    }
}
