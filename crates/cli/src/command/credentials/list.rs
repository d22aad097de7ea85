//! `concord credentials list`.

use clap::Args;
use concord_credentials::{Holder, Issued};
use concord_wire::Timestamp;
use serde::Serialize;

use super::issue::{Lifetime, lifetime};
use super::{DirectoryArg, now};
use crate::shared::args::JsonArg;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{BAD, Cell, DOUBTFUL, GOOD, NAMED, Table};

/// Arguments of `concord credentials list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials list credentials
  concord credentials list credentials --expiring 14d

With --expiring the exit code is 1 where something expires so soon, for a job that looks every day.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// List what no longer counts, too.
    #[arg(long, conflicts_with = "expiring")]
    all: bool,
    /// List only what expires within this time, such as 14d.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expiring: Option<Lifetime>,
    #[command(flatten)]
    json: JsonArg,
}

/// What is known of one key.
#[derive(Debug, Serialize)]
struct Row {
    tenant: String,
    holder: Holder,
    key: String,
    state: State,
    issued_at: Timestamp,
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Counts,
    Expired,
    Revoked,
}

impl State {
    fn of(issued: &Issued, now: i64) -> Self {
        match (issued.counts(now), issued.revoked_at) {
            (true, _) => Self::Counts,
            (false, Some(_)) => Self::Revoked,
            (false, None) => Self::Expired,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(seconds.saturating_mul(1_000))
}

pub(super) fn run(args: &ListArgs) -> Result<u8, Failure> {
    let directory = args.directory.open()?;
    let now = now();
    let expires_soon = |issued: &Issued| match args.expiring.map(|within| within.end(now)) {
        None => true,
        Some(end) => issued
            .expires_at
            .is_some_and(|at| end.is_none_or(|end| at <= end)),
    };
    let mut rows = Vec::new();
    for tenant in directory.tenants() {
        let issued = directory.issued(tenant)?.into_iter();
        let shown = issued.filter(|one| (args.all || one.counts(now)) && expires_soon(one));
        rows.extend(shown.map(|one| Row {
            tenant: tenant.clone(),
            state: State::of(&one, now),
            issued_at: time(one.issued_at),
            expires_at: one.expires_at.map(time),
            holder: one.holder,
            key: one.key,
        }));
    }
    args.json.print(&rows, |rows| text(rows))?;
    Ok(if args.expiring.is_some() && !rows.is_empty() {
        FOUND
    } else {
        0
    })
}

fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "Nothing.\n".to_owned();
    }
    let mut table = Table::new(["TENANT", "HOLDER", "STATE", "ISSUED", "EXPIRES", "KEY"]);
    for row in rows {
        let style = match row.state {
            State::Counts => GOOD,
            State::Expired => DOUBTFUL,
            State::Revoked => BAD,
        };
        table.row([
            Cell::text(&row.tenant),
            Cell::text(&row.holder).with(NAMED),
            Cell::text(row.state.as_str()).with(style),
            Cell::text(row.issued_at),
            Cell::text(
                row.expires_at
                    .map_or_else(|| "never".to_owned(), |at| at.to_string()),
            ),
            Cell::text(&row.key),
        ]);
    }
    table.to_string()
}
