//! `concord credentials`: keys and tokens of NATS in operator mode.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use concord_credentials::{Directory, Holder, Resolver};
use concord_runtime::service::clock;
use serde_json::json;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};

mod issue;
mod list;
mod push;
mod revoke;
mod rotate;
mod secret;
mod show;

/// The tenant of an installation that has one.
const TENANT: &str = "CONCORD";

/// The verbs of `concord credentials`.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsVerb {
    /// Make a directory with an operator, an account for each tenant, and what the server's configuration includes.
    Init(InitArgs),
    /// Add a tenant: an account that sees nothing of the others.
    Tenant(TenantArgs),
    /// Issue credentials to services, agents, people and operators.
    Issue(issue::IssueArgs),
    /// Show where issued credentials are, or print them as Secrets of Kubernetes.
    Show(show::ShowArgs),
    /// List what was issued, to whom, and until when it counts.
    List(list::ListArgs),
    /// Replace credentials by new ones, and revoke the old.
    Rotate(rotate::RotateArgs),
    /// Revoke credentials: their connections end at once.
    Revoke(revoke::RevokeArgs),
    /// Tell a running server of all accounts.
    Push(push::PushArgs),
}

/// Arguments of `concord credentials init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord credentials init credentials
  concord credentials init credentials --resolver /data/accounts --tenant ACME --tenant GLOBEX

Include DIR/nats-server.conf in the server's configuration, beside a jetstream block and without users of its own. It holds no
secret. The server keeps what it knows of accounts in the folder --resolver of its machine, and so hears of a revocation while it
runs. DIR holds the keys of everybody: keep it where no service runs, and a copy elsewhere.")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// A tenant, which has an account of its own; may be repeated.
    #[arg(long = "tenant", value_name = "NAME", default_value = TENANT)]
    tenants: Vec<String>,
    /// The folder of the server's machine for accounts [default: DIR/resolver].
    #[arg(long, value_name = "FOLDER", conflicts_with = "memory")]
    resolver: Option<PathBuf>,
    /// Let the server keep accounts in memory alone: it hears of a revocation when its configuration is loaded again.
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord credentials tenant`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord credentials tenant credentials ACME

Tell a running server with `concord credentials push`, or load its configuration again (nats-server --signal reload).")]
pub(crate) struct TenantArgs {
    #[command(flatten)]
    directory: DirectoryArg,
    /// The name of the account.
    name: String,
    #[command(flatten)]
    json: JsonArg,
}

/// Where the credentials are.
#[derive(Debug, Args)]
struct DirectoryArg {
    /// The directory of the credentials.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl DirectoryArg {
    fn open(&self) -> Result<Directory, Failure> {
        Ok(Directory::open(&self.directory)?)
    }
}

/// Which tenant is meant.
#[derive(Debug, Args)]
struct TenantArg {
    /// The tenant; needed where there are several.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl TenantArg {
    fn of(&self, directory: &Directory) -> Result<String, Failure> {
        match (&self.tenant, directory.tenants()) {
            (Some(named), _) => Ok(named.clone()),
            (None, [only]) => Ok(only.clone()),
            (None, all) => Err(Failure::usage(format!(
                "name a tenant with --tenant; there are {}",
                all.join(", ")
            ))),
        }
    }
}

/// Reads whom credentials are for from the command line.
fn holder(text: &str) -> Result<Holder, String> {
    text.parse::<Holder>().map_err(|error| error.to_string())
}

/// Seconds since 1970.
fn now() -> i64 {
    clock::now().unix_millis() / 1_000
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: CredentialsVerb) -> Result<u8, Failure> {
    match verb {
        CredentialsVerb::Init(args) => init(&args),
        CredentialsVerb::Tenant(args) => tenant(&args),
        CredentialsVerb::Issue(args) => issue::run(connection, &args),
        CredentialsVerb::Show(args) => show::run(&args),
        CredentialsVerb::List(args) => list::run(&args),
        CredentialsVerb::Rotate(args) => rotate::run(connection, &args).await,
        CredentialsVerb::Revoke(args) => revoke::run(connection, &args).await,
        CredentialsVerb::Push(args) => push::run(connection, &args).await,
    }
}

fn init(args: &InitArgs) -> Result<u8, Failure> {
    let path = absolute(&args.directory.directory)?;
    let resolver = match (&args.resolver, args.memory) {
        (_, true) => Resolver::Memory,
        (Some(folder), _) => Resolver::Folder(folder.display().to_string()),
        (None, _) => Resolver::Folder(path.join("resolver").display().to_string()),
    };
    let directory = Directory::create(&path, resolver, &args.tenants, now())?;
    let config = directory.server_config().display().to_string();
    let made = json!({ "server_config": config, "tenants": directory.tenants() });
    args.json.print(&made, |_| {
        format!(
            "Accounts: {}. Include {} in the configuration of nats-server.\n",
            directory.tenants().join(", "),
            styled(NAMED, &config)
        )
    })?;
    Ok(0)
}

fn tenant(args: &TenantArgs) -> Result<u8, Failure> {
    let mut directory = args.directory.open()?;
    directory.add_tenant(&args.name, now())?;
    let config = directory.server_config().display().to_string();
    let made = json!({ "tenant": args.name, "server_config": config });
    args.json.print(&made, |_| {
        let (name, config) = (styled(NAMED, &args.name), styled(NAMED, &config));
        format!("{name} has an account. {config} is written anew: load the server's configuration again.\n")
    })?;
    Ok(0)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} cannot be used: {error}", path.display())))
}
