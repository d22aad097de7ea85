//! What a panel needs around it: an installation, its own or another's, and the agents.

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

/// What the user wants of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// The way to an installation that is there; its own when absent.
    pub(crate) other: Option<ConnectionArgs>,
    /// Where its own installation keeps its data; a temporary folder, removed at the end, when absent.
    pub(crate) directory: Option<PathBuf>,
    /// The panel's folder.
    pub(crate) panel: Option<PathBuf>,
}

/// A panel that is ready for work. Its processes are killed when it is dropped; [`Stage::end`] stops them in order.
pub(crate) struct Stage {
    /// The connection.
    pub(crate) broker: Broker,
    // The agents end before the services, the services before the folder goes.
    checker: Option<Process>,
    installation: Option<Installation>,
    _temporary: Option<tempfile::TempDir>,
}

impl Stage {
    /// Starts what is missing; `progress` is told in a few words what is being waited for.
    pub(crate) async fn set(
        wishes: &Wishes,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, Failure> {
        let folder = agents::folder(wishes.panel.as_deref())?;
        // An installation of its own has no agents yet, so what they need is looked for before anything is started.
        let python = if wishes.other.is_none() {
            Some(agents::python()?)
        } else {
            None
        };
        let (directory, temporary) = directory(wishes)?;
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
        let logs = directory.join("logs");
        let mut plan = Plan::new(directory);
        plan.adapter_config = Some(adapter);
        let (installation, connection) = match &wishes.other {
            None => {
                let installation = start(plan, &mut progress).await?;
                let server = Some(installation.server_url().to_owned());
                // Its services read the same file and environment.
                let config = std::env::var_os("CONCORD_CONFIG").map(PathBuf::from);
                (
                    Some(installation),
                    ConnectionArgs {
                        server,
                        prefix: None,
                        credentials: None,
                        config,
                    },
                )
            }
            Some(connection) => {
                let broker = connection.connect().await?;
                plan.server_url = Some(connection.settings()?.broker.servers);
                plan.replicas = [(Service::AgentAdapter, 1)].into();
                let hosted = agents::any_hosted(&agents::absent(&broker).await?);
                (
                    if hosted {
                        Some(start(plan, &mut progress).await?)
                    } else {
                        None
                    },
                    connection.clone(),
                )
            }
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

    /// Stops everything that it has started, and says what had to be killed.
    pub(crate) async fn end(self) {
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

async fn start(plan: Plan, progress: &mut impl FnMut(&str)) -> Result<Installation, Failure> {
    Ok(Installation::start(plan, |step| progress(&step.to_string())).await?)
}

/// A folder for data and logs, and the guard that removes it when it is temporary.
fn directory(wishes: &Wishes) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    if let Some(directory) = &wishes.directory {
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
