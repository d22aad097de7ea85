//! `concord record import`: what is known of agents from elsewhere enters their track records.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use concord_runtime::service::clock;
use concord_wire::AgentId;
use concord_wire::subject::Service;
use serde::Serialize;
use serde_json::json;

use crate::command::record::rows::{self, BadRow, Format, Rows};
use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::input;
use crate::shared::output::{FAINT, count, styled};

/// At most so many bad rows are named; the others are counted.
const NAMED_MAX: usize = 20;

/// Arguments of `concord record import`.
#[derive(Debug, Args)]
#[command(after_help = "\
A row is one time that an agent proved right or wrong: agent, domain, outcome (right or wrong), at (when that became known), source
(where the row comes from), and where known metric, regime, sector and id. The first line of CSV names the columns; JSON Lines has an object on each
line. Nothing is imported unless every row is good. The same id of the same agent again changes nothing; a row without an id is known
by its contents, so that the same file again changes nothing either.

Examples:
  concord record import back-test.csv --by olga
  concord record import history.jsonl --by olga --skip-bad --json

  agent,domain,metric,outcome,at,source
  risk_assessor,valuation.revenue,growth,right,2025-03-31T00:00:00Z,back-test 2025

From 15 data points on a record decides debates on level 2: `concord record show AGENT`.")]
pub(crate) struct ImportArgs {
    /// The file; - for standard input.
    file: PathBuf,
    /// The format [default: that of the file's name, JSON Lines where it is not .csv].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Import the good rows although there are bad ones.
    #[arg(long)]
    skip_bad: bool,
    /// The person who imports it.
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

impl ImportArgs {
    fn format(&self) -> Format {
        let is_csv = self
            .file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        self.format
            .unwrap_or(if is_csv { Format::Csv } else { Format::Jsonl })
    }
}

/// What was imported, as it is printed.
#[derive(Debug, Serialize)]
struct Imported {
    imported: u64,
    /// Rows that the records had already.
    known: u64,
    agents: BTreeSet<AgentId>,
    skipped: Vec<BadRow>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ImportArgs) -> Result<u8, Failure> {
    let bytes = input::read_input(&args.file, "concord record import")?;
    let Rows {
        good,
        bad,
        repeated,
    } = rows::read(&bytes, args.format(), clock::now());
    if !bad.is_empty() && !args.skip_bad {
        return Err(refused(&input::name(&args.file), &bad));
    }
    if good.is_empty() {
        let name = input::name(&args.file);
        return Err(Failure::data(format!("{name} has no row to import")));
    }
    let broker = connection.connect().await?;
    let mut done = Imported {
        imported: 0,
        known: repeated,
        agents: BTreeSet::new(),
        skipped: bad,
    };
    for record in good {
        let request = json!({ "record": record, "by": args.by });
        let answer = command(
            &broker,
            Service::DebateFacilitator,
            "import_record",
            &request,
        )
        .await?;
        if answer.event.is_none() {
            done.known += 1;
        } else {
            done.imported += 1;
        }
        done.agents.insert(record.agent);
    }
    args.json.print(&done, text)?;
    Ok(0)
}

fn refused(file: &str, bad: &[BadRow]) -> Failure {
    let named: String = bad
        .iter()
        .take(NAMED_MAX)
        .map(|row| format!("\n  line {}: {}", row.line, row.why))
        .collect();
    let more = match bad.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Failure::data(format!(
        "{file} has {}, and nothing is imported:{named}{more}\nmend them, or import the others with --skip-bad",
        count(bad.len() as u64, "bad row")
    ))
}

fn text(done: &Imported) -> String {
    let mut text = format!(
        "{} imported for {}; {} known already\n",
        count(done.imported, "row"),
        count(done.agents.len() as u64, "agent"),
        done.known
    );
    for row in &done.skipped {
        let line = format!("skipped line {}: {}", row.line, row.why);
        text.push_str(&format!("  {}\n", styled(FAINT, line)));
    }
    text
}
