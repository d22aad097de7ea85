//! `concord memory put`.

use clap::Args;
use concord_events::{Aggregate, MemoryPut};
use concord_wire::payload::{MEMORY_PUT, Remember};
use concord_wire::{AgentId, CaseId, Token};
use serde_json::json;

use super::topic;
use crate::shared;
use crate::shared::args::{JsonArg, agent_id, case_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};
use crate::shared::put::{Put, refused, value_of};
use crate::shared::send::WaitArgs;

/// Arguments of `concord memory put`.
#[derive(Debug, Args)]
#[command(after_help = "\
The value is JSON; what is none is taken as a text. Every version is kept. With --based-on it is
refused where another version stands by then.

Examples:
  concord memory put margin 0.25 --by macro_analyst --importance 0.9 --confidence 0.7
  concord memory put margin 0.28 --by macro_analyst --importance 0.9 --evidence \"10-K page 45\" --tag margins
  concord memory put margin null --by macro_analyst --importance 0 --based-on 2        nothing is known any more")]
pub(crate) struct PutArgs {
    /// The topic: letters, digits, - and _.
    #[arg(value_parser = topic)]
    topic: Token,
    /// What is known of it.
    value: String,
    /// Who writes, and whose memory it is.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    by: AgentId,
    /// How much it matters, 0 to 1.
    #[arg(long)]
    importance: f64,
    /// How sure the writer is, 0 to 1.
    #[arg(long)]
    confidence: Option<f64>,
    /// What it rests on; may be given several times.
    #[arg(long, value_name = "TEXT")]
    evidence: Vec<String>,
    /// A word under which it is found; may be given several times.
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// The version that was read; 0 where there is to be none.
    #[arg(long, value_name = "VERSION")]
    based_on: Option<u64>,
    /// The case that it belongs to; without one everybody may read it.
    #[arg(long, value_parser = case_id)]
    case: Option<CaseId>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn put(connection: &ConnectionArgs, args: &PutArgs) -> Result<u8, Failure> {
    let entry = Remember {
        agent: None,
        topic: args.topic.clone(),
        value: value_of(&args.value),
        importance: args.importance,
        confidence: args.confidence,
        evidence: args.evidence.clone(),
        tags: args.tags.clone(),
        based_on: args.based_on,
    };
    entry.check(&args.by, "").map_err(refused)?;
    let put = Put {
        by: &args.by,
        case: args.case.as_ref(),
        action: MEMORY_PUT,
        parameters: json!(entry),
        watched: (Aggregate::Memory, args.by.token()),
    };
    shared::put::put(connection, put, (args.wait, &args.json), |event| {
        let put: MemoryPut = event.read()?;
        let name = styled(NAMED, &put.entry.topic);
        Ok(format!("{name} is at version {}\n", put.version))
    })
    .await
}
