//! Settings of the agent adapter: which agents it hosts, how they are run, and what they may cost.

use std::collections::BTreeMap;
use std::path::PathBuf;

use concord_domain::activation::LoopBounds;
use concord_runtime::service::settings::Secret;
use concord_wire::payload::{Card, CardAction, Skill};
use concord_wire::{AgentId, Dialect, Token};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod callback;
mod check;
pub(crate) mod coordination;
mod email;
mod endpoint;
mod error;
pub(crate) mod notify;
pub(crate) mod prompts;
#[cfg(test)]
mod tests;
pub(crate) mod wake;
mod webhook;

pub(crate) use callback::CallbackConfig;
pub use callback::CallbackSettings;
pub(crate) use check::{CheckedAgent, CheckedSettings, RunnerConfig, parse};
pub use coordination::CoordinationSettings;
pub(crate) use email::EmailConfig;
pub(crate) use endpoint::{EndpointConfig, HeaderFile, KeySource, read_key};
pub use error::Error;
pub use notify::{EmailSettings, NotifySettings, Tls, WebhookSettings};
pub use wake::{EmbeddingServer, WakeSettings};
pub(crate) use webhook::WebhookConfig;

/// Settings of the agent adapter alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdapterSettings {
    /// The hosted agents.
    pub agents: Vec<HostedAgent>,
    /// What may be asked of a provider in a minute, by the provider's name. All replicas together keep to it.
    pub budgets: BTreeMap<Token, BudgetSettings>,
    /// Where hosted agents answer later.
    pub callback: CallbackSettings,
    /// Whom messages wake.
    pub wake: WakeSettings,
    /// When two agents that answer each other are stopped.
    pub loops: LoopSettings,
    /// What is counted of how agents help each other.
    pub coordination: CoordinationSettings,
    /// Notifications of people by email and webhook.
    pub notify: NotifySettings,
}

/// When two agents that answer each other are stopped: the adapter wakes neither by what the other says in the thread, gives
/// hosted agents nothing more of it, and tells both.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopSettings {
    /// How often the word may go from one to the other within the window, in one thread or case; at most 127. 0 for no limit.
    pub depth_max: u32,
    /// The window, in milliseconds.
    pub window_ms: u64,
    /// How long they are stopped, in milliseconds.
    pub pause_ms: u64,
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            depth_max: 64,
            window_ms: 60_000,
            pause_ms: 300_000,
        }
    }
}

impl LoopSettings {
    /// As the conversations need it.
    pub(crate) fn bounds(&self) -> Option<LoopBounds> {
        let Self {
            depth_max,
            window_ms,
            pause_ms,
        } = *self;
        (depth_max > 0).then_some(LoopBounds {
            depth_max,
            window_ms,
            pause_ms,
        })
    }
}

/// An agent that does not speak NATS. It is run as exactly one of `command`, `http` and `openai`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostedAgent {
    /// Under which name it speaks.
    pub agent_id: AgentId,
    /// Its name for people.
    #[serde(default)]
    pub name: Option<String>,
    /// What it does, for people.
    #[serde(default)]
    pub description: String,
    /// Its own version, as it numbers them.
    #[serde(default)]
    pub version: Option<String>,
    /// What it can do, each with `name`, `description`, `tags` and `examples`: by these it is woken.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// What it can be asked for by name, each with `name`, `description`, and the JSON Schemas `parameters` and `result`.
    #[serde(default)]
    pub actions: Vec<CardAction>,
    /// What it knows about.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Words or phrases that wake it where meaning cannot be matched.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// How it reads and writes, as its card says it: a program or server is given messages in this dialect, and its answers are
    /// read in it where their shape is of no other.
    #[serde(default)]
    pub dialect: Dialect,
    /// Requests that it works on at a time; no limit is kept when absent.
    #[serde(default)]
    pub capacity: Option<u32>,
    /// How often it sends a heartbeat, in milliseconds.
    #[serde(default)]
    pub heartbeat_ms: Option<u64>,
    /// A program and its arguments: one JSON message a line on standard input, one answer a line on standard output.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables for the program, besides the adapter's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where the program runs; the adapter's folder when absent.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// A server that is sent each message as a POST.
    #[serde(default)]
    pub http: Option<HttpAgent>,
    /// A model behind an OpenAI-compatible API.
    #[serde(default)]
    pub openai: Option<OpenAiAgent>,
    /// Messages that it works on at once in each replica: copies of the program, or calls.
    #[serde(default = "usual::instances")]
    pub instances: usize,
    /// Messages that wait for it in each replica; more are answered with `CAPACITY_EXCEEDED`, or put back first where a service says them in a
    /// case. Those of the highest priority go first, and an urgent one that finds no place takes that of the last that is not urgent.
    #[serde(default = "usual::queue_max")]
    pub queue_max: usize,
    /// How long one try may take, in milliseconds; a program that takes longer is ended, with whatever it has started, and started
    /// again.
    #[serde(default = "usual::timeout_ms")]
    pub timeout_ms: u64,
    /// How long a message without a deadline may wait for its answer, the queue, the budget and all tries included, in
    /// milliseconds.
    #[serde(default = "usual::wait_max_ms")]
    pub wait_max_ms: u64,
    /// Tries of one call, where it is safe to try again: no connection, status 429, status 503.
    #[serde(default = "usual::tries_max")]
    pub tries_max: u32,
    /// The name of the budget that its calls are taken from, one of `service.budgets`.
    #[serde(default)]
    pub provider: Option<Token>,
    /// When it is not asked for a while.
    #[serde(default)]
    pub breaker: BreakerSettings,
}

