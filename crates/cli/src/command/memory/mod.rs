//! `concord memory`: what agents know, by topic, with its history.

use clap::{Args, Subcommand};
use concord_runtime::Broker;
use concord_wire::payload::{
    Adapted, Checkpoint, MemoryEntry, MemoryListing, MemoryReach, Snapshot,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Token};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::shared::args::{JsonArg, agent_id, case_id};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, one_line, styled};

pub(crate) mod insights;
mod put;

/// At most so many characters of a value stand in a line.
const VALUE: usize = 70;

/// The verbs of `concord memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryVerb {
    /// Show a topic of an agent's memory, with its value.
    Get(GetArgs),
    /// Write a topic of your own memory.
    Put(put::PutArgs),
    /// Show every version of a topic, the oldest first.
    History(HistoryArgs),
    /// Show what memory held at a snapshot: the same whenever it is asked for.
    #[command(name = "as-of")]
    AsOf(AsOfArgs),
    /// List the topics of an agent or of a case, or the agents that have any.
    List(ListArgs),
}

/// Arguments of `concord memory get`.
#[derive(Debug, Args)]
#[command(after_help = "\
What belongs to a case is shown to whoever is in the case, everything else to everybody.

Examples:
  concord memory get macro_analyst margin
  concord memory get macro_analyst margin --json | jq .entries[0].value")]
