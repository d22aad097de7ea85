//! `concord credentials rotate`.

use clap::Args;
use concord_credentials::{Holder, Which};

use super::issue::{Lifetime, Made, issue, lifetime, show};
use super::push::push;
use super::secret::FormatArg;
use super::{DirectoryArg, TenantArg, holder, now};
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

/// Arguments of `concord credentials rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials rotate credentials service:coordinator
  concord credentials rotate credentials agent:eva --keep-old

First the file is replaced, then the old credentials are revoked: the server ends their connections, and a service connects again
with the new file. Where the file must first be brought to its place, use --keep-old, bring it there, and then
`concord credentials revoke DIR WHO --older`.")]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// Whose credentials are replaced; a person with the roles of the new ones.
    #[arg(required = true, value_name = "WHO", value_parser = holder)]
    holders: Vec<Holder>,
    #[command(flatten)]
    tenant: TenantArg,
    /// For how long the new ones count, such as 90d, 12h or 30m; or never [default: as long as those that they replace].
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Lifetime>,
    /// Let the old ones count on.
    #[arg(long)]
    keep_old: bool,
    #[command(flatten)]
    format: FormatArg,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &RotateArgs) -> Result<u8, Failure> {
    let mut directory = args.directory.open()?;
    let tenant = args.tenant.of(&directory)?;
    let issued = directory.issued(&tenant)?;
    // Before anything is replaced: a name with a slip in it is nobody's, and whoever was revoked gets nothing anew by the way.
    let replaced = args.holders.iter().map(|holder| {
        let mut kept = issued.iter().filter(|one| one.revoked_at.is_none());
        let newest = kept.rfind(|one| one.is_of(holder));
        let newest = newest.ok_or_else(|| nothing_to_replace(&args.directory, holder))?;
        let lifetime = args.expires.unwrap_or_else(|| Lifetime::of(newest));
        Ok::<_, Failure>((holder, lifetime))
    });
    let replaced: Vec<_> = replaced.collect::<Result<_, Failure>>()?;
    let mut all: Vec<Made> = Vec::new();
    for (holder, lifetime) in replaced {
        let whom = (tenant.as_str(), holder);
        all.push(issue(connection, &mut directory, whom, lifetime, true)?);
    }
    show(args.json, &args.format, &all)?;
    if !args.keep_old {
        for holder in &args.holders {
            directory.revoke(&tenant, holder, Which::Older, now())?;
        }
        push(connection, &directory).await?;
    }
    Ok(0)
}

fn nothing_to_replace(directory: &DirectoryArg, holder: &Holder) -> Failure {
    Failure::usage(format!(
        "{holder} has no credentials that could be replaced: none were issued under this name, or they are revoked; if the name is right, \
         make some with: concord credentials issue {} {holder}",
        directory.directory.display()
    ))
}
