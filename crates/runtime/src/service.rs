//! The life of a service: settings, connection, streams, consumers, health, API, drain.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use concord_domain::{Context, Machine};
use concord_protocol::AgentId;
use concord_protocol::dead::DeadReason;
use concord_protocol::event::Facts;
use concord_protocol::stream::{ConsumerDefinition, ConsumerKind};
use concord_protocol::subject::Service;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broker::Broker;
use crate::bystander::Bystander;
use crate::consume::{Chain, Handler};
use crate::health::{self, Readiness};
use crate::limit::Limits;
use crate::metrics::{Consumer, Metrics, Reason, StepLabels};
use crate::provision::{self, PullConsumer};
use crate::rush::{Rush, Turn};
use crate::settings::{self, Settings, Sources, WorkSettings};
use crate::step::Outcome;
use crate::{Directory, api, ledger, quarantine, shutdown, telemetry, worker};

/// Exit code for settings that cannot be used (`EX_USAGE`).
const EXIT_SETTINGS: u8 = 64;
/// Exit code for a broker that cannot be used (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;

/// How long a starting service asks a broker that does not answer for its streams.
const PROVISION_MAX: Duration = Duration::from_secs(30);
const PROVISION_INTERVAL: Duration = Duration::from_millis(500);

/// What all parts of a running service share. Cheap to clone.
#[derive(Clone)]
pub struct Shell {
    /// Which service this is.
    pub service: Service,
    /// The broker.
    pub broker: Broker,
    /// What is counted.
    pub metrics: Metrics,
    /// How work is done.
    pub work: Arc<WorkSettings>,
    /// Cancelled when the service is to stop.
    pub stop: CancellationToken,
    pub(crate) limits: Arc<Limits>,
    /// Whether spans are sent to a collector.
    pub(crate) records_spans: bool,
    /// Who is registered, where the service follows that.
    directory: Arc<OnceLock<Arc<Directory>>>,
    tasks: TaskTracker,
    consumers: Arc<Mutex<Bindings>>,
    verbs: Arc<Mutex<Vec<(&'static str, api::Verb)>>>,
    ready_lag_max: u64,
    pub(crate) rush: Arc<Rush>,
}

#[derive(Default)]
struct Bindings {
    expected: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl Shell {
    /// Runs `handler` on the service's own consumers of a kind until the service stops.
    pub fn consume<H: Handler>(&self, kind: ConsumerKind, handler: H) {
        self.consume_many(kind, self.work.in_flight_max, handler);
    }

    /// The same with another number of deliveries under way at once, for handlers that mostly wait.
    pub fn consume_many<H: Handler>(&self, kind: ConsumerKind, in_flight_max: usize, handler: H) {
        let definitions = self.broker.layout.consumers_of(kind).into_iter();
        let consumers = definitions.map(|definition| {
            let turn = Turn::of(&definition);
            let ConsumerDefinition { stream, name, filter, .. } = definition;
            ((stream, name, filter), turn)
        });
        self.run_consumers(consumers, in_flight_max, handler);
    }

    /// Answers the messages to a service that acts on none.
    pub fn consume_no_messages(&self) {
        self.consume(ConsumerKind::Inbox(self.service), Bystander(self.clone()));
        self.consume(ConsumerKind::UrgentInbox(self.service), Bystander(self.clone()));
    }

    /// Runs `handler` on any consumer until the service stops.
    pub fn consume_from<H: Handler>(&self, stream: String, name: String, filter: String, handler: H) {
        self.run_consumers([((stream, name, filter), Turn::Apart)], self.work.in_flight_max, handler);
    }

    /// The same with another number of deliveries under way at once, for handlers that mostly wait.
    pub fn consume_many_from<H: Handler>(&self, consumer: (String, String, String), in_flight_max: usize, handler: H) {
        self.run_consumers([(consumer, Turn::Apart)], in_flight_max, handler);
    }

    fn run_consumers<H: Handler>(
        &self,
        consumers: impl IntoIterator<Item = ((String, String, String), Turn)>,
        in_flight_max: usize,
        handler: H,
    ) {
        let in_flight_max = in_flight_max.max(1);
        let (handler, permits) = (Arc::new(handler), Arc::new(Semaphore::new(in_flight_max)));
        let ack_wait = Duration::from_millis(self.work.ack_wait_ms);
        for ((stream, name, filter), turn) in consumers {
            self.bindings(|bindings| bindings.expected.insert(name.clone()));
            let consumer =
                PullConsumer { stream, name, filter, ack_wait, ack_pending_max: 20_000, in_flight_max, turn };
            if quarantine::concerns(self, &consumer) {
                self.tasks.spawn(quarantine::watch(self.clone(), consumer.clone()));
            }
            let (handler, permits) = (Arc::clone(&handler), Arc::clone(&permits));
            self.tasks.spawn(worker::run(self.clone(), consumer, handler, permits, self.stop.clone()));
        }
    }

    /// From now on the service knows who is registered.
    pub(crate) fn knows(&self, directory: Arc<Directory>) {
        if self.directory.set(directory).is_err() {
            tracing::debug!("It is known already who is registered.");
        }
    }

    /// Whoever is registered, as far as the service follows that.
    pub(crate) fn registered(&self) -> Vec<AgentId> {
        let mut registered = Vec::new();
        if let Some(directory) = self.directory.get() {
            directory.each(|agent, _| registered.push(agent.clone()));
        }
        registered
    }

    /// Waits while thousands of deadlines are due, for work that can wait for them, but no longer than a second.
    pub async fn give_way(&self) {
        self.rush.give_way().await;
    }

    /// Runs something else until it ends; the service waits for it before it stops.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Answers a verb of the service's API. To be called before the service has started.
    pub fn answer(&self, verb: &'static str, handler: api::Verb) {
        self.verbs.lock().unwrap_or_else(PoisonError::into_inner).push((verb, handler));
    }

    pub(crate) fn take_verbs(&self) -> Vec<(&'static str, api::Verb)> {
        std::mem::take(&mut *self.verbs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn bound(&self, consumer: &str) {
        self.bindings(|bindings| bindings.bound.insert(consumer.to_owned()));
    }

    fn bindings<T>(&self, change: impl FnOnce(&mut Bindings) -> T) -> T {
        change(&mut self.consumers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the service can do its work.
    pub fn readiness(&self) -> Readiness {
        let mut reasons = Vec::new();
        if self.metrics.broker_up.get() == 0 || !self.broker.is_connected() {
            reasons.push("the broker does not answer".to_owned());
        }
        let (unbound, expected) = self.bindings(|bindings| {
            let unbound: Vec<String> = bindings.expected.difference(&bindings.bound).cloned().collect();
            (unbound, bindings.expected.clone())
        });
        reasons.extend(unbound.into_iter().map(|name| format!("the consumer {name} is not bound yet")));
        for consumer in expected {
            let lag = self.metrics.lag.get_or_create(&Consumer { consumer: consumer.clone() }).get();
            if u64::try_from(lag).unwrap_or(0) > self.ready_lag_max {
                reasons.push(format!("{lag} messages wait in the consumer {consumer}"));
            }
        }
        Readiness { ready: reasons.is_empty(), reasons }
    }

    /// Counts what a step came to.
    pub fn count_step<M: Machine>(&self, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Appended { fact, .. } => (*fact).into(),
            Outcome::Ignored(reason) => format!("ignored_{}", reason.as_str()).into(),
            Outcome::Rejected(_) => "rejected".into(),
        };
        let aggregate = <M::Event as Facts>::AGGREGATE.as_str();
        self.metrics.steps.get_or_create(&StepLabels { aggregate, outcome }).inc();
    }

    pub(crate) fn count_dead(&self, reason: DeadReason) {
        self.metrics.dead.get_or_create(&Reason { reason: reason.as_str().to_owned() }).inc();
    }

    /// Counts what was no input.
    pub fn count_ignored(&self, reason: &str) {
        self.metrics.ignored.get_or_create(&Reason { reason: reason.to_owned() }).inc();
    }

    /// The context of a decision made now because of a message.
    pub fn message_context(message_id: concord_protocol::MessageId) -> Context {
        Context::of_message(crate::clock::now(), message_id)
    }

    /// The context of a decision made now because of a fact.
    pub fn fact_context(event_id: concord_protocol::MessageId) -> Context {
        Context::of_fact(crate::clock::now(), event_id)
    }
}

/// Arguments of every service.
#[derive(Debug, Parser)]
#[command(version, about, long_about = None)]
pub struct Arguments {
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE", env = "CONCORD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Change one setting, for example --set work.drain_ms=5000.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Check the settings and exit.
    #[arg(long)]
    pub check_config: bool,
    /// Print the settings as they are in force, as TOML, and exit.
    #[arg(long)]
    pub print_config: bool,
}

/// A service: what it runs once the shell is there.
pub trait Run: 'static {
    /// Which service.
    const SERVICE: Service;
    /// What it is, for `--help`.
    const ABOUT: &'static str;
    /// Settings of its own.
    type Own: Serialize + DeserializeOwned + Default + JsonSchema + Clone + Send + 'static;

    /// Refuses settings of its own that could not work, before anything is bound.
    fn check(_own: &Self::Own) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Starts consumers and whatever else it does; returns as soon as they are started.
    fn start(
        shell: Shell,
        own: Self::Own,
    ) -> impl Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>>;
}

/// The whole `main` of a service.
pub fn main<R: Run>() -> ExitCode {
    let command = <Arguments as clap::CommandFactory>::command().name(R::SERVICE.as_str()).about(R::ABOUT);
    let arguments =
        match command.try_get_matches().and_then(|m| <Arguments as clap::FromArgMatches>::from_arg_matches(&m)) {
            Ok(arguments) => arguments,
            Err(error) => {
                // A write error means that nobody reads; there is nobody to tell.
                let _ = error.print();
                return if error.use_stderr() { ExitCode::from(EXIT_SETTINGS) } else { ExitCode::SUCCESS };
            }
        };
    let settings: Settings<R::Own> =
        match settings::read(&Sources::of_process(arguments.config.clone(), arguments.set.clone())) {
            Ok(settings) => settings,
            Err(error) => return fail(EXIT_SETTINGS, &error),
        };
    if arguments.print_config {
        println!("{}", serde_json::to_string_pretty(&settings).unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if let Err(error) = R::check(&settings.service) {
        return fail(EXIT_SETTINGS, &*error);
    }
    if arguments.check_config {
        println!("the settings are good");
        return ExitCode::SUCCESS;
    }
    let threads = settings.work.threads.get();
    match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime.block_on(run::<R>(settings)),
        Err(error) => fail(1, &error),
    }
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {}", Chain(error));
    ExitCode::from(code)
}

async fn run<R: Run>(settings: Settings<R::Own>) -> ExitCode {
    let _telemetry = match telemetry::start(R::SERVICE.as_str(), &settings.telemetry) {
        Ok(telemetry) => telemetry,
        Err(error) => return fail(EXIT_SETTINGS, &error),
    };
    let listener = match listener(&settings).await {
        Ok(listener) => listener,
        Err(error) => return fail(EXIT_SETTINGS, &error),
    };
    let stop = match shutdown::on_signal() {
        Ok(stop) => stop,
        Err(error) => return fail(1, &error),
    };
    let name = format!("concord-{}", R::SERVICE);
    let connect = Broker::connect(&name, &settings.broker, &settings.storage, true);
    let broker = tokio::select! {
        broker = connect => match broker {
            Ok(broker) => broker,
            Err(error) => return fail(EXIT_UNAVAILABLE, &error),
        },
        () = stop.cancelled() => return ExitCode::SUCCESS,
    };
    if let Err(error) = provision(&broker, &stop).await {
        return fail(EXIT_UNAVAILABLE, &error);
    }
    let shell = Shell {
        service: R::SERVICE,
        broker,
        metrics: Metrics::default(),
        limits: Arc::new(Limits::new(&settings.work)),
        records_spans: !settings.telemetry.otlp_endpoint.is_empty(),
        directory: Arc::default(),
        work: Arc::new(settings.work.clone()),
        stop,
        tasks: TaskTracker::new(),
        consumers: Arc::default(),
        verbs: Arc::default(),
        ready_lag_max: settings.http.ready_lag_max,
        rush: Arc::default(),
    };
    serve::<R>(shell, listener, settings).await
}

/// Creates and compares the streams. A broker that goes away or comes back at this moment is asked again; one that says
/// no for longer will not change its mind.
async fn provision(broker: &Broker, stop: &CancellationToken) -> Result<(), ledger::Error> {
    let begun = Instant::now();
    loop {
        let error = match provision::streams(broker).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if begun.elapsed() > PROVISION_MAX || stop.is_cancelled() {
            return Err(error);
        }
        tracing::warn!(error = %Chain(&error), "The streams could not be looked at; trying again.");
        tokio::select! {
            () = tokio::time::sleep(PROVISION_INTERVAL) => {}
            () = stop.cancelled() => {}
        }
    }
}

async fn listener<S>(settings: &Settings<S>) -> std::io::Result<Option<TcpListener>> {
    if !settings.http.enabled {
        return Ok(None);
    }
    TcpListener::bind(&settings.http.address).await.map(Some)
}

async fn serve<R: Run>(shell: Shell, listener: Option<TcpListener>, settings: Settings<R::Own>) -> ExitCode {
    let http = listener.as_ref().and_then(|listener| listener.local_addr().ok()).map(|address| address.to_string());
    if let Some(listener) = listener {
        let serving = health::serve(shell.clone(), listener, shell.stop.clone());
        shell.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "The HTTP endpoint ended.");
            }
        });
    }
    let layout = &shell.broker.layout;
    let all = layout.consumers().into_iter().chain(layout.adapter_consumers());
    let own = all.filter(|consumer| consumer.service == R::SERVICE);
    shell.spawn(health::watch(shell.clone(), Arc::new(own.collect()), shell.stop.clone()));
    if let Err(error) = R::start(shell.clone(), settings.service.clone()).await {
        return fail(1, &*error);
    }
    let registration = match api::register(&shell, http.as_deref()).await {
        Ok(registration) => registration,
        Err(error) => return fail(EXIT_UNAVAILABLE, &*error),
    };
    tracing::info!(service = %R::SERVICE, http = http.as_deref().unwrap_or("off"), "Started.");
    shell.stop.cancelled().await;
    drop(registration);
    shell.tasks.close();
    let drained = tokio::time::timeout(Duration::from_millis(shell.work.drain_ms), shell.tasks.wait()).await;
    // Acknowledgements still in the client's buffer go out before the process ends.
    let flushed = tokio::time::timeout(Duration::from_secs(2), shell.broker.client.flush()).await;
    match (drained, flushed) {
        (Ok(()), Ok(Ok(()))) => tracing::info!("Drained."),
        (Ok(()), _) => tracing::warn!("Drained, but the broker did not take the last messages."),
        (Err(_), _) => tracing::warn!("The drain took too long; what was under way will be delivered again."),
    }
    ExitCode::SUCCESS
}