pub(crate) struct GetArgs {
    /// Whose memory.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The topic.
    #[arg(value_parser = topic)]
    topic: Token,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord memory history`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord memory history macro_analyst margin
  concord memory history macro_analyst margin --after 100 --json")]
pub(crate) struct HistoryArgs {
    /// Whose memory.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The topic.
    #[arg(value_parser = topic)]
    topic: Token,
    /// Only versions after this one.
    #[arg(long, default_value_t = 0, value_name = "VERSION")]
    after: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord memory as-of`.
#[derive(Debug, Args)]
#[command(after_help = "\
A snapshot is snap_ and a sequence. Every answer about memory names the one that it is of, and so
does every version: the first snapshot that has it.

Examples:
  concord memory as-of snap_12345 macro_analyst
  concord memory as-of snap_12345 macro_analyst margin --json
  concord memory as-of snap_12345 --case c-42")]
pub(crate) struct AsOfArgs {
    /// The snapshot.
    snapshot: Snapshot,
    /// Whose memory.
    #[arg(value_parser = agent_id, required_unless_present = "case")]
    agent: Option<AgentId>,
    /// One topic, with its value.
    #[arg(value_parser = topic)]
    topic: Option<Token>,
    /// Only what belongs to this case.
    #[arg(long, value_parser = case_id)]
    case: Option<CaseId>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord memory list`.
#[derive(Debug, Args)]
#[command(after_help = "\
REACH is whom an entry of a case was told to, and why: above the first threshold at once to
everybody in the case, above the second it is held back, else it is told to nobody.

Examples:
  concord memory list                      who has any
  concord memory list macro_analyst
  concord memory list --case c-42 --json")]
pub(crate) struct ListArgs {
    /// Whose memory.
    #[arg(value_parser = agent_id)]
    agent: Option<AgentId>,
    /// Only what belongs to this case.
    #[arg(long, value_parser = case_id)]
    case: Option<CaseId>,
    #[command(flatten)]
    json: JsonArg,
}

fn topic(text: &str) -> Result<Token, String> {
    Token::new(text).map_err(|error| error.to_string())
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown<T> {
    as_of: Snapshot,
    entries: Vec<T>,
    #[serde(default)]
    more: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checkpoints: Vec<Checkpoint>,
}

/// Who has any memory.
#[derive(Debug, Serialize, Deserialize)]
struct Owners {
    agents: Vec<Token>,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: MemoryVerb) -> Result<u8, Failure> {
    match verb {
        MemoryVerb::Get(args) => get(connection, &args).await,
        MemoryVerb::Put(args) => put::put(connection, &args).await,
        MemoryVerb::History(args) => history(connection, &args).await,
        MemoryVerb::AsOf(args) => as_of(connection, &args).await,
        MemoryVerb::List(args) => list(connection, &args).await,
    }
}

/// Asks the coordinator; what is null is left out.
async fn asked<T: DeserializeOwned>(broker: &Broker, request: Value) -> Result<T, Failure> {
    let fields = request.as_object().cloned().unwrap_or_default();
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    let request: Map<String, Value> = given.collect();
    ask(broker, Service::Coordinator, "memory", &request).await
}

async fn get(connection: &ConnectionArgs, args: &GetArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({ "agent": args.agent, "topic": args.topic });
    let shown: Shown<MemoryEntry> = asked(&broker, request).await?;
    if shown.entries.is_empty() {
        return Err(nothing(&args.agent, &args.topic, shown.as_of));
    }
    args.json.print(&shown, values)?;
    Ok(0)
}

fn nothing(agent: &AgentId, topic: &Token, snapshot: Snapshot) -> Failure {
    Failure::failed(format!(
        "{agent} has nothing under {topic} at {snapshot}, or nothing that you may read; see `concord memory list {agent}`"
    ))
}

async fn history(connection: &ConnectionArgs, args: &HistoryArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut all: Option<Shown<MemoryEntry>> = None;
    let mut after = args.after;
    loop {
        let as_of = all.as_ref().map(|all| all.as_of);
        let request = json!({
            "agent": args.agent, "topic": args.topic, "history": true, "after": after, "as_of": as_of,
        });
        let page: Shown<MemoryEntry> = asked(&broker, request).await?;
        let more = page.more;
        let read = page.entries.last().map(|entry| entry.listing.version);
        match &mut all {
            Some(all) => all.entries.extend(page.entries),
            None => {
                all = Some(Shown {
                    more: false,
                    ..page
                })
            }
        }
        // A page that is said to be followed by another has something in it.
        let Some(read) = read.filter(|_| more) else {
            break;
        };
        after = read;
    }
    let Some(shown) = all.filter(|all| !all.entries.is_empty()) else {
        return Err(Failure::failed(format!(
            "{} has no such version of {}, or none that you may read",
            args.agent, args.topic
        )));
    };
    args.json.print(&shown, values)?;
    Ok(0)
}

async fn as_of(connection: &ConnectionArgs, args: &AsOfArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({
        "agent": args.agent, "topic": args.topic, "case_id": args.case, "as_of": args.snapshot,
    });
    let (Some(agent), Some(topic)) = (&args.agent, &args.topic) else {
        let shown: Shown<MemoryListing> = asked(&broker, request).await?;
        args.json.print(&shown, listings)?;
        return Ok(0);
    };
    let shown: Shown<MemoryEntry> = asked(&broker, request).await?;
    if shown.entries.is_empty() {
        return Err(nothing(agent, topic, shown.as_of));
    }
    args.json.print(&shown, values)?;
    Ok(0)
}

async fn list(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    if args.agent.is_none() && args.case.is_none() {
        let owners: Owners = asked(&broker, json!({})).await?;
        args.json.print(&owners, |owners| {
            let lines = owners.agents.iter();
            let text: String = lines.map(|agent| format!("{agent}\n")).collect();
            match text.as_str() {
                "" => "Nobody has written into memory.\n".to_owned(),
                _ => text,
            }
        })?;
        return Ok(0);
    }
    let request = json!({ "agent": args.agent, "case_id": args.case });
    let shown: Shown<MemoryListing> = asked(&broker, request).await?;
    args.json.print(&shown, listings)?;
    Ok(0)
}

fn sure(listing: &MemoryListing) -> String {
    let confidence = listing.confidence;
    confidence.map_or_else(|| "-".to_owned(), |sure| format!("{sure:.2}"))
}

/// Whom an entry reaches, and above which importance; `-` and `+` where a debate, a change of regime or the agent itself has moved the thresholds.
fn why(reach: &MemoryReach) -> String {
    let adapted = reach.adapted.iter().map(|why| match why {
        Adapted::DebateOpen => " - debate open",
        Adapted::RegimeChanged => " - regime changed",
        Adapted::OftenTold => " + often told",
    });
    format!(
        "{} ({}, {}{})",
        reach.reach,
        reach.broadcast_above,
        reach.hold_above,
        adapted.collect::<String>()
    )
}

fn listings(shown: &Shown<MemoryListing>) -> String {
    if shown.entries.is_empty() {
        return format!(
            "Nothing stands there at {}, or nothing that you may read.\n",
            shown.as_of
        );
    }
    let mut table = Table::new([
        "AGENT",
        "TOPIC",
        "VERSION",
        "SINCE",
        "WRITTEN",
        "IMPORTANCE",
        "CONFIDENCE",
        "CASE",
        "REACH",
        "TAGS",
    ]);
    for one in &shown.entries {
        let case = one.case_id.as_ref().map_or("-", CaseId::as_str);
        table.row([
            Cell::text(&one.agent),
            Cell::text(&one.topic).with(NAMED),
            Cell::text(one.version),
            Cell::text(one.since),
            Cell::text(output::ago(one.at)),
            Cell::text(format!("{:.2}", one.importance)),
            Cell::text(sure(one)),
            Cell::text(case),
            Cell::text(one.reach.as_ref().map_or_else(|| "-".to_owned(), why)),
            Cell::text(one_line(&one.tags.join(" "), 40)),
        ]);
    }
    let more = if shown.more {
        "There is more; name an agent.\n"
    } else {
        ""
    };
    format!("{table}{more}As of {}.\n", shown.as_of)
}

fn values(shown: &Shown<MemoryEntry>) -> String {
    shown.entries.iter().map(line).collect()
}

fn line(entry: &MemoryEntry) -> String {
    let MemoryEntry {
        listing,
        value,
        evidence,
    } = entry;
    let mut text = format!(
        "{} {} importance {:.2} confidence {} since {}: {}\n",
        listing.at,
        styled(NAMED, format!("{} {}", listing.topic, listing.version)),
        listing.importance,
        sure(listing),
        listing.since,
        one_line(&value.to_string(), VALUE)
    );
    for one in evidence {
        text.push_str(&format!("  evidence: {}\n", one_line(one, VALUE)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_stands_with_version_importance_and_snapshot() {
        let shown: Shown<MemoryListing> = serde_json::from_value(json!({
            "as_of": "snap_90",
            "entries": [{ "agent": "ann", "topic": "margin", "version": 3, "since": "snap_70", "importance": 0.9,
                "at": "2026-11-21T20:00:00Z", "bytes": 4, "tags": ["margins"], "case_id": "c-1",
                "reach": { "reach": "broadcast", "broadcast_above": 0.7, "hold_above": 0.3, "adapted": ["debate_open"] } }],
        }))
        .unwrap();
        let text = anstream::adapter::strip_str(&listings(&shown)).to_string();
        let line = text.lines().nth(1).unwrap();
        for part in [
            "ann",
            "margin",
            "snap_70",
            "0.90",
            "broadcast (0.7, 0.3 - debate open)",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(text.ends_with("As of snap_90.\n"), "{text}");
    }
}
