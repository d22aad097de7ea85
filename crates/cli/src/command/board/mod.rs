//! `concord board`: what everybody in a case shares under names.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use concord_events::{Aggregate, BoardEvent, EntryPut};
use concord_wire::payload::{BOARD_PUT, BoardEntry, PutEntry};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Timestamp};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::shared;
use crate::shared::args::{JsonArg, agent_id, case_id};
use crate::shared::case_file;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, one_line, styled};
use crate::shared::put::{Put, refused, value_of};
use crate::shared::send::WaitArgs;

/// At most so many characters of a value stand in a table.
const VALUE: usize = 70;

/// The verbs of `concord board`.
#[derive(Debug, Subcommand)]
pub(crate) enum BoardVerb {
    /// Show the entries of a case's board, or one of them with its value.
    Show(ShowArgs),
    /// Follow what is written on a case's board, until Ctrl-C.
    Watch(WatchArgs),
    /// Write an entry, on the version that you have read.
    Put(PutArgs),
}

/// Arguments of `concord board show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Everybody who is in the case may see it: its participants, whoever opened it, operators and
auditors. The history is read from the events, by operators, auditors and the case's opener.

Examples:
  concord board show c-42
  concord board show c-42 \"open questions\" --json | jq .entries[0].value
  concord board show c-42 plan --history")]
pub(crate) struct ShowArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// One entry; all of them when left out.
    name: Option<String>,
    /// Show every version, the oldest first.
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord board watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord board watch c-42
  concord board watch c-42 --json | jq .name

