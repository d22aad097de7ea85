//! `concord queue next`: the brief of the most urgent debate of an expert, or of one that they name.

use clap::Args;
use concord_domain::aggregates::debate::DebateMachine;
use concord_events::Briefed;
use concord_wire::payload::Level;
use concord_wire::{AgentId, DebateId};

use super::{brief, state};
use crate::shared::args::{JsonArg, agent_id, debate_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output;

/// Arguments of `concord queue next`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord queue next --expert eva
  concord queue next --expert eva --debate d-4f1c
  concord queue next --expert eva --json | jq -r .digest

The JSON is what the expert was sent: expert, digest, brief and due; null when the expert has no debate. A ruling is bound
to the digest: `concord rule DEBATE --digest D` is refused when the debate has changed since.")]
pub(super) struct NextArgs {
    /// The expert.
    #[arg(long, value_name = "EXPERT", value_parser = agent_id)]
    expert: AgentId,
    /// One of the debates that the expert has, which `concord queue` lists; the most urgent one when left out.
    #[arg(long, value_name = "DEBATE", value_parser = debate_id)]
    debate: Option<DebateId>,
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
    let held = queue.held_by(expert).into_iter();
    let held: Vec<&DebateId> = held.map(|debate| &debate.entry.debate_id).collect();
    let asked: Vec<&DebateId> = args.debate.as_ref().map_or(held, |debate| vec![debate]);
    let (mut next, mut is_held): (Option<Briefed>, bool) = (None, false);
    for debate in &asked {
        let id = debate.token();
        let (state, events) = source.aggregate::<DebateMachine>(&id).await?;
        // The queue learns of the events of a debate a moment later.
        let ladder = state.ladder.as_ref();
        let waits = state.outcome.is_none() && ladder.is_some_and(|one| one.level == Level::Person);
        is_held = ladder.is_some_and(|one| one.held.is_some());
        next = brief::latest(&state, &events).filter(|briefed| waits && briefed.expert == *expert);
        if next.is_some() {
            break;
        }
    }
    if args.json.json {
        output::json(&next)?;
        return Ok(0);
    }
    match (&next, &args.debate) {
        (Some(next), _) => output::print(&brief::text(next, is_held))?,
        (None, Some(debate)) => output::print(&format!(
            "{expert} has no brief of {debate} now; `concord queue` shows who has what, `concord debate show {debate}` where it is\n"
        ))?,
        (None, None) if asked.is_empty() => output::print(&format!(
            "{expert} has no debate; `concord queue` shows what waits\n"
        ))?,
        (None, None) => {
            output::print(&format!(
                "{expert} is being briefed, or deadlines are held; see `concord queue`\n"
            ))?;
        }
    }
    Ok(0)
}
