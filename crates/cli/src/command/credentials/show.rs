//! `concord credentials show`: what was issued already, as files or as Secrets.

use clap::Args;
use concord_credentials::{Directory, Holder};

use super::issue::{self, Made};
use super::secret::FormatArg;
use super::{DirectoryArg, TenantArg, holder, now};
use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;

/// Arguments of `concord credentials show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials show credentials agent:eva
  concord credentials show credentials service:coordinator --format secret | kubectl -n concord apply -f -

Nothing is issued. Of a person the roles need not be those that were issued.")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// Whose credentials are shown.
    #[arg(required = true, value_name = "WHO", value_parser = holder)]
    holders: Vec<Holder>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    format: FormatArg,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) fn run(args: &ShowArgs) -> Result<u8, Failure> {
    let directory = args.directory.open()?;
    let tenant = args.tenant.of(&directory)?;
    let made = args.holders.iter();
    let made = made.map(|holder| found(&directory, &tenant, holder));
    let made: Vec<Made> = made.collect::<Result<_, Failure>>()?;
    issue::show(args.json, &args.format, &made)?;
    Ok(0)
}

/// The credentials of a holder that count.
fn found(directory: &Directory, tenant: &str, holder: &Holder) -> Result<Made, Failure> {
    let issued = directory.issued(tenant)?;
    let now = now();
    // The last that was issued is the one in the file.
    let counting = issued.iter().rev();
    let mut counting = counting.filter(|one| one.is_of(holder) && one.counts(now));
    let issued = counting.next().ok_or_else(|| {
        Failure::usage(format!(
            "{holder} has no credentials that count; `concord credentials issue` issues them"
        ))
    })?;
    let file = directory.file_of(tenant, holder);
    if !file.is_file() {
        return Err(Failure::usage(format!(
            "{} is not there, and nothing else has the seed of {holder}; `concord credentials rotate` makes new credentials",
            file.display()
        )));
    }
    Ok(Made::new(&issued.holder, &file, issued.expires_at))
}
