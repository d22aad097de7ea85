//! `concord up`: a local installation until Ctrl-C.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use concord_events::topology::{Layout, StorageChoices};
use concord_installation::{Installation, Plan, Progress, SERVICES};
use concord_runtime::service::settings::StorageSettings;
use concord_runtime::service::shutdown;
use concord_wire::Token;
use concord_wire::subject::{DEFAULT_PREFIX, Service};
use serde_json::json;
use tempfile::TempDir;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, FAINT, GOOD, NAMED, styled};

mod secure;
mod tls;

use secure::Secure;

/// The time between two looks at the processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `concord up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord up
  concord up --replicas coordinator=3 --replicas debate-facilitator=2 --directory data
  concord up --adapter-config adapter.toml --port 0

With --secure the broker runs in operator mode and under TLS with certificates on both sides, and each service has credentials of its
own, as in production. The command then connects with the settings that the last line names (concord --config FILE). For others
`concord credentials issue DIR/credentials agent:eva` makes credentials; DIR/tls has the certificates (ca.pem, client.pem, client.key).

It prints a line that begins with `ready` when everything is. Ctrl-C drains the services and stops everything.")]
pub(crate) struct UpArgs {
    /// Processes of a service, SERVICE=N; one of each when not given.
    #[arg(long, value_name = "SERVICE=N", value_parser = replicas)]
    replicas: Vec<(Service, usize)>,
    /// Keep streams and logs in this directory; a temporary one, removed at the end, when absent.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Port of the broker on the loopback interface; 0 for any free one.
    #[arg(long, value_name = "PORT", default_value_t = 4222)]
    port: u16,
    /// Settings of the agent adapter, in TOML: which agents it hosts.
    #[arg(long, value_name = "FILE")]
    adapter_config: Option<PathBuf>,
    /// Run the broker in operator mode and under TLS, with credentials for each service and for you.
    #[arg(long)]
    secure: bool,
    /// A setting for every service, for example work.drain_ms=5000.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The folder of the services' programs; that of this program when absent.
    #[arg(long, value_name = "DIR", env = "CONCORD_BINARIES", hide = true)]
    binaries: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

fn replicas(text: &str) -> Result<(Service, usize), String> {
    let (service, number) = text
        .split_once('=')
        .ok_or("it is not of the form coordinator=3")?;
    let known = || SERVICES.map(Service::as_str).join(", ");
    let service = Service::parse(service)
        .map_err(|_| format!("there is no service {service:?}; there are {}", known()))?;
    let number = number
        .parse()
        .ok()
        .filter(|number| (0..=64).contains(number));
    Ok((
        service,
        number.ok_or("the number of processes is from 0 to 64")?,
    ))
}

pub(crate) async fn run(connection: &ConnectionArgs, args: UpArgs) -> Result<u8, Failure> {
    if connection.server.is_some() {
        return Err(Failure::usage(
            "`concord up` starts a broker of its own: leave out --server and CONCORD_SERVER",
        ));
    }
    let sets_prefix = |set: &String| set.starts_with("storage.prefix=");
    if args.secure && args.set.iter().any(sets_prefix) {
        return Err(Failure::usage(
            "credentials are made for one prefix: name it with --prefix, in place of --set storage.prefix",
        ));
    }
    let (directory, temporary) = directory(args.directory.as_deref())?;
    let mut plan = plan(connection, &args, &directory)?;
    let prefix = connection.prefix.as_deref().unwrap_or(DEFAULT_PREFIX);
    let secure = match args.secure {
        true => {
            let prefix = Token::new(prefix);
            let prefix = prefix.map_err(|error| Failure::usage(format!("--prefix {error}")))?;
            let layout = Layout::new(&prefix, StorageChoices::default());
            Some(secure::prepare(&mut plan, &layout)?)
        }
        false => None,
    };
    let stop = shutdown::on_signal()
        .map_err(|error| Failure::failed(format!("signals cannot be handled: {error}")))?;
    let installation = tokio::select! {
        installation = Installation::start(plan, |step| print_progress(&step)) => installation?,
        () = stop.cancelled() => return Ok(0),
    };
    if let Some(secure) = &secure {
        secure.write_config(installation.server_url(), prefix)?;
    }
    ready(&installation, &args, secure.as_ref(), temporary.is_some())?;
    let ended = tokio::select! {
        failure = supervise(&installation) => Err(failure),
        () = stop.cancelled() => Ok(0),
    };
    eprintln!("stopping");
    let killed = installation.stop().await;
    if !killed.is_empty() {
        eprintln!(
            "these did not stop in time and were killed: {}",
            killed.join(", ")
        );
    }
    ended
}

fn directory(wanted: Option<&Path>) -> Result<(PathBuf, Option<TempDir>), Failure> {
    let unusable = |path: &Path, error| {
        Failure::usage(format!(
            "the directory {} cannot be used: {error}",
            path.display()
        ))
    };
    if let Some(path) = wanted {
        std::fs::create_dir_all(path).map_err(|error| unusable(path, error))?;
        return Ok((
            std::path::absolute(path).map_err(|error| unusable(path, error))?,
            None,
        ));
    }
    let temporary = tempfile::Builder::new().prefix("concord-").tempdir();
    let temporary = temporary.map_err(|error| unusable(&std::env::temp_dir(), error))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn plan(connection: &ConnectionArgs, args: &UpArgs, directory: &Path) -> Result<Plan, Failure> {
    // Checked here, the reason is one line; nats-server would write it at the end of a log.
    if args.port != 0 && TcpListener::bind(("127.0.0.1", args.port)).is_err() {
        let port = args.port;
        return Err(Failure::failed(format!(
            "port {port} is taken; choose another, or any free one with --port 0"
        )));
    }
    if let Some(missing) = args.adapter_config.as_ref().filter(|path| !path.is_file()) {
        return Err(Failure::usage(format!(
            "there is no file {}",
            missing.display()
        )));
    }
    let mut plan = Plan::new(directory);
    plan.port = Some(args.port).filter(|port| *port != 0);
    plan.binaries.clone_from(&args.binaries);
    plan.adapter_config.clone_from(&args.adapter_config);
    plan.replicas.extend(args.replicas.iter().copied());
    if let Some(prefix) = &connection.prefix {
        Token::new(prefix.as_str())
            .map_err(|error| Failure::usage(format!("--prefix {prefix:?} {error}")))?;
        plan.settings.push(format!("storage.prefix={prefix}"));
    }
    // Services need a whole path; whoever types one means where they are.
    let settings = args.set.iter().map(|set| match set.split_once('=') {
        Some((key @ "storage.archive", place)) => {
            format!("{key}={}", StorageSettings::archive_from_here(place))
        }
        _ => set.clone(),
    });
    plan.settings.extend(settings);
    Ok(plan)
}

fn print_progress(step: &Progress) {
    anstream::eprintln!("{}", styled(FAINT, step));
}

/// Prints that everything is ready.
fn ready(
    installation: &Installation,
    args: &UpArgs,
    secure: Option<&Secure>,
    temporary: bool,
) -> Result<(), Failure> {
    let (url, directory) = (
        installation.server_url(),
        installation.directory().display(),
    );
    if args.json.json {
        let processes: Vec<_> = installation
            .processes()
            .map(|(service, replica)| {
                json!({ "service": service, "replica": replica, "pid": installation.pid(service, replica) })
            })
            .collect();
        let shown =
            |path: fn(&Secure) -> &PathBuf| secure.map(|secure| path(secure).display().to_string());
        return output::json_line(&json!({
            "ready": true, "server": url, "directory": directory.to_string(), "processes": processes,
            "config": shown(|secure| &secure.config), "credentials": shown(|secure| &secure.credentials),
            "tls": secure.map(|secure| json!({
                "ca": secure.tls.authority, "certificate": secure.tls.certificate, "key": secure.tls.key,
            })),
        }));
    }
    let fate = if temporary {
        ", removed at the end"
    } else {
        ""
    };
    let with = secure.map_or_else(String::new, |secure| {
        format!("; use it with concord --config {}", secure.config.display())
    });
    output::print(&format!(
        "{} {} ({directory}{fate}){with}; Ctrl-C stops it\n",
        styled(GOOD, "ready"),
        styled(NAMED, url)
    ))
}

/// Starts again what ends by itself; returns when the broker has gone, without which nothing makes sense.
async fn supervise(installation: &Installation) -> Failure {
    let mut wait = LOOK_INTERVAL;
    loop {
        tokio::time::sleep(wait).await;
        if let Some(status) = installation.broker().and_then(|broker| broker.exited()) {
            return Failure::unavailable(format!(
                "nats-server has ended ({status})\n{}",
                installation.log_tails()
            ));
        }
        let exited = installation.exited();
        // A service that ends again and again is started less and less often.
        wait = if exited.is_empty() {
            LOOK_INTERVAL
        } else {
            (wait * 2).min(Duration::from_secs(30))
        };
        for (service, replica, status) in exited {
            let log = installation
                .log(service, replica)
                .map(|log| log.display().to_string())
                .unwrap_or_default();
            eprintln!(
                "{service}-{replica} has ended ({status}); starting it again; its log is {log}"
            );
            if let Err(error) = installation.launch(service, replica) {
                eprintln!("error: {error}");
            }
        }
    }
}
