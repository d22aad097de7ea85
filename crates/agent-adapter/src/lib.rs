//! The agent adapter connects Concord with agents and people outside of NATS. It hosts agents ([`hosted_agent`]), decides
//! whom messages wake ([`activation`]), and notifies people by email and webhook.
//!
//! A hosted agent is a program on standard input and output, a server that is sent messages, or a model behind an
//! OpenAI-compatible API. Any replica can handle any message, because the inbox is a shared durable consumer.

use std::sync::Arc;

use concord_embedding::Embedder;
use concord_runtime::Directory;
use concord_runtime::service::api::{self, answer};
use concord_runtime::service::{Binder, Run, ServiceRunner};
use concord_wire::subject::Service;

pub use case_cache::CaseCache;
pub use context::AdapterContext;
pub use metrics::AdapterMetrics;
pub use settings::{
    AdapterSettings, BreakerSettings, BudgetSettings, CallbackSettings, CoordinationSettings,
    EmailSettings, EmbeddingServer, Error as SettingsError, HostedAgent, HttpAgent, LoopSettings,
    NotifySettings, OpenAiAgent, Tls, WakeSettings, WebhookSettings,
};

pub mod activation;
mod case_cache;
mod context;
mod coordination;
pub mod hosted_agent;
mod metrics;
mod notify;
mod settings;

use activation::{context_window, wake};
use hosted_agent::callback::CallbackAddress;
use hosted_agent::{Description, ReplyLoops, budget, registration};
use settings::CheckedSettings;

/// The service.
pub struct AgentAdapter;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Run for AgentAdapter {
    const SERVICE: Service = Service::AgentAdapter;
    const ABOUT: &'static str = "Hosts agents that are programs, servers or models, and notifies people by email and webhook";
    type Own = AdapterSettings;

    fn check(own: &AdapterSettings) -> Result<(), AnyError> {
        settings::parse(own).map_err(SettingsError::into_refusal)?;
        Ok(())
    }

    fn check_files(own: &AdapterSettings) -> Result<(), AnyError> {
        Embedder::open(&own.wake.embedding())?;
        Ok(())
    }

    async fn start(mut runner: ServiceRunner, own: AdapterSettings) -> Result<(), AnyError> {
        let CheckedSettings {
            agents,
            callback,
            embedding_server,
            email,
            webhook,
        } = settings::parse(&own)?;
        let directory = Directory::follow(&runner);
        let adapter = AdapterContext::new(runner.context());
        let bounds = own.loops.bounds();
        let loops = Arc::new(ReplyLoops::new(&adapter, bounds));
        let budgets = budget::budgets(&runner.broker, &adapter.metrics, &own.budgets);
        let address = callback.map(CallbackAddress::new).transpose()?;
        let hosts =
            hosted_agent::start(&runner, agents, &budgets, address, &adapter, &loops).await?;
        let cards = hosts.iter().map(|host| host.agent.card()).collect();
        registration::start(&runner, cards, &directory);
        coordination::start(&runner, &own.coordination, &directory).await?;
        let wake = &own.wake;
        let window = usize::from(wake.context_messages);
        runner.answer("context", context_window::verb(&adapter, window));
        let informed = hosts.iter().filter(|host| host.hears_news());
        let informed = informed.map(|host| host.agent.agent_id.clone()).collect();
        wake::start(
            &runner,
            (wake, informed),
            embedding_server,
            &directory,
            &adapter,
            bounds,
        )
        .await?;
        notify::start(&runner, &adapter, &own.notify, email, webhook);
        // Hosted agents have inboxes of their own: what is addressed to the adapter itself is for nobody.
        let context = runner.context().clone();
        runner.handle_no_messages(&context);
        runner.answer(
            "agents",
            api::verb(hosts, |hosts, _| async move {
                let hosted: Vec<Description> = hosts.iter().map(|host| host.describe()).collect();
                answer(&hosted)
            }),
        );
        Ok(())
    }
}
