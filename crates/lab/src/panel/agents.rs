//! The five agents of the panel, as processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull;
use concord_events::topology::StreamKind;
use concord_installation::{Process, Program};
use concord_runtime::Broker;
use concord_wire::AgentId;
use concord_wire::subject::Lane;
use serde_json::json;

use concord_cli::shared::failure::Failure;

use crate::python::Python;

/// The agent whose reading of clauses is compared with the deliberated result.
pub(crate) const EXTRACTOR: &str = "clause_extractor";
/// The agents that the adapter hosts, each with its description.
const HOSTED: [(&str, &str); 4] = [
    (EXTRACTOR, "Finds clauses by the wording that defines them"),
    ("risk_assessor", "Looks for exposures and protections"),
    (
        "negotiation_advisor",
        "Reads for commercial terms and ways out",
    ),
    ("executive_reviewer", "Weighs a few strategic terms"),
];
/// The agent that speaks NATS itself.
const CHECKER: &str = "compliance_checker";
/// Its program, in the panel's folder.
const CHECKER_FILE: &str = "compliance_checker.py";
/// The panel's folder in a checkout.
const FOLDER: &str = "examples/contract-review";
/// Copies of each hosted program.
const INSTANCES: usize = 3;
/// The time in which the agents must listen.
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// The panel, ordered by name.
pub(crate) fn names() -> Vec<AgentId> {
    let mut names: Vec<AgentId> = HOSTED
        .iter()
        .map(|(name, _)| AgentId::fixed(name))
        .collect();
    names.push(AgentId::fixed(CHECKER));
    names.sort();
    names
}

/// The panel's folder: as given, else found in this program's folder, the current one, or one above.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        let there = given.join(CHECKER_FILE).is_file();
        let missing = || {
            Failure::usage(format!(
                "{} has no {CHECKER_FILE}: it is not the panel's folder",
                given.display()
            ))
        };
        return there.then(|| given.to_owned()).ok_or_else(missing);
    }
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let above = program
        .ancestors()
        .chain(here.ancestors())
        .map(|above| above.join(FOLDER));
    above.into_iter().find(|folder| folder.join(CHECKER_FILE).is_file()).ok_or_else(|| {
        Failure::usage(format!("{FOLDER} is in no folder above this program or the current one; name it with --panel"))
    })
}

/// The settings of an adapter that hosts the panel's programs, in TOML.
pub(crate) fn adapter_settings(binaries: &Path) -> String {
    let program = binaries.join("panel-agent");
    // The strings of TOML have the escapes of JSON.
    let quoted = |value: &str| json!(value).to_string();
    let agent = |(name, description): &(&str, &str)| {
        format!(
            "    {{ agent_id = {}, description = {}, command = [{}, {}], instances = {INSTANCES} }},\n",
            quoted(name),
            quoted(description),
            quoted(&program.display().to_string()),
            quoted(name),
        )
    };
    format!(
        "[service]\nagents = [\n{}]\n",
        HOSTED.iter().map(agent).collect::<String>()
    )
}

/// The agents that do not listen yet. An agent that listens has a pull request waiting on its inbox.
pub(crate) async fn absent(broker: &Broker) -> Result<Vec<AgentId>, Failure> {
    let stream = broker.layout.stream_name(StreamKind::Messages);
    let stream = broker
        .jetstream
        .get_stream_no_info(&stream)
        .await
        .map_err(|error| broken(&error))?;
    let mut absent = Vec::new();
    for agent in names() {
        let (_, durable, _) = broker.layout.agent_inbox(Lane::Normal, &agent);
        let listening = match stream.get_consumer::<pull::Config>(&durable).await {
            Ok(mut consumer) => consumer.info().await.is_ok_and(|info| info.num_waiting > 0),
            Err(_) => false,
        };
        if !listening {
            absent.push(agent);
        }
    }
    Ok(absent)
}

fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!("the broker does not say who listens: {error}"))
}

/// True when one of these is hosted by the adapter.
pub(crate) fn any_hosted(agents: &[AgentId]) -> bool {
    agents.iter().any(|agent| agent.as_str() != CHECKER)
}

/// True when one of these is the agent that speaks NATS itself.
pub(crate) fn any_checker(agents: &[AgentId]) -> bool {
    agents.iter().any(|agent| agent.as_str() == CHECKER)
}

/// Starts the compliance checker.
pub(crate) fn start_checker(
    python: Python,
    folder: &Path,
    url: &str,
    prefix: &str,
    logs: &Path,
) -> Result<Process, Failure> {
    let environment = python.environment();
    let script = folder.join(CHECKER_FILE).display().to_string();
    let process = Process::new(Program {
        name: CHECKER.into(),
        path: python.program,
        arguments: vec![
            script,
            "--server".into(),
            url.into(),
            "--prefix".into(),
            prefix.into(),
        ],
        environment,
        log: logs.join(format!("{CHECKER}.log")),
        orphaned: "KILL",
    });
    process.start()?;
    Ok(process)
}

/// Waits until every agent listens.
pub(crate) async fn ready(broker: &Broker, checker: Option<&Process>) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let absent = absent(broker).await?;
        if absent.is_empty() {
            return Ok(());
        }
        if let Some((process, status)) =
            checker.and_then(|process| Some((process, process.ended()?)))
        {
            let tail = process.tail();
            return Err(Failure::unavailable(format!(
                "{CHECKER} has ended ({status}); the end of its log:\n{tail}"
            )));
        }
        if begun.elapsed() > READY_MAX {
            let absent: Vec<&str> = absent.iter().map(AgentId::as_str).collect();
            return Err(Failure::unavailable(format!(
                "these agents do not listen: {}",
                absent.join(", ")
            )));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// The Python of the compliance checker.
pub(crate) fn python() -> Result<Python, Failure> {
    Python::find(&format!("{CHECKER}, which is written in Python,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adapter_understands_the_settings_it_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("adapter.toml");
        std::fs::write(&file, adapter_settings(Path::new("/a \"quoted\"/folder"))).unwrap();
        let sources = concord_runtime::service::settings::Sources {
            file: Some(file),
            ..Default::default()
        };
        let settings: concord_runtime::service::settings::Settings<
            concord_agent_adapter::AdapterSettings,
        > = concord_runtime::service::settings::read(&sources).unwrap();
        let agents = settings.service.agents;
        assert_eq!(agents.len(), HOSTED.len());
        let hosted: Vec<_> = agents.iter().map(|agent| agent.command.clone()).collect();
        assert_eq!(
            hosted[1],
            ["/a \"quoted\"/folder/panel-agent", "risk_assessor"]
        );
        assert!(any_hosted(&names()) && any_checker(&names()));
        assert_eq!(names().len(), 5);
    }

    #[test]
    fn a_folder_that_is_not_the_panels_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(folder(Some(directory.path())).unwrap_err().code(), 2);
        assert!(folder(None).unwrap().ends_with(FOLDER));
    }
}
