//! `concord credentials issue`.

use std::path::Path;

use clap::Args;
use concord_credentials::{Directory, Holder, Issue, Issued};
use concord_events::topology::Layout;
use concord_wire::Timestamp;
use serde::Serialize;

use super::secret::{self, Format, FormatArg};
use super::{DirectoryArg, TenantArg, holder, now};
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};
use crate::shared::speaker::{inbox_prefix_of, permissions_of};

/// Seconds of the units in which a lifetime is given.
const UNITS: [(char, i64); 3] = [('d', 86_400), ('h', 3_600), ('m', 60)];

/// Arguments of `concord credentials issue`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials issue credentials service:coordinator service:conflict-detector --expires never
  concord credentials issue credentials agent:eva person:olga=reviewer,arbiter --expires 90d
  concord credentials issue credentials operator:ops --expires 12h
  concord credentials issue credentials service:coordinator --format secret | kubectl -n concord apply -f -

Each gets a file that its owner alone may read, DIR/creds/TENANT/agent-eva.creds. It may do what `concord permissions` prints, and
an operator everything within the tenant's account. Give a service the file as its setting broker.credentials, and the command as
--credentials. No server needs to be told: it knows the account that has signed them.")]
pub(crate) struct IssueArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// Who gets credentials: service:NAME, agent:NAME, person:NAME=ROLE,ROLE or operator:NAME.
    #[arg(required = true, value_name = "WHO", value_parser = holder)]
    holders: Vec<Holder>,
    #[command(flatten)]
    tenant: TenantArg,
    /// For how long they count, such as 90d, 12h or 30m; or never.
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    expires: Lifetime,
    /// Issue them even where credentials count already: the file is overwritten, and the old ones count until they expire.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    format: FormatArg,
    #[command(flatten)]
    json: JsonArg,
}

/// For how many seconds credentials count; none for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime(Option<i64>);

impl Lifetime {
    /// That of what was issued.
    pub(super) fn of(issued: &Issued) -> Self {
        let seconds = |end: i64| end.saturating_sub(issued.issued_at);
        Self(issued.expires_at.map(seconds))
    }

    /// When it is over, for what is issued now.
    pub(super) fn end(self, now: i64) -> Option<i64> {
        self.0.map(|seconds| now.saturating_add(seconds))
    }
}

/// Reads a lifetime from the command line.
pub(super) fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(*unit));
    let seconds = unit.and_then(|(unit, seconds)| {
        let number: i64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*seconds).filter(|total| *total > 0)
    });
    let seconds = seconds.ok_or("write a time such as 90d, 12h or 30m, or never")?;
    Ok(Lifetime(Some(seconds)))
}

/// What was issued to one holder.
#[derive(Debug, Serialize)]
pub(super) struct Made {
    pub(super) holder: Holder,
    pub(super) file: String,
    expires_at: Option<Timestamp>,
    inbox_prefix: Option<String>,
}

impl Made {
    pub(super) fn new(holder: &Holder, file: &Path, expires_at: Option<i64>) -> Self {
        let in_millis = |at: i64| Timestamp::from_unix_millis(at.saturating_mul(1_000));
        Self {
            holder: holder.clone(),
            file: file.display().to_string(),
            expires_at: expires_at.map(in_millis),
            inbox_prefix: inbox_prefix_of(holder),
        }
    }
}

pub(super) fn run(connection: &ConnectionArgs, args: &IssueArgs) -> Result<u8, Failure> {
    let mut directory = args.directory.open()?;
    let tenant = args.tenant.of(&directory)?;
    if args.format.format == Format::Secret {
        // Before anything is issued that could not be printed then.
        args.holders
            .iter()
            .try_for_each(|holder| secret::name(&holder.key()).map(drop))?;
    }
    let mut all = Vec::new();
    for holder in &args.holders {
        let whom = (tenant.as_str(), holder);
        match issue(connection, &mut directory, whom, args.expires, args.force) {
            Ok(made) => all.push(made),
            Err(error) => {
                // What was issued before counts, so it is said. A list of nothing is no use to kubectl.
                if !all.is_empty() {
                    show(args.json, &args.format, &all)?;
                }
                return Err(error);
            }
        }
    }
    show(args.json, &args.format, &all)?;
    Ok(0)
}

/// Issues credentials to one holder of a tenant; `beside` says whether others may count already.
pub(super) fn issue(
    connection: &ConnectionArgs,
    directory: &mut Directory,
    (tenant, holder): (&str, &Holder),
    lifetime: Lifetime,
    beside: bool,
) -> Result<Made, Failure> {
    let settings = connection.settings()?;
    let layout = Layout::new(&settings.storage.prefix, settings.storage.choices());
    let permissions = permissions_of(holder, &layout);
    let now = now();
    let issue = Issue {
        tenant,
        holder,
        permissions: permissions.as_ref(),
        expires_at: lifetime.end(now),
        beside,
    };
    let file = directory.issue(&issue, now)?;
    Ok(Made::new(holder, &file, issue.expires_at))
}

/// Prints what was issued.
pub(super) fn show(json: JsonArg, format: &FormatArg, made: &[Made]) -> Result<(), Failure> {
    if format.format == Format::Secret {
        return secret::show(made);
    }
    json.print(made, |made| made.iter().map(text).collect())
}

fn text(made: &Made) -> String {
    let Made {
        holder,
        file,
        expires_at,
        inbox_prefix,
    } = made;
    let until = expires_at.map_or_else(String::new, |at| format!(", until {at}"));
    let inbox = inbox_prefix.as_ref().map_or_else(String::new, |prefix| {
        format!("; its client must use the inbox prefix {prefix}")
    });
    format!("{holder}: {}{until}{inbox}\n", styled(NAMED, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_with_a_unit() {
        let end = |text| lifetime(text).map(|lifetime| lifetime.end(1_000));
        assert_eq!(end("never"), Ok(None));
        assert_eq!(end("90d"), Ok(Some(7_777_000)));
        assert_eq!(end("1h"), Ok(Some(4_600)));
        for text in ["", "90", "d", "0d", "-1d", "9999999999999999d", "1w"] {
            assert!(end(text).is_err(), "{text}");
        }
    }
}
