//! `concord queue next`: the brief of the most urgent debate of an expert.

use clap::Args;
use concord_domain::aggregates::debate::DebateMachine;
use concord_events::Briefed;
use concord_wire::AgentId;
use concord_wire::payload::Level;

use super::{brief, state};
use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output;

/// Arguments of `concord queue next`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord queue next --expert eva
  concord queue next --expert eva --json | jq -r .digest

The JSON is what the expert was sent: expert, digest, brief and due; null when the expert has no debate. A ruling is bound
to the digest: `concord rule DEBATE --digest D` is refused when the debate has changed since.")]
pub(super) struct NextArgs {
    /// The expert.
    #[arg(long, value_name = "EXPERT", value_parser = agent_id)]
    expert: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &NextArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let queue = state(&source).await?;
    let expert = &args.expert;
    if !queue.experts.contains_key(expert) {
        return Err(Failure::failed(format!(
            "{expert} is not registered as an expert; `concord expert list` shows who is"
        )));
    }
    let held = queue.held_by(expert);
    let mut next: Option<Briefed> = None;
    for debate in &held {
        let id = debate.entry.debate_id.token();
        let (state, events) = source.aggregate::<DebateMachine>(&id).await?;
        // The queue learns of the events of a debate a moment later.
        let waits = state.outcome.is_none()
            && state
                .ladder
                .as_ref()
                .is_some_and(|one| one.level == Level::Person);
        next = brief::latest(&state, &events).filter(|briefed| waits && briefed.expert == *expert);
        if next.is_some() {
            break;
        }
    }
    if args.json.json {
        output::json(&next)?;
        return Ok(0);
    }
    match (&next, held.len()) {
        (Some(next), _) => output::print(&brief::text(next))?,
        (None, 0) => output::print(&format!(
            "{expert} has no debate; `concord queue` shows what waits\n"
        ))?,
        (None, _) => {
            output::print(&format!(
                "{expert} is being briefed, or deadlines are held; see `concord queue`\n"
            ))?;
        }
    }
    Ok(0)
}
