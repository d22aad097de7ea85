//! Parses the settings into plain values before anything is bound. A setting that could not work is refused by name.

use concord_domain::activation::DEPTH_MAX;
use concord_embedding::ServerSettings;
use concord_wire::Token;
use concord_wire::subject::whose_name;

use super::prompts::PromptTemplates;
use super::{
    AdapterSettings, BudgetSettings, CallbackConfig, EmailConfig, EndpointConfig, Error,
    HostedAgent, LoopSettings, OpenAiAgent, WebhookConfig,
};

/// The settings as plain values that were parsed and checked: addresses, keys and templates have been read.
#[derive(Debug)]
pub(crate) struct CheckedSettings {
    pub(crate) agents: Vec<CheckedAgent>,
    /// None when hosted agents cannot answer later.
    pub(crate) callback: Option<CallbackConfig>,
    /// The server that makes vectors, where one is set.
    pub(crate) embedding_server: Option<ServerSettings>,
    /// None when no mail is sent.
    pub(crate) email: Option<EmailConfig>,
    /// None when no address may be called.
    pub(crate) webhook: Option<WebhookConfig>,
}

/// A hosted agent, checked.
#[derive(Debug)]
pub(crate) struct CheckedAgent {
    pub(crate) settings: HostedAgent,
    pub(crate) runner: RunnerConfig,
}

/// The one way in which an agent is run.
#[derive(Debug)]
pub(crate) enum RunnerConfig {
    Program,
    Server(EndpointConfig),
    Model(Box<OpenAiAgent>, EndpointConfig, PromptTemplates),
}

