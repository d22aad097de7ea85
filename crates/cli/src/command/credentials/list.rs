//! `concord credentials list`.

use std::collections::BTreeMap;

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

With --expiring the exit code is 1 where something expires so soon, or has expired and nothing newer was issued, for a job that
looks every day. `concord credentials revoke` takes a holder whose credentials are not needed any more off the list.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// List whatever no longer counts, too: what is revoked, and what has expired and was replaced.
    #[arg(long, conflicts_with = "expiring")]
    all: bool,
    /// List only what expires within this time, such as 14d, or has expired.
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

/// What is listed of what was issued in a tenant, which is in the order of issue. A holder whose newest credentials have expired is
/// listed with them: nobody looks for who is missing.
fn shown(args: &ListArgs, issued: Vec<Issued>, now: i64) -> Vec<Issued> {
    let newest: BTreeMap<_, _> = (issued.iter().enumerate())
        .map(|(place, one)| (one.holder.key(), place))
        .collect();
    let expires_soon = |one: &Issued| match args.expiring.map(|within| within.end(now)) {
        None => true,
        Some(end) => (one.expires_at).is_some_and(|at| end.is_none_or(|end| at <= end)),
    };
    let is_missed = |place: usize, one: &Issued| {
        one.revoked_at.is_none() && newest.get(&one.holder.key()) == Some(&place)
    };
    (issued.into_iter().enumerate())
        .filter(|(place, one)| args.all || one.counts(now) || is_missed(*place, one))
        .map(|(_, one)| one)
        .filter(expires_soon)
        .collect()
}

pub(super) fn run(args: &ListArgs) -> Result<u8, Failure> {
    let directory = args.directory.open()?;
    let now = now();
    let mut rows = Vec::new();
    for tenant in directory.tenants() {
        let shown = shown(args, directory.issued(tenant)?, now);
        rows.extend(shown.into_iter().map(|one| Row {
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn issued(holder: &str, expires_at: Option<i64>, revoked_at: Option<i64>) -> Issued {
        Issued {
            holder: holder.parse().unwrap(),
            key: String::new(),
            issued_at: 0,
            expires_at,
            revoked_at,
        }
    }

    /// Holders and ends of what is listed at the time 100.
    fn listed(arguments: &[&str]) -> Vec<String> {
        let arguments = [&["list", "directory"], arguments].concat();
        let command = ListArgs::augment_args(clap::Command::new("list"));
        let matches = command.get_matches_from(arguments);
        let args = ListArgs::from_arg_matches(&matches).unwrap();
        let all = vec![
            issued("agent:replaced", Some(90), None),
            issued("agent:replaced", None, None),
            issued("agent:revoked", Some(90), Some(80)),
            issued("person:olga=reviewer", Some(80), None),
            issued("person:olga=arbiter", Some(90), None),
            issued("service:coordinator", Some(130), None),
            issued("agent:eva", Some(9_999), None),
        ];
        let shown = shown(&args, all, 100).into_iter();
        let text = |one: Issued| {
            let state = State::of(&one, 100).as_str();
            format!("{} {state}", one.holder)
        };
        shown.map(text).collect()
    }

    #[test]
    fn whose_credentials_have_expired_is_listed_until_there_are_newer_ones_or_they_are_revoked() {
        let soon = ["person:olga=arbiter expired", "service:coordinator counts"];
        assert_eq!(listed(&["--expiring", "1m"]), soon);
        let usual = [&["agent:replaced counts"], &soon[..], &["agent:eva counts"]];
        assert_eq!(listed(&[]), usual.concat());
        assert_eq!(listed(&["--all"]).len(), 7);
    }
}
