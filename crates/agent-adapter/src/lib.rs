//! The agent adapter: speaks with what is not NATS. It hosts agents, and notifies people ([`notify`]).
//!
//! A hosted agent is a program on standard input and output ([`program`](hosted_agent::program)), a server that is sent messages ([`http`](hosted_agent::http)), or a
//! model behind an OpenAI-compatible API ([`openai`](hosted_agent::openai)). The adapter reads the agent's messages from the broker, lets them in as
//! many at a time as the settings allow, urgent ones first ([`concurrency_limit`](hosted_agent::concurrency_limit)), keeps to the provider's budget ([`budget`](hosted_agent::budget)), stops
//! asking an agent that fails again and again ([`call_policy`](hosted_agent::call_policy)), and publishes the answers. Any replica can take any message: the
//! inbox is a shared durable consumer.

use std::sync::Arc;

use concord_runtime::service::api::{Answer, answer};
use concord_runtime::service::{Run, ServiceRunner};
use concord_runtime::{Aggregates, Directory};
use concord_wire::subject::{Lane, Service};
use tokio::net::TcpListener;

pub use settings::{
    AdapterSettings, BreakerSettings, BudgetSettings, CallbackSettings, CoordinationSettings,
    EmailSettings, EmbeddingServer, HostedAgent, HttpAgent, LoopSettings, NotifySettings,
    OpenAiAgent, Tls, WakeSettings, WebhookSettings,
};

mod activation;
mod case_cache;
mod coordination;
mod hosted_agent;
mod notify;
mod settings;

use activation::wake;
use hosted_agent::host::{self, Host, Shared};
use hosted_agent::{budget, callback, inbox, registration, reply_loops};
use settings::{CheckedAgent, CheckedSettings};

/// The service.
pub struct AgentAdapter;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Run for AgentAdapter {
    const SERVICE: Service = Service::AgentAdapter;
    const ABOUT: &'static str = "Hosts agents that are programs, servers or models, and notifies people by email and webhook";
    type Own = AdapterSettings;

    fn check(own: &AdapterSettings) -> Result<(), AnyError> {
        settings::parse(own)?;
        Ok(())
    }

    async fn start(shell: ServiceRunner, own: AdapterSettings) -> Result<(), AnyError> {
        let CheckedSettings {
            agents,
            callback,
            embedding_server,
            email,
            webhook,
        } = settings::parse(&own)?;
        let directory = Directory::follow(&shell);
        let cases = Arc::new(case_cache::Cases::new(&shell).await?);
        let conversations = Arc::new(Aggregates::new(shell.ports.clone(), shell.work.cached_max));
        let loops = Arc::new(reply_loops::Loops::new(
            &shell,
            own.loops.bounds(),
            &conversations,
        ));
        let shared = Arc::new(Shared {
            shell: shell.clone(),
            cases: Arc::clone(&cases),
            budgets: budget::budgets(&shell, &own.budgets),
            address: callback
                .map(callback::Address::new)
                .transpose()?
                .map(Arc::new),
            awaited: callback::Awaited::default(),
            loops: Arc::clone(&loops),
        });
        let hosts = host_all(agents, &shared).await?;
        registration::start(
            &shell,
            hosts.iter().map(|host| host.agent.card()).collect(),
            &directory,
        );
        coordination::start(&shell, &own.coordination, &directory).await?;
        let known = wake::Known {
            directory,
            conversations,
            cases,
            bounds: loops.bounds(),
        };
        wake::start(&shell, &own.wake, embedding_server, known).await?;
        notify::start(&shell, &own.notify, email, webhook);
        shell.answer(
            "agents",
            Arc::new(move |_| {
                let hosted: Vec<host::Description> =
                    hosts.iter().map(|host| host.describe()).collect();
                let listed: Answer = Box::pin(async move { answer(&hosted) });
                listed
            }),
        );
        Ok(())
    }
}

async fn host_all(
    agents: Vec<CheckedAgent>,
    shared: &Arc<Shared>,
) -> Result<Vec<Arc<Host>>, AnyError> {
    let shell = &shared.shell;
    if let Some(address) = &shared.address {
        let listener = TcpListener::bind(address.listen).await?;
        let agents = agents.iter().map(|agent| &agent.settings);
        let hosted = agents.filter(|agent| agent.http.is_some());
        let hosted = hosted.map(|agent| (agent.agent_id.clone(), agent.dialect));
        shell.spawn(callback::serve(
            shell.clone(),
            listener,
            Arc::clone(address),
            hosted.collect(),
        ));
    }
    let mut hosts = Vec::new();
    for agent in agents {
        let host = Arc::new(Host::new(agent, shared));
        if host.agent.http.is_some() && shared.address.is_some() {
            shell.spawn(
                shared
                    .awaited
                    .clone()
                    .listen(shell.clone(), host.agent.agent_id.clone()),
            );
        }
        for lane in [Lane::Normal, Lane::Urgent] {
            let (stream, name, filter) =
                shell.broker.layout.agent_inbox(lane, &host.agent.agent_id);
            let consumer = (shell.broker.layout.stream_name(stream), name, filter);
            let inbox = inbox::Inbox {
                host: Arc::clone(&host),
                shell: shell.clone(),
            };
            shell.consume_many_from(consumer, host.in_flight_max(), inbox);
        }
        hosts.push(host);
    }
    Ok(hosts)
}
