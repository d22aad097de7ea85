//! The five agents of the measured cases, each a process of its own.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use concord_installation::{Process, Program};
use concord_wire::subject::SubjectSpace;
use serde::Serialize;
use serde_json::{Value, json};

use super::ready_process;
use crate::python::Python;

pub(super) mod program;

/// The program of the Python agents.
const SCRIPT: &str = include_str!("agent.py");

/// How many agents take part in a case.
const AGENTS: usize = 5;

/// What the agents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentKind {
    /// As fast as an agent can be: nothing but a NATS client.
    Rust,
    /// As agents usually are: nats-py and the JSON module.
    Python,
}

/// How agents hear and speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transport {
    /// A plain subscription; what is said is published without waiting.
    Plain,
    /// A durable consumer; what is said is stored before what it answers is acknowledged. Python agents alone.
    Stored,
}

impl Transport {
    /// What the programs in Python are told of it.
    pub(super) fn arguments(self) -> impl Iterator<Item = String> {
        (self == Self::Stored)
            .then(|| "--stored".to_owned())
            .into_iter()
    }
}

/// The program that each agent runs.
#[derive(Debug, Clone)]
pub(super) enum AgentProgram {
    /// A subcommand of this program.
    Rust,
    /// A script.
    Python(Python),
}

impl AgentProgram {
    /// The program of agents of this kind, if this machine can run it.
    pub(super) fn find(kind: AgentKind) -> Result<Self, concord_cli::shared::failure::Failure> {
        Ok(match kind {
            AgentKind::Rust => Self::Rust,
            AgentKind::Python => Self::Python(Python::find("a measurement without --agents rust")?),
        })
    }

    /// What it is written in.
    pub(super) fn kind(&self) -> AgentKind {
        match self {
            Self::Rust => AgentKind::Rust,
            Self::Python(_) => AgentKind::Python,
        }
    }
}

/// The agents, while they run. They are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Agents {
    processes: Vec<Process>,
}

impl Agents {
    /// Starts the five agents on a broker, with their logs in `folder`, and waits until all listen.
    pub(super) async fn start(
        program: &AgentProgram,
        transport: Transport,
        url: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        for (name, finding) in names().into_iter().zip(findings()) {
            let mut command = command(program, &name, folder)?;
            let prefix = SubjectSpace::default().prefix().to_owned();
            let options = [
                ("--server", url.to_owned()),
                ("--prefix", prefix),
                ("--name", name),
                ("--finding", finding.to_string()),
            ];
            for (option, value) in options {
                command.arguments.extend([option.to_owned(), value]);
            }
            command.arguments.extend(transport.arguments());
            processes.push(ready_process::start(command)?);
        }
        for process in &processes {
            ready_process::ready(process).await?;
        }
        Ok(Self { processes })
    }

    /// The ids of those processes that run.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.iter().filter_map(Process::pid)
    }
}

/// The names of the agents.
pub(super) fn names() -> Vec<String> {
    (0..AGENTS).map(|n| format!("bench-{n}")).collect()
}

/// What each agent finds: of all five together there are two conflicts of three parties each, one about the risk score and
/// one about the recommendation.
fn findings() -> [Value; AGENTS] {
    let finding = |about: Value| {
        let mut finding = json!({
            "summary": "Measured.", "evidence": ["The Supplier may terminate at any time."]
        });
        if let (Some(finding), Value::Object(about)) = (finding.as_object_mut(), about) {
            finding.extend(about);
        }
        finding
    };
    [
        json!({"risk_score": 20}),
        json!({"risk_score": 50}),
        json!({"risk_score": 80, "recommendation": "reject"}),
        json!({"recommendation": "negotiate"}),
        json!({"recommendation": "sign"}),
    ]
    .map(finding)
}

fn command(program: &AgentProgram, name: &str, folder: &Path) -> anyhow::Result<Program> {
    let (path, first, environment) = match program {
        AgentProgram::Rust => {
            let own = std::env::current_exe().context("finding this program")?;
            (own, "bench-agent".to_owned(), Vec::new())
        }
        AgentProgram::Python(python) => {
            let script = folder.join("agent.py");
            std::fs::write(&script, SCRIPT).context("writing the agents' program")?;
            let script = script.display().to_string();
            (python.program.clone(), script, python.environment())
        }
    };
    Ok(Program {
        name: name.to_owned(),
        path,
        arguments: vec![first],
        environment,
        log: folder.join(format!("{name}.log")),
        orphaned: "KILL",
    })
}