impl RunnerConfig {
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// Parses the settings, and refuses those that could not work.
pub(crate) fn parse(settings: &AdapterSettings) -> Result<CheckedSettings, Error> {
    let mut agents: Vec<CheckedAgent> = Vec::new();
    for (place, agent) in settings.agents.iter().enumerate() {
        let key = format!("agents[{place}]");
        let is_known = |known: &CheckedAgent| known.settings.agent_id == agent.agent_id;
        if agents.iter().any(is_known) {
            let message = format!("{} is hosted twice", agent.agent_id);
            return Err(Error::new(format!("{key}.agent_id"), message));
        }
        check_agent(&key, agent)?;
        agents.push(CheckedAgent {
            runner: parse_runner(&key, agent)?,
            settings: agent.clone(),
        });
        let unknown = |provider: &&Token| !settings.budgets.contains_key(*provider);
        if let Some(provider) = agent.provider.as_ref().filter(unknown) {
            let message = format!("there is no service.budgets.{provider}");
            return Err(Error::new(format!("{key}.provider"), message));
        }
    }
    for (provider, budget) in &settings.budgets {
        check_budget(provider, *budget)?;
    }
    check_loops(&settings.loops)?;
    if settings.coordination.window_ms == 0 {
        let message = "it must be at least 1";
        return Err(Error::new("coordination.window_ms", message));
    }
    debug_assert_eq!(
        agents.len(),
        settings.agents.len(),
        "an agent was neither parsed nor refused"
    );
    settings.notify.check()?;
    settings.wake.check()?;
    Ok(CheckedSettings {
        agents,
        embedding_server: settings.wake.server()?,
        callback: CallbackConfig::parse(&settings.callback)?,
        email: EmailConfig::parse(&settings.notify)?,
        webhook: WebhookConfig::parse(&settings.notify)?,
    })
}

fn check_loops(loops: &LoopSettings) -> Result<(), Error> {
    let wrong = |name: &str, message: String| Err(Error::new(format!("loops.{name}"), message));
    match loops {
        LoopSettings {
            depth_max: DEPTH_MAX..,
            ..
        } => wrong("depth_max", format!("it must be less than {DEPTH_MAX}")),
        LoopSettings { window_ms: 0, .. } => wrong("window_ms", "it must be at least 1".into()),
        LoopSettings { pause_ms: 0, .. } => wrong("pause_ms", "it must be at least 1".into()),
        _ => Ok(()),
    }
}

fn check_agent(key: &str, agent: &HostedAgent) -> Result<(), Error> {
    let id = &agent.agent_id;
    if let Some(whose) = whose_name(id.as_str()) {
        return Err(Error::new(
            format!("{key}.agent_id"),
            format!("{id} is the name of {whose}"),
        ));
    }
    agent.card().check("").map_err(|fault| {
        let place = fault.pointer.replace('/', ".");
        Error::new(
            format!("{key}{place}"),
            format!("{} {}", fault.message, fault.advice),
        )
    })?;
    let numbers = [
        ("instances", agent.instances as u64),
        ("timeout_ms", agent.timeout_ms),
        ("wait_max_ms", agent.wait_max_ms),
        ("tries_max", agent.tries_max.into()),
        ("breaker.failures_max", agent.breaker.failures_max.into()),
        ("breaker.open_ms", agent.breaker.open_ms),
        ("breaker.successes_min", agent.breaker.successes_min.into()),
    ];
    match numbers.into_iter().find(|(_, number)| *number == 0) {
        Some((name, _)) => Err(Error::new(format!("{key}.{name}"), "it must be at least 1")),
        None => Ok(()),
    }
}

fn parse_runner(key: &str, agent: &HostedAgent) -> Result<RunnerConfig, Error> {
    let kinds = [
        !agent.command.is_empty(),
        agent.http.is_some(),
        agent.openai.is_some(),
    ];
    if kinds.into_iter().filter(|given| *given).count() != 1 {
        let id = &agent.agent_id;
        let message = format!("{id} is run as exactly one of command, http and openai");
        return Err(Error::new(key, message));
    }
    if agent.command.is_empty() && (!agent.environment.is_empty() || agent.directory.is_some()) {
        let message = "environment and directory are those of a program, and there is no command";
        return Err(Error::new(key, message));
    }
    match (&agent.http, &agent.openai) {
        (Some(http), _) => {
            let endpoint = EndpointConfig::of_server(&format!("{key}.http"), http)?;
            Ok(RunnerConfig::Server(endpoint))
        }
        (None, Some(openai)) => parse_model(&format!("{key}.openai"), openai),
        (None, None) => Ok(RunnerConfig::Program),
    }
}

fn parse_model(key: &str, openai: &OpenAiAgent) -> Result<RunnerConfig, Error> {
    let texts = [
        ("model", &openai.model),
        ("max_tokens_field", &openai.max_tokens_field),
    ];
    for (name, text) in texts {
        if text.trim().is_empty() {
            return Err(Error::new(format!("{key}.{name}"), "it is blank"));
        }
    }
    if openai.max_tokens == 0 {
        let message = "it must be at least 1";
        return Err(Error::new(format!("{key}.max_tokens"), message));
    }
    let is_out_of_range = |degree: f64| !(0.0..=2.0).contains(&degree);
    if openai.temperature.is_some_and(is_out_of_range) {
        let message = "give a number from 0 to 2";
        return Err(Error::new(format!("{key}.temperature"), message));
    }
    let templates = PromptTemplates::read(key, openai)?;
    let endpoint = EndpointConfig::of_model(key, openai)?;
    let openai = Box::new(openai.clone());
    Ok(RunnerConfig::Model(openai, endpoint, templates))
}

fn check_budget(provider: &Token, budget: BudgetSettings) -> Result<(), Error> {
    let key = |name: &str| format!("budgets.{provider}{name}");
    // The name of the budget is a topic of shared memory, which has room for so much beside its prefix.
    if provider.as_str().len() > BUDGET_NAME_MAX {
        return Err(Error::new(
            key(""),
            format!("its name is longer than {BUDGET_NAME_MAX} characters"),
        ));
    }
    match budget {
        BudgetSettings {
            requests_per_minute: None,
            tokens_per_minute: None,
        } => Err(Error::new(
            key(""),
            "give requests_per_minute, tokens_per_minute, or both",
        )),
        BudgetSettings {
            requests_per_minute: Some(0),
            ..
        } => Err(Error::new(
            key(".requests_per_minute"),
            "it must be at least 1",
        )),
        BudgetSettings {
            tokens_per_minute: Some(0),
            ..
        } => Err(Error::new(
            key(".tokens_per_minute"),
            "it must be at least 1",
        )),
        BudgetSettings { .. } => Ok(()),
    }
}

/// Characters of a budget's name.
const BUDGET_NAME_MAX: usize = 48;
