//! A replica of the agent adapter: its own handler of the messages to the agent, on the ports of this world.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use concord_agent_adapter::AdapterContext;
use concord_agent_adapter::hosted_agent::{Host, HostConfig, InboxHandler, ReplyLoops, Runner};
use concord_domain::resilience::breaker::BreakerState;
use concord_runtime::delivery::settle::{Settlement, settle};
use concord_runtime::service::ServiceContext;
use concord_runtime::service::metrics::Metrics;
use concord_runtime::service::settings::WorkSettings;
use concord_wire::subject::Service;

use super::caller::SimCaller;
use super::ports::HostedPorts;
use super::setup::Setup;
use super::world::{Assignment, Request, Shared, What};
use crate::executor::Incarnation;
use crate::faults::InjectedBug;

/// How long an open breaker stays so by the injected bug: longer than any world lasts.
const FOR_EVER_MS: u64 = 1_000_000_000;

/// What a replica has in memory, and loses when it dies.
pub(crate) struct Process {
    context: ServiceContext<HostedPorts>,
    handler: InboxHandler<HostedPorts, SimCaller>,
}

impl Process {
    /// None if the agent could not be hosted with its settings.
    pub(crate) fn new(incarnation: Incarnation, world: Shared, setup: &Arc<Setup>) -> Option<Self> {
        let bug = world.lock().injected_bug;
        let ports = HostedPorts::new(incarnation, world.clone());
        let work = Arc::new(WorkSettings::default());
        let service = Service::AgentAdapter;
        let context = ServiceContext::new(service, ports, Metrics::default(), work);
        let adapter = AdapterContext::new(&context);
        let loops = Arc::new(ReplyLoops::new(&adapter, None));
        let caller = SimCaller {
            incarnation,
            world,
            setup: Arc::clone(setup),
        };
        let config = configured(setup, bug)?;
        let host = Arc::new(Host::new(config, caller, &adapter, &loops));
        Some(Self {
            context,
            handler: InboxHandler(host),
        })
    }

    /// The state of the agent's breaker.
    pub(crate) fn standing(&self) -> BreakerState {
        self.handler.0.breaker()
    }

    /// Handles a delivery, from its arrival to its acknowledgement.
    pub(crate) async fn work(self: Arc<Self>, assignment: Assignment) {
        let Assignment {
            handling,
            sequence,
            delivery,
        } = assignment;
        let settled = Handling {
            process: &self,
            number: handling,
            future: Box::pin(settle(&self.context, &self.handler, &delivery)),
        };
        let (settlement, _) = settled.await;
        let ports = &self.context.ports;
        ports.world.lock().end(handling);
        let request = match settlement {
            Settlement::Acknowledge | Settlement::Terminate => Request::Acknowledge { sequence },
            Settlement::PutBack(wait) => Request::PutBack {
                sequence,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            },
        };
        // When this is lost the delivery comes again, and nobody is told anything twice.
        let _ = ports.send(request).await;
    }
}

/// The agent as its settings say, but for an injected bug.
fn configured(setup: &Setup, bug: Option<InjectedBug>) -> Option<HostConfig> {
    let agent = setup.settings()?;
    let runner = Runner::of(&agent).ok()?;
    let mut config = HostConfig::new(agent, runner);
    debug_assert_eq!(config.breaker, setup.rules, "the breaker has other rules");
    match bug {
        // Each probe makes way for the next at once.
        Some(InjectedBug::HalfOpenFlood) => config.breaker.probe_ms = 0,
        Some(InjectedBug::AsksWhileOpen) => {
            config.breaker.open_ms = 0;
            config.breaker.open_max_ms = 0;
        }
        Some(InjectedBug::NeverHalfOpen) => {
            config.breaker.open_ms = FOR_EVER_MS;
            config.breaker.open_max_ms = FOR_EVER_MS;
        }
        Some(InjectedBug::QueueUnbounded) => config.agent.queue_max += 1,
        _ => {}
    }
    Some(config)
}

/// The handling of one delivery. While it runs the world knows which one it is, for calls and messages are made in its name.
struct Handling<'a, T> {
    process: &'a Process,
    number: u64,
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
}

impl<T> Handling<'_, T> {
    /// Records how many messages are worked on and wait.
    fn record_load(&self, current: Option<u64>) {
        let (working, waiting) = self.process.handler.0.load();
        let HostedPorts {
            world, incarnation, ..
        } = &self.process.context.ports;
        let mut world = world.lock();
        world.current = current;
        world.keep_if_new(*incarnation, What::Load { working, waiting });
    }
}

impl<T> Future for Handling<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.record_load(Some(self.number));
        let polled = self.future.as_mut().poll(context);
        self.record_load(None);
        polled
    }
}
