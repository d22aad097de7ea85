//! `concord credentials push`: a running server is told of the accounts.

use clap::Args;
use concord_credentials::{Directory, Resolver};
use concord_runtime::Broker;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{DirectoryArg, now};
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{GOOD, styled};

/// Where a server with a folder for accounts takes the token of one, from users of the system account.
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";

/// Arguments of `concord credentials push`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord credentials push credentials --server nats://nats-0:4222

`revoke` and `rotate` do it by themselves; this is for a server that was away then, and after `tenant`. In a cluster the servers
tell each other.")]
pub(crate) struct PushArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of a server.
#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<Refusal>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    description: String,
}

/// What a server was told.
#[derive(Debug, Serialize)]
pub(super) struct Pushed {
    accounts: Vec<String>,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &PushArgs) -> Result<u8, Failure> {
    let mut directory = args.directory.open()?;
    directory.publish(now())?;
    let pushed = push(connection, &directory).await?;
    args.json.print(&json!({ "pushed": pushed }), |_| {
        let accounts = pushed.accounts.join(", ");
        format!("{} the server knows {accounts}\n", styled(GOOD, "pushed:"))
    })?;
    Ok(0)
}

/// Tells the server of all accounts. Where that fails the directory stays as it is, and it can be done again.
pub(super) async fn push(
    connection: &ConnectionArgs,
    directory: &Directory,
) -> Result<Pushed, Failure> {
    if *directory.resolver() == Resolver::Memory {
        return Err(Failure::failed(format!(
            "the server keeps accounts in memory alone: give it {} and load its configuration again (nats-server --signal reload)",
            directory.server_config().display()
        )));
    }
    let again = |why: String| {
        Failure::unavailable(format!(
            "the directory is changed, but no server was told: {why}; repeat `concord credentials push`"
        ))
    };
    let mut settings = connection.settings()?;
    settings.broker.credentials = Some(directory.system_credentials());
    settings.broker.inbox_prefix = None;
    let broker = Broker::connect(
        "concord-credentials",
        &settings.broker,
        &settings.storage,
        false,
    );
    let broker = broker
        .await
        .map_err(|error| again(Failure::from(error).to_string()))?;
    let mut accounts = Vec::new();
    for (name, token) in directory.accounts()? {
        let answer = broker.client.request(UPDATE, token.into()).await;
        let answer = answer.map_err(|error| again(error.to_string()))?;
        let answer: Answer = serde_json::from_slice(&answer.payload)
            .map_err(|error| again(format!("its answer cannot be read: {error}")))?;
        if let Some(refusal) = answer.error {
            return Err(again(format!("it refuses {name}: {}", refusal.description)));
        }
        accounts.push(name);
    }
    Ok(Pushed { accounts })
}
