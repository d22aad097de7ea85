//! `concord impact`: the analyses of a case, and what they rest on.

use clap::Subcommand;
use concord_domain::aggregates::impact::{ImpactMachine, ImpactState};
use concord_wire::CaseId;

use crate::shared::case_file;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;

mod graph;
mod plan;
mod run;
mod runs;
mod show;

/// The verbs of `concord impact`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImpactVerb {
    /// Print what the analyses of a case rest on, as a drawing or as JSON.
    Graph(graph::GraphArgs),
    /// Show what changed decisions do to the analyses of a case.
    Show(show::ShowArgs),
    /// Show which analyses would be done again, in which order, and how long it takes.
    Plan(plan::PlanArgs),
    /// Have done again what must be, by the agents whose analyses they are.
    Run(run::RunArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: ImpactVerb) -> Result<u8, Failure> {
    match verb {
        ImpactVerb::Graph(args) => graph::run(connection, &args).await,
        ImpactVerb::Show(args) => show::run(connection, &args).await,
        ImpactVerb::Plan(args) => plan::run(connection, &args).await,
        ImpactVerb::Run(args) => run::run(connection, &args).await,
    }
}

/// The analyses of a case, from its events. Fails for a case in which nobody has published any.
async fn analyses(connection: &ConnectionArgs, case: &CaseId) -> Result<ImpactState, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let (state, _) = source.aggregate::<ImpactMachine>(&case.token()).await?;
    if state.graph.is_empty() {
        case_file::existing(&broker, case).await?;
        return Err(Failure::failed(format!(
            "no analysis was published in {case}: agents publish them with the request publish_analysis"
        )));
    }
    Ok(state)
}
