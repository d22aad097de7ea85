//! `concord case insights`: what everybody in a case was told of shared memory.

use clap::Args;
use concord_wire::payload::{MemoryEntry, Pattern};
use concord_wire::{AgentId, CaseId};
use serde_json::json;

use super::{Shown, asked, sure, why};
use crate::shared::args::{JsonArg, case_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, one_line, styled};

/// At most so many characters of a value stand in a line.
const VALUE: usize = 70;

/// Arguments of `concord case insights`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shown to everybody who is in the case: what was told at once, and what was held back and told at
a checkpoint. What else its agents have written: `concord memory list --case`.

Examples:
  concord case insights c-42
  concord case insights c-42 --json | jq '.entries[] | [.agent, .topic, .value]'")]
pub(crate) struct InsightsArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &InsightsArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({ "case_id": args.case, "insights": true });
    let shown: Shown<MemoryEntry> = asked(&broker, request).await?;
    args.json.print(&shown, text)?;
    Ok(0)
}

fn text(shown: &Shown<MemoryEntry>) -> String {
    let checkpoints = shown.checkpoints.iter();
    let checkpoints = checkpoints.map(|one| {
        let (number, reason, told) = (one.checkpoint, one.reason, one.told);
        let patterns: String = one.patterns.iter().map(in_common).collect();
        format!(
            "{} checkpoint {number} ({reason}): {told} told\n{patterns}",
            one.at
        )
    });
    let mut text: String = shown.entries.iter().map(line).chain(checkpoints).collect();
    if shown.entries.is_empty() {
        text.insert_str(0, "Nobody was told of anything yet.\n");
    }
    if shown.more {
        text.push_str("There is more: `concord memory list --case` names it all.\n");
    }
    text
}

/// What entries of several agents had in common.
fn in_common(pattern: &Pattern) -> String {
    let agents: Vec<&str> = pattern.agents.iter().map(AgentId::as_str).collect();
    let sure = pattern
        .confidence
        .map_or_else(|| "-".to_owned(), |sure| format!("{sure:.2}"));
    format!(
        "  in common: {} in {} entries of {}, confidence {sure}\n",
        one_line(&pattern.about, VALUE),
        pattern.entries,
        agents.join(", ")
    )
}

fn line(entry: &MemoryEntry) -> String {
    let listing = &entry.listing;
    let reach = listing.reach.as_ref().map_or_else(String::new, why);
    format!(
        "{} {} {} importance {:.2} confidence {} {reach}: {}\n",
        listing.at,
        listing.agent,
        styled(NAMED, format!("{} {}", listing.topic, listing.version)),
        listing.importance,
        sure(listing),
        one_line(&entry.value.to_string(), VALUE)
    )
}
