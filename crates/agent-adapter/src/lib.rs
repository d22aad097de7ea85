//! The agent adapter: speaks with what is not NATS. It hosts agents, and notifies people ([`notify`]).
//!
//! A hosted agent is a program: it is given one JSON message a line on standard input and answers each with one line
//! on standard output. The adapter reads the agent's messages from the broker, runs as many copies of the program as
//! the settings allow, bounds the time of each answer, starts a program that ended or hung again after a growing pause,
//! and publishes the answers. Any replica can take any message: the inbox is a shared durable consumer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use concord_protocol::subject::{Lane, Service};
use concord_protocol::{AgentId, Token};
use concord_runtime::api::{Answer, answer};
use concord_runtime::service::{Run, Shell};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use notify::settings::{EmailSettings, NotifySettings, Tls, WebhookSettings};

mod context;
mod inbox;
mod notify;
mod pool;
mod program;
mod reply;

/// Settings of the agent adapter alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdapterSettings {
    /// The hosted agents.
    pub agents: Vec<HostedAgent>,
    /// Notifications of people by email and webhook.
    pub notify: NotifySettings,
}

/// An agent that is a program on standard input and output.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostedAgent {
    /// Under which name it speaks.
    pub agent_id: AgentId,
    /// What it does, for people.
    #[serde(default)]
    pub description: String,
    /// What it can do.
    #[serde(default)]
    pub skills: Vec<String>,
    /// What it knows about.
    #[serde(default)]
    pub domains: Vec<Token>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables for it, besides the adapter's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it runs; the adapter's folder when absent.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Copies of the program, each of which handles one message at a time.
    #[serde(default = "default_instances")]
    pub instances: usize,
    /// How long one answer may take, in milliseconds; a program that takes longer is ended and started again.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

fn default_instances() -> usize {
    2
}

fn default_timeout_ms() -> u64 {
    10_000
}

/// The service.
pub struct AgentAdapter;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Run for AgentAdapter {
    const SERVICE: Service = Service::AgentAdapter;
    const ABOUT: &'static str =
        "Hosts agents that are programs on standard input and output, and notifies people by email and webhook";
    type Own = AdapterSettings;

    fn check(own: &AdapterSettings) -> Result<(), AnyError> {
        check(&own.agents)?;
        Ok(notify::check(&own.notify)?)
    }

    async fn start(shell: Shell, own: AdapterSettings) -> Result<(), AnyError> {
        let tasks = Arc::new(context::Tasks::new(&shell).await?);
        let mut hosts = Vec::new();
        for agent in own.agents {
            let host = Arc::new(inbox::Host::new(&shell, agent, &tasks));
            for lane in [Lane::Normal, Lane::Urgent] {
                let (stream, name, filter) = shell.broker.layout.agent_inbox(lane, &host.agent.agent_id);
                let stream = shell.broker.layout.stream_name(stream);
                shell.consume_from(stream, name, filter, inbox::Inbox(Arc::clone(&host)));
            }
            hosts.push(host);
        }
        notify::start(&shell, &own.notify)?;
        shell.answer(
            "agents",
            Arc::new(move |_| {
                let hosted: Vec<inbox::Description> = hosts.iter().map(|host| host.describe()).collect();
                let listed: Answer = Box::pin(async move { answer(&hosted) });
                listed
            }),
        );
        Ok(())
    }
}

/// Refuses settings that could not work.
fn check(agents: &[HostedAgent]) -> Result<(), AnyError> {
    for (index, agent) in agents.iter().enumerate() {
        let id = &agent.agent_id;
        if Service::parse(id.as_str()).is_ok() {
            return Err(format!("service.agents[{index}].agent_id: {id} is the name of a service").into());
        }
        if agents.iter().take(index).any(|earlier| earlier.agent_id == *id) {
            return Err(format!("service.agents[{index}].agent_id: {id} is hosted twice").into());
        }
        if agent.command.is_empty() {
            return Err(format!("service.agents[{index}].command: name the program of {id}").into());
        }
        if agent.instances == 0 || agent.timeout_ms == 0 {
            return Err(format!("service.agents[{index}]: instances and timeout_ms of {id} must be at least 1").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, command: &[&str]) -> HostedAgent {
        serde_json::from_value(serde_json::json!({ "agent_id": id, "command": command })).unwrap()
    }

    #[test]
    fn settings_that_could_not_work_are_refused_by_name() {
        for (agents, part) in [
            (vec![agent("coordinator", &["x"])], "name of a service"),
            (vec![agent("a", &["x"]), agent("a", &["x"])], "hosted twice"),
            (vec![agent("a", &[])], "name the program"),
            (vec![HostedAgent { instances: 0, ..agent("a", &["x"]) }], "at least 1"),
        ] {
            assert!(check(&agents).unwrap_err().to_string().contains(part));
        }
        assert!(check(&[agent("a", &["x"]), agent("b", &["x"])]).is_ok());
    }
}
