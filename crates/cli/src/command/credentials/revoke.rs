//! `concord credentials revoke`.

use clap::Args;
use concord_credentials::{Holder, Which};
use serde_json::json;

use super::push::push;
use super::{DirectoryArg, TenantArg, holder, now};
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};

/// Arguments of `concord credentials revoke`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials revoke credentials agent:eva --server nats://nats-0:4222
  concord credentials revoke credentials service:coordinator --older

The server is told at once: it ends the connections of whoever is revoked, and lets nobody in with what was revoked. Others notice
nothing. A node that is away is told by the others within ten seconds of its return. Install DIR/nats-server.conf anew on the servers:
one that starts without its folder of accounts knows only that. --older leaves the newest, and ends what `issue --force` and `rotate --keep-old` left beside it.")]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// Whose credentials are revoked; roles need not be named right.
    #[arg(required = true, value_name = "WHO", value_parser = holder)]
    holders: Vec<Holder>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Leave the newest.
    #[arg(long)]
    older: bool,
    /// Tell no server; `concord credentials push` does it later.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &RevokeArgs) -> Result<u8, Failure> {
    let mut directory = args.directory.open()?;
    let tenant = args.tenant.of(&directory)?;
    let which = if args.older { Which::Older } else { Which::All };
    let mut revoked = Vec::new();
    for holder in &args.holders {
        let keys = directory.revoke(&tenant, holder, which, now())?;
        revoked.push((holder, keys));
    }
    let told = match args.offline {
        true => None,
        false => Some(push(connection, &directory).await?),
    };
    let rows: Vec<_> = revoked
        .iter()
        .map(|(holder, keys)| json!({ "holder": holder, "keys": keys }))
        .collect();
    args.json
        .print(&json!({ "revoked": rows, "pushed": told }), |_| {
            let of = |(holder, keys): &(&Holder, Vec<String>)| match keys.len() {
                0 => format!("{}: nothing to revoke\n", styled(NAMED, holder)),
                1 => format!("{}: revoked\n", styled(NAMED, holder)),
                many => format!("{}: {many} revoked\n", styled(NAMED, holder)),
            };
            revoked.iter().map(of).collect()
        })?;
    Ok(0)
}
