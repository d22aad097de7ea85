//! The installation of a panel, its own or another's, and the agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use concord_installation::{Installation, Plan, Process};
use concord_runtime::Broker;
use concord_wire::subject::Service;

use super::agents;
use concord_cli::shared::connection::ConnectionArgs;
use concord_cli::shared::failure::Failure;

/// How long the compliance checker may take to end.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The options of a stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageOptions {
    /// The connection to an installation that runs already; none for one of its own.
    pub(crate) other: Option<ConnectionArgs>,
    /// The data folder of its own installation; a temporary folder, removed at the end, when absent.
    pub(crate) directory: Option<PathBuf>,
    /// The panel's folder; found when absent.
    pub(crate) panel: Option<PathBuf>,
}

/// A panel that is ready for work. Its processes are killed when it is dropped; [`Stage::stop`] stops them in order.
pub(crate) struct Stage {
    /// The connection.
    pub(crate) broker: Broker,
    // The agents end before the services, the services before the folder goes.
    checker: Option<Process>,
    installation: Option<Installation>,
    _temporary: Option<tempfile::TempDir>,
}

impl Stage {
    /// Starts what does not run yet; `progress` is called with a few words on each step.
    pub(crate) async fn start(
        options: &StageOptions,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, Failure> {
        let folder = agents::folder(options.panel.as_deref())?;
        // An installation of its own has no agents yet, so what they need is looked for before anything is started.
        let python = if options.other.is_none() {
            Some(agents::python()?)
        } else {
            None
        };
        let (directory, temporary) = directory(options)?;
        let logs = directory.join("logs");
        let plan = plan(directory)?;
        let (installation, connection) = match &options.other {
            None => own(plan, &mut progress).await?,
            Some(connection) => (
                beside(connection, plan, &mut progress).await?,
                connection.clone(),
            ),
        };
        progress("waiting for the agents");
        let (broker, settings) = (connection.connect().await?, connection.settings()?);
        let mut stage = Self {
            broker,
            checker: None,
            installation,
            _temporary: temporary,
        };
        if agents::any_checker(&agents::absent(&stage.broker).await?) {
            std::fs::create_dir_all(&logs).map_err(|error| unusable(&logs, &error))?;
            let (url, prefix) = (&settings.broker.servers, settings.storage.prefix.as_str());
            let python = python.map_or_else(agents::python, Ok)?;
            stage.checker = Some(agents::start_checker(python, &folder, url, prefix, &logs)?);
        }
        agents::ready(&stage.broker, stage.checker.as_ref()).await?;
        Ok(stage)
    }

    /// The last lines of all logs, for a person who looks for what went wrong.
    pub(crate) fn log_tails(&self) -> String {
        let mut tails = self
            .installation
            .as_ref()
            .map(Installation::log_tails)
            .unwrap_or_default();
        if let Some(checker) = &self.checker {
            tails.push_str(&format!(
                "--- {}\n{}\n",
                checker.program.name,
                checker.tail()
            ));
        }
        tails
    }

    /// Stops everything that it has started, and prints what had to be killed.
    pub(crate) async fn stop(self) {
        let mut killed = Vec::new();
        if let Some(checker) = &self.checker {
            checker.terminate();
            if !checker.wait(STOP_MAX).await {
                killed.push(checker.program.name.clone());
            }
        }
        if let Some(installation) = self.installation {
            killed.extend(installation.stop().await);
        }
        if !killed.is_empty() {
            eprintln!(
                "these did not stop in time and were killed: {}",
                killed.join(", ")
            );
        }
    }
}

async fn start_installation(
    plan: Plan,
    progress: &mut impl FnMut(&str),
) -> Result<Installation, Failure> {
    Ok(Installation::start(plan, |step| progress(&step.to_string())).await?)
}

/// The plan of an installation that hosts the agents of the panel.
fn plan(directory: PathBuf) -> Result<Plan, Failure> {
    let adapter = directory.join("panel.toml");
    let binaries = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_owned))
        .unwrap_or_default();
    let program = binaries.join("panel-agent");
    if !program.is_file() {
        let build = "build it with: cargo build --package contract-review-panel";
        return Err(Failure::unavailable(format!(
            "there is no program {}; {build}",
            program.display()
        )));
    }
    std::fs::write(&adapter, agents::adapter_settings(&binaries))
        .map_err(|error| unusable(&adapter, &error))?;
    let mut plan = Plan::new(directory);
    plan.adapter_config = Some(adapter);
    Ok(plan)
}

/// Starts an installation of the panel's own, and the connection to it.
async fn own(
    plan: Plan,
    progress: &mut impl FnMut(&str),
) -> Result<(Option<Installation>, ConnectionArgs), Failure> {
    let installation = start_installation(plan, progress).await?;
    let connection = ConnectionArgs {
        server: Some(installation.server_url().to_owned()),
        // Its services read the same file and environment.
        config: std::env::var_os("CONCORD_CONFIG").map(PathBuf::from),
        ..ConnectionArgs::default()
    };
    Ok((Some(installation), connection))
}

/// Starts an adapter beside an installation that runs already, where one of the hosted agents does not listen there.
async fn beside(
    connection: &ConnectionArgs,
    mut plan: Plan,
    progress: &mut impl FnMut(&str),
) -> Result<Option<Installation>, Failure> {
    let broker = connection.connect().await?;
    plan.server_url = Some(connection.settings()?.broker.servers);
    plan.replicas = [(Service::AgentAdapter, 1)].into();
    if !agents::any_hosted(&agents::absent(&broker).await?) {
        return Ok(None);
    }
    start_installation(plan, progress).await.map(Some)
}

/// A folder for data and logs, and the guard that removes it when it is temporary.
fn directory(options: &StageOptions) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    if let Some(directory) = &options.directory {
        std::fs::create_dir_all(directory).map_err(|error| unusable(directory, &error))?;
        return Ok((
            std::path::absolute(directory).map_err(|error| unusable(directory, &error))?,
            None,
        ));
    }
    let temporary = tempfile::Builder::new().prefix("concord-panel-").tempdir();
    let temporary = temporary.map_err(|error| unusable(&std::env::temp_dir(), &error))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be used: {error}", path.display()))
}
