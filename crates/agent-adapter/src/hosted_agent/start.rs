//! Starts the hosted agents of a replica.

use std::sync::Arc;

use concord_runtime::NatsPorts;
use concord_runtime::service::ServiceRunner;
use concord_wire::subject::Lane;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::agent_caller::OutboundCaller;
use super::budget::Budgets;
use super::callback::{self, AsyncAnswers, CallbackAddress, PendingAnswers};
use super::endpoint::Endpoint;
use super::host::{Host, HostConfig, Runner};
use super::inbox::InboxHandler;
use super::openai::Model;
use super::pool::Pool;
use super::reply_loops::ReplyLoops;
use crate::AnyError;
use crate::context::AdapterContext;
use crate::metrics::ProgramLabel;
use crate::settings::{CheckedAgent, Error as SettingsError, RunnerConfig};

/// A hosted agent as it runs in production.
pub(crate) type ProductionHost = Host<NatsPorts, OutboundCaller>;

/// Hosts all agents, and listens for answers that come later where the settings say an address.
pub(crate) async fn start(
    runner: &ServiceRunner,
    agents: Vec<CheckedAgent>,
    budgets: &Budgets,
    address: Option<CallbackAddress>,
    adapter: &AdapterContext<NatsPorts>,
    loops: &Arc<ReplyLoops<NatsPorts>>,
) -> Result<Vec<Arc<ProductionHost>>, AnyError> {
    let address = address.map(Arc::new);
    let pending = PendingAnswers::default();
    if let Some(address) = &address {
        let listener = listener(address).await?;
        let servers = agents.iter().map(|agent| &agent.settings);
        let servers = servers.filter(|agent| agent.http.is_some());
        let dialects = servers.map(|agent| (agent.agent_id.clone(), agent.dialect));
        runner.spawn(callback::serve(
            runner.clone(),
            listener,
            Arc::clone(address),
            pending.clone(),
            dialects.collect(),
        ));
    }
    let mut hosts = Vec::new();
    for CheckedAgent {
        settings,
        runner: config,
    } in agents
    {
        let budget = settings.provider.as_ref();
        let budget = budget.and_then(|provider| budgets.get(provider)).cloned();
        let answers = address.as_ref().map(|address| AsyncAnswers {
            address: Arc::clone(address),
            pending: pending.clone(),
            permits: Semaphore::new(settings.queue_max.clamp(1, Semaphore::MAX_PERMITS)),
        });
        if config.is_server() && address.is_some() {
            let agent = settings.agent_id.clone();
            runner.spawn(pending.clone().listen(runner.clone(), agent));
        }
        let label = ProgramLabel {
            reason: settings.agent_id.to_string(),
        };
        let started = adapter.metrics.program_starts.get_or_create(&label).clone();
        let (messages, caller) = match config {
            RunnerConfig::Program => {
                let pool = Pool::new(settings.clone(), started);
                (Runner::Program, OutboundCaller::Program(Box::new(pool)))
            }
            RunnerConfig::Server(endpoint) => {
                let endpoint = Endpoint::new(endpoint);
                (Runner::Server, OutboundCaller::Server(Box::new(endpoint)))
            }
            RunnerConfig::Model(openai, endpoint, templates) => {
                let model = Model::new(*openai, templates);
                let endpoint = Endpoint::new(endpoint);
                let caller = OutboundCaller::Server(Box::new(endpoint));
                (Runner::Model(Box::new(model)), caller)
            }
        };
        let config = HostConfig::new(settings, messages);
        let host = Host::with_budget(config, caller, adapter, loops, budget);
        let host = Arc::new(host.with_async_answers(answers));
        consume_inbox(runner, &host);
        hosts.push(host);
    }
    Ok(hosts)
}

async fn listener(address: &CallbackAddress) -> Result<TcpListener, SettingsError> {
    let listening = TcpListener::bind(address.listen).await;
    listening.map_err(|error| {
        let message = format!("nothing can listen on {}: {error}", address.listen);
        SettingsError::new("callback.listen", message)
    })
}

fn consume_inbox(runner: &ServiceRunner, host: &Arc<ProductionHost>) {
    let layout = &runner.broker.layout;
    for lane in [Lane::Normal, Lane::Urgent] {
        for (stream, name, filter) in layout.agent_inboxes(lane, &host.agent.agent_id) {
            let consumer = (layout.stream_name(stream), name, filter);
            let handler = InboxHandler(Arc::clone(host));
            runner.consume_many_from(consumer, host.in_flight_max(), handler);
        }
    }
}
