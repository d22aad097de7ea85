//! Settings that could not work are refused by name, before anything is bound.

use concord_domain::activation::DEPTH_MAX;
use concord_outbound::HeaderName;
use concord_wire::Token;
use concord_wire::subject::Service;

use super::{AdapterSettings, BudgetSettings, CallbackSettings, HostedAgent, LoopSettings};
use crate::hosted_agent::callback;
use crate::hosted_agent::endpoint::Endpoint;
use crate::hosted_agent::openai::prompt::Prompts;

/// A setting that could not work.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting \"service.{key}\" is wrong: {message}")]
pub(crate) struct Error {
    key: String,
    message: String,
}

impl Error {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// Refuses what could not work.
pub(crate) fn check(settings: &AdapterSettings) -> Result<(), Error> {
    for (place, agent) in settings.agents.iter().enumerate() {
        let key = format!("agents[{place}]");
        if settings
            .agents
            .iter()
            .take(place)
            .any(|earlier| earlier.agent_id == agent.agent_id)
        {
            return Err(Error::new(
                format!("{key}.agent_id"),
                format!("{} is hosted twice", agent.agent_id),
            ));
        }
        check_agent(&key, agent)?;
        if let Some(provider) = agent
            .provider
            .as_ref()
            .filter(|provider| !settings.budgets.contains_key(*provider))
        {
            return Err(Error::new(
                format!("{key}.provider"),
                format!("there is no service.budgets.{provider}"),
            ));
        }
    }
    settings
        .budgets
        .iter()
        .try_for_each(|(provider, budget)| check_budget(provider, *budget))?;
    check_loops(&settings.loops)?;
    if settings.coordination.window_ms == 0 {
        return Err(Error::new(
            "coordination.window_ms",
            "it must be at least 1",
        ));
    }
    settings.wake.check()?;
    check_callback(&settings.callback)
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
    if Service::parse(id.as_str()).is_ok() {
        return Err(Error::new(
            format!("{key}.agent_id"),
            format!("{id} is the name of a service"),
        ));
    }
    agent.card().check("").map_err(|fault| {
        let place = fault.pointer.replace('/', ".");
        Error::new(
            format!("{key}{place}"),
            format!("{} {}", fault.message, fault.advice),
        )
    })?;
    check_kind(key, agent)?;
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

fn check_kind(key: &str, agent: &HostedAgent) -> Result<(), Error> {
    let kinds = [
        !agent.command.is_empty(),
        agent.http.is_some(),
        agent.openai.is_some(),
    ];
    if kinds.into_iter().filter(|given| *given).count() != 1 {
        let message = format!(
            "{} is run as exactly one of command, http and openai",
            agent.agent_id
        );
        return Err(Error::new(key, message));
    }
    if agent.command.is_empty() && (!agent.environment.is_empty() || agent.directory.is_some()) {
        return Err(Error::new(
            key,
            "environment and directory are those of a program, and there is no command",
        ));
    }
    if let Some(http) = &agent.http {
        let key = format!("{key}.http");
        for name in http.headers.keys() {
            HeaderName::try_from(name.as_str()).map_err(|_| {
                Error::new(
                    format!("{key}.headers"),
                    format!("{name:?} is no name of a header"),
                )
            })?;
        }
        Endpoint::of_server(&key, http)?;
    }
    if let Some(openai) = &agent.openai {
        let key = format!("{key}.openai");
        for (name, text) in [
            ("model", &openai.model),
            ("max_tokens_field", &openai.max_tokens_field),
        ] {
            if text.trim().is_empty() {
                return Err(Error::new(format!("{key}.{name}"), "it is blank"));
            }
        }
        if openai.max_tokens == 0 {
            return Err(Error::new(
                format!("{key}.max_tokens"),
                "it must be at least 1",
            ));
        }
        if openai
            .temperature
            .is_some_and(|degree| !(0.0..=2.0).contains(&degree))
        {
            return Err(Error::new(
                format!("{key}.temperature"),
                "give a number from 0 to 2",
            ));
        }
        Prompts::read(&key, openai)?;
        Endpoint::of_model(&key, openai)?;
    }
    Ok(())
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

fn check_callback(settings: &CallbackSettings) -> Result<(), Error> {
    callback::Address::read(settings).map(|_| ())
}