With --json, one object a line.")]
pub(crate) struct WatchArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord board put`.
#[derive(Debug, Args)]
#[command(after_help = "\
The value is JSON; what is none is taken as a text. It is refused where somebody else has
written meanwhile: read the entry again, and write on the version that stands.

Examples:
  concord board put c-42 plan '{\"steps\": 3}' --by ann
  concord board put c-42 plan \"ask the tax office\" --by ann --based-on 1 --confidence 0.8
  concord board put c-42 plan null --by ann --based-on 2        empty it")]
pub(crate) struct PutArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The entry.
    name: String,
    /// Its value.
    value: String,
    /// Who writes it.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    by: AgentId,
    /// The version that was read; 0 for a new entry.
    #[arg(long, default_value_t = 0, value_name = "VERSION")]
    based_on: u64,
    /// How sure the writer is, 0 to 1.
    #[arg(long)]
    confidence: Option<f64>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    case_id: CaseId,
    entries: Vec<BoardEntry>,
}

/// One version of an entry.
#[derive(Debug, Serialize)]
struct Version {
    name: String,
    version: u64,
    author: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    at: Timestamp,
    value: Value,
}

impl Version {
    fn new(put: EntryPut, at: Timestamp) -> Self {
        Self {
            name: put.name,
            version: put.version,
            author: put.heard.agent_id,
            confidence: put.confidence,
            at,
            value: put.value,
        }
    }

    fn line(&self) -> String {
        format!(
            "{} {} {}: {}\n",
            self.at,
            styled(
                NAMED,
                format!("{} {}", one_line(&self.name, 40), self.version)
            ),
            by(&self.author, self.confidence),
            one_line(&self.value.to_string(), VALUE)
        )
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: BoardVerb) -> Result<u8, Failure> {
    match verb {
        BoardVerb::Show(args) if args.history => history(connection, &args).await,
        BoardVerb::Show(args) => show(connection, &args).await,
        BoardVerb::Watch(args) => watch(connection, &args).await,
        BoardVerb::Put(args) => put(connection, &args).await,
    }
}

async fn show(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut request = json!({ "case_id": args.case });
    if let (Some(name), Some(fields)) = (&args.name, request.as_object_mut()) {
        fields.insert("name".to_owned(), json!(name));
    }
    let shown: Shown = ask(&broker, Service::Coordinator, "board", &request).await?;
    if let (Some(name), []) = (&args.name, shown.entries.as_slice()) {
        return Err(no_entry(&args.case, name));
    }
    args.json.print(&shown, text)?;
    Ok(0)
}

fn no_entry(case: &CaseId, name: &str) -> Failure {
    Failure::failed(format!("the board of {case} has no entry {name:?}"))
}

fn by(author: &AgentId, confidence: Option<f64>) -> String {
    match confidence {
        Some(confidence) => format!("{author} ({confidence:.2})"),
        None => author.to_string(),
    }
}

fn text(shown: &Shown) -> String {
    if shown.entries.is_empty() {
        return "Nothing is written on this board.\n".to_owned();
    }
    let mut table = Table::new(["ENTRY", "VERSION", "BY", "WRITTEN", "VALUE"]);
    for BoardEntry { listing, value } in &shown.entries {
        table.row([
            Cell::text(one_line(&listing.name, 40)).with(NAMED),
            Cell::text(listing.version),
            Cell::text(by(&listing.author, listing.confidence)),
            Cell::text(output::ago(listing.at)),
            Cell::text(one_line(&value.to_string(), VALUE)),
        ]);
    }
    table.to_string()
}

async fn history(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let query = EventQuery::of(Aggregate::Board, &args.case.token());
    let mut versions: BTreeMap<u64, Version> = BTreeMap::new();
    let read = source.for_each(&query, "reading the board", |stored| {
        let event = event_of::<BoardEvent>(&stored)?;
        let BoardEvent::Put(put) = event.event;
        if args.name.as_ref().is_none_or(|name| *name == put.name) {
            versions.insert(event.sequence, Version::new(put, event.meta.at));
        }
        Ok(())
    });
    read.await?;
    if versions.is_empty() {
        case_file::existing(&broker, &args.case).await?;
        if let Some(name) = &args.name {
            return Err(no_entry(&args.case, name));
        }
    }
    let versions: Vec<Version> = versions.into_values().collect();
    args.json.print(&versions, |versions| {
        versions.iter().map(Version::line).collect()
    })?;
    Ok(0)
}

async fn watch(connection: &ConnectionArgs, args: &WatchArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    case_file::existing(&broker, &args.case).await?;
    let source = EventSource::new(&broker).await?;
    let query = EventQuery::of(Aggregate::Board, &args.case.token());
    let mut arriving = std::pin::pin!(source.follow_new(&query).await?);
    while let Some(stored) = arriving.next().await {
        let event = event_of::<BoardEvent>(&stored?)?;
        let BoardEvent::Put(put) = event.event;
        let version = Version::new(put, event.meta.at);
        match args.json.json {
            true => output::json_line(&version)?,
            false => output::print(&version.line())?,
        }
    }
    Err(Failure::unavailable(
        "the broker has gone; see `concord doctor`",
    ))
}

async fn put(connection: &ConnectionArgs, args: &PutArgs) -> Result<u8, Failure> {
    let entry = PutEntry {
        name: args.name.clone(),
        based_on: args.based_on,
        value: value_of(&args.value),
        confidence: args.confidence,
    };
    entry.check("").map_err(refused)?;
    let put = Put {
        by: &args.by,
        case: Some(&args.case),
        action: BOARD_PUT,
        parameters: json!(entry),
        watched: (Aggregate::Board, args.case.token()),
    };
    shared::put::put(connection, put, (args.wait, &args.json), |event| {
        let put: EntryPut = event.read()?;
        let name = styled(NAMED, one_line(&put.name, 40));
        Ok(format!("{name} is at version {}\n", put.version))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_with_version_author_and_confidence() {
        let shown: Shown = serde_json::from_value(json!({
            "case_id": "c-1",
            "entries": [{ "name": "plan", "version": 3, "author": "ann", "confidence": 0.8, "at": "2026-11-21T20:00:00Z", "bytes": 1,
                "value": { "a": "two\nlines" } }],
        }))
        .unwrap();
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("plan"), "{line}");
        assert!(
            line.contains("ann (0.80)") && line.contains("two"),
            "{line}"
        );
        assert_eq!(text.lines().count(), 2, "a value is on one line");
    }

    #[test]
    fn what_is_no_json_is_a_text() {
        for (text, value) in [
            ("{\"a\": 1}", json!({ "a": 1 })),
            ("null", Value::Null),
            ("7", json!(7)),
            ("seven", json!("seven")),
            ("{broken", json!("{broken")),
        ] {
            assert_eq!(value_of(text), value);
        }
    }
}
