//! The agent adapter: speaks with what is not NATS. It hosts agents, and notifies people ([`notify`]).
//!
//! A hosted agent is a program on standard input and output ([`program`]), a server that is sent messages ([`http`]), or a
//! model behind an OpenAI-compatible API ([`openai`]). The adapter reads the agent's messages from the broker, lets them in as
//! many at a time as the settings allow, urgent ones first ([`concurrency_limit`]), keeps to the provider's budget ([`budget`]), stops
//! asking an agent that fails again and again ([`call_policy`]), and publishes the answers. Any replica can take any message: the
//! inbox is a shared durable consumer.

use std::sync::Arc;

use concord_runtime::service::api::{Answer, answer};
use concord_runtime::service::{Run, ServiceRunner};
use concord_runtime::{Aggregates, Directory};
use concord_wire::subject::{Lane, Service};
use tokio::net::TcpListener;

pub use coordination::CoordinationSettings;
pub use notify::settings::{EmailSettings, NotifySettings, Tls, WebhookSettings};
pub use settings::{
    AdapterSettings, BreakerSettings, BudgetSettings, CallbackSettings, HostedAgent, HttpAgent,
    LoopSettings, OpenAiAgent,
};
pub use wake::settings::{EmbeddingServer, WakeSettings};

mod answer_type;
mod budget;
mod call_policy;
mod callback;
mod case_cache;
mod concurrency_limit;
mod coordination;
mod decode;
mod encode;
mod endpoint;
mod failure;
mod hosted_agent;
mod http;
mod inbox;
mod notify;
mod openai;
mod pool;
mod program;
mod registration;
mod reply_loops;
mod settings;
mod spans;
mod wake;

use hosted_agent::{Host, Shared};

/// The service.
pub struct AgentAdapter;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Run for AgentAdapter {
    const SERVICE: Service = Service::AgentAdapter;
    const ABOUT: &'static str = "Hosts agents that are programs, servers or models, and notifies people by email and webhook";
    type Own = AdapterSettings;

    fn check(own: &AdapterSettings) -> Result<(), AnyError> {
        settings::check::check(own)?;
        Ok(notify::check(&own.notify)?)
    }

    async fn start(shell: ServiceRunner, own: AdapterSettings) -> Result<(), AnyError> {
        let directory = Directory::follow(&shell);
        let cases = Arc::new(case_cache::Cases::new(&shell).await?);
        let conversations = Arc::new(Aggregates::new(shell.ports.clone(), shell.work.cached_max));
        let loops = Arc::new(reply_loops::Loops::new(
            &shell,
            own.loops.bounds(),
            &conversations,
        ));
        let hosts = host_all(&shell, &own, &cases, &loops).await?;
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
        wake::start(&shell, &own.wake, known).await?;
        notify::start(&shell, &own.notify)?;
        shell.answer(
            "agents",
            Arc::new(move |_| {
                let hosted: Vec<hosted_agent::Description> =
                    hosts.iter().map(|host| host.describe()).collect();
                let listed: Answer = Box::pin(async move { answer(&hosted) });
                listed
            }),
        );
        Ok(())
    }
}

async fn host_all(
    shell: &ServiceRunner,
    own: &AdapterSettings,
    cases: &Arc<case_cache::Cases>,
    loops: &Arc<reply_loops::Loops>,
) -> Result<Vec<Arc<Host>>, AnyError> {
    let shared = Arc::new(Shared {
        shell: shell.clone(),
        cases: Arc::clone(cases),
        budgets: budget::budgets(shell, &own.budgets),
        address: callback::Address::read(&own.callback)?.map(Arc::new),
        awaited: callback::Awaited::default(),
        loops: Arc::clone(loops),
    });
    if let Some(address) = &shared.address {
        let listener = TcpListener::bind(address.listen).await?;
        let hosted = own.agents.iter().filter(|agent| agent.http.is_some());
        let hosted = hosted.map(|agent| (agent.agent_id.clone(), agent.dialect));
        shell.spawn(callback::serve(
            shell.clone(),
            listener,
            Arc::clone(address),
            hosted.collect(),
        ));
    }
    let mut hosts = Vec::new();
    for agent in own.agents.clone() {
        let host = Arc::new(Host::new(agent, &shared)?);
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