impl HostedAgent {
    /// Its card: what it says of itself.
    pub fn card(&self) -> Card {
        Card {
            name: self.name.clone(),
            description: self.description.clone(),
            version: self.version.clone(),
            skills: self.skills.clone(),
            actions: self.actions.clone(),
            domains: self.domains.clone(),
            triggers: self.triggers.clone(),
            dialect: self.dialect,
            capacity: self.capacity,
            heartbeat_ms: self.heartbeat_ms,
            ..Card::new(self.agent_id.clone())
        }
    }
}

/// An agent that is a server: it is sent messages, and answers with what it says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpAgent {
    /// Where messages are sent, for example `https://agents.example.org/risk`.
    pub url: String,
    /// Further headers; their values are secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Further headers whose values are in files: the name of each, and its file, which is read for each call.
    #[serde(default)]
    pub header_files: BTreeMap<String, PathBuf>,
    /// The environment variable with its key, which is sent as a bearer token.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// A file with the key, instead, which is read for each call.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// File with certificate authorities (PEM) to trust besides those of the system.
    #[serde(default)]
    pub tls_ca: Option<PathBuf>,
    /// Whether the server keeps to the header `Idempotency-Key`: then a message is sent again, too, when it may have
    /// arrived.
    #[serde(default)]
    pub idempotent: bool,
    /// Most bytes of an answer.
    #[serde(default = "usual::answer_bytes_max")]
    pub answer_bytes_max: usize,
}

/// An agent that is a model behind an OpenAI-compatible API.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiAgent {
    /// Where the API begins, for example `https://api.example.org/v1`; `/chat/completions` is added.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Who the model is to be.
    #[serde(default)]
    pub system_prompt: String,
    /// A file with the system prompt, instead.
    #[serde(default)]
    pub system_prompt_file: Option<PathBuf>,
    /// A file with the template of what a party to a debate is asked, in place of the usual one; see `docs/hosted-agents.md`.
    #[serde(default)]
    pub peer_review_template: Option<PathBuf>,
    /// The same for a task of a case.
    #[serde(default)]
    pub task_template: Option<PathBuf>,
    /// The same for all else.
    #[serde(default)]
    pub request_template: Option<PathBuf>,
    /// Whether `response_format: {"type": "json_object"}` is asked for.
    #[serde(default = "usual::yes")]
    pub json_object: bool,
    /// Most tokens of a reply; in a debate the smaller of this and the case's own limit.
    #[serde(default = "usual::max_tokens")]
    pub max_tokens: u32,
    /// By what name the limit is sent; some models want `max_completion_tokens`.
    #[serde(default = "usual::max_tokens_field")]
    pub max_tokens_field: String,
    /// The temperature; the server's own when absent.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The environment variable with its key, which is sent as a bearer token.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// A file with the key, instead, which is read for each call.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// File with certificate authorities (PEM) to trust besides those of the system.
    #[serde(default)]
    pub tls_ca: Option<PathBuf>,
    /// Whether the server keeps to the header `Idempotency-Key`: then a call is made again, too, when it may have arrived.
    #[serde(default)]
    pub idempotent: bool,
}

/// When an agent is not asked for a while, because it failed again and again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// Failures in a row after which it is not asked.
    pub failures_max: u32,
    /// For how long at first, in milliseconds; doubled each time that a try fails.
    pub open_ms: u64,
    /// For how long at most, in milliseconds.
    pub open_max_ms: u64,
    /// Tries in a row that must succeed before it is asked as before.
    pub successes_min: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures_max: 5,
            open_ms: 5_000,
            open_max_ms: 120_000,
            successes_min: 1,
        }
    }
}

/// What may be asked of a provider in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Requests a minute; no limit when absent.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute, of prompts and replies; no limit when absent.
    pub tokens_per_minute: Option<u64>,
}

/// The defaults of fields whose structs have required ones.
mod usual {
    pub(super) fn instances() -> usize {
        2
    }

    pub(super) fn queue_max() -> usize {
        1_000
    }

    pub(super) fn timeout_ms() -> u64 {
        10_000
    }

    pub(super) fn wait_max_ms() -> u64 {
        60_000
    }

    pub(super) fn tries_max() -> u32 {
        3
    }

    pub(super) fn answer_bytes_max() -> usize {
        1_048_576
    }

    pub(super) fn max_tokens() -> u32 {
        1_000
    }

    pub(super) fn max_tokens_field() -> String {
        "max_tokens".to_owned()
    }

    pub(super) fn yes() -> bool {
        true
    }
}
