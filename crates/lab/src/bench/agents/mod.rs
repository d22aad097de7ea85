//! The five agents of the measured cases, each a process of its own.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use concord_installation::{Process, Program};
use concord_wire::subject::SubjectSpace;
use serde::Serialize;

use super::ready_process;
use crate::python::Python;

pub(super) mod program;

/// The program of the Python agents.
const SCRIPT: &str = include_str!("agent.py");

/// Risk score and recommendation of each agent: all five together have two conflicts, of three parties each.
const FINDINGS: [(u32, &str); 5] = [
    (20, "sign"),
    (35, "sign"),
    (50, "negotiate"),
    (65, "negotiate"),
    (80, "reject"),
];

/// What the agents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentKind {
    /// As fast as an agent can be: nothing but a NATS client.
    Rust,
    /// As agents usually are: nats-py and the JSON module.
    Python,
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
        url: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        for (name, (risk_score, recommendation)) in names().into_iter().zip(FINDINGS) {
            let mut command = command(program, &name, folder)?;
            let prefix = SubjectSpace::default().prefix().to_owned();
            let (server, risk_score) = (url.to_owned(), risk_score.to_string());
            let options = [
                ("--server", server),
                ("--prefix", prefix),
                ("--name", name),
                ("--risk-score", risk_score),
                ("--recommendation", recommendation.to_owned()),
            ];
            for (option, value) in options {
                command.arguments.extend([option.to_owned(), value]);
            }
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
    (0..FINDINGS.len()).map(|n| format!("bench-{n}")).collect()
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
