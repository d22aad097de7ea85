//! The life of a service: settings, connection, streams, consumers, health, API, drain.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use concord_wire::subject::Service;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{ServiceContext, ServiceRunner, archived, hand_off};
use crate::broker::{self, Broker, Unavailable};
use crate::context::metrics::Metrics;
use crate::error_chain::ErrorChain;
use crate::settings::{self, Settings, Sources};
use crate::{
    NatsPorts, broker::provision, service::api, service::health, service::shutdown, telemetry,
};

/// Exit code for settings that cannot be used (`EX_USAGE`).
const EXIT_SETTINGS: u8 = 64;
/// Exit code for a broker that cannot be used, and for files that cannot be read (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;

/// How long a starting service asks a broker that does not answer for its streams: a cluster in trouble may elect for longer than half a minute.
const PROVISION_MAX: Duration = Duration::from_secs(120);
const PROVISION_INTERVAL: Duration = Duration::from_millis(500);

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

/// A service: what it runs once it is connected.
pub trait Run: 'static {
    /// The service that this is.
    const SERVICE: Service;
    /// What it is, for `--help`.
    const ABOUT: &'static str;
    /// Settings of its own.
    type Own: Serialize + DeserializeOwned + Default + JsonSchema + Clone + Send + 'static;

    /// Refuses settings of its own that could not work, before anything is bound; with [`settings::Error::File`] those whose files cannot
    /// be used.
    fn check(_own: &Self::Own) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Looks at the files that settings of its own name and that are read when it starts; for `--check-config`.
    fn check_files(_own: &Self::Own) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Starts consumers and whatever else it does; returns as soon as they are started.
    fn start(
        runner: ServiceRunner,
        own: Self::Own,
    ) -> impl Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>>;
}

/// The whole `main` of a service.
pub fn main<R: Run>() -> ExitCode {
    let command = <Arguments as clap::CommandFactory>::command()
        .name(R::SERVICE.as_str())
        .about(R::ABOUT);
    let arguments = match command
        .try_get_matches()
        .and_then(|m| <Arguments as clap::FromArgMatches>::from_arg_matches(&m))
    {
        Ok(arguments) => arguments,
        Err(error) => {
            // A write error means that nobody reads; there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(EXIT_SETTINGS)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let settings: Settings<R::Own> = match settings::read(&Sources::of_process(
        arguments.config.clone(),
        arguments.set.clone(),
    )) {
        Ok(settings) => settings,
        Err(error) => return fail(EXIT_SETTINGS, &error),
    };
    if arguments.print_config {
        return match settings::to_toml(&settings) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => fail(1, &error),
        };
    }
    let consistent = (settings.broker.check())
        .and(settings.storage.check())
        .and(settings.work.check())
        .and(settings.http.check());
    if let Err(error) = consistent {
        return refuse(&error);
    }
    if let Err(error) = telemetry::check(&settings.telemetry) {
        return refuse(&error);
    }
    if let Err(error) = R::check(&settings.service) {
        return refuse(&*error);
    }
    if arguments.check_config {
        return checked_files::<R>(&settings);
    }
    let threads = settings.work.threads.get();
    match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(run::<R>(settings)),
        Err(error) => fail(1, &error),
    }
}

/// What `--check-config` says of settings that are good in themselves: a start would read these files.
fn checked_files<R: Run>(settings: &Settings<R::Own>) -> ExitCode {
    if let Err(error) = broker::check_files(&settings.broker) {
        return fail(EXIT_UNAVAILABLE, &error);
    }
    if let Err(error) = settings.storage.check_files() {
        return refuse(&error);
    }
    if let Err(error) = R::check_files(&settings.service) {
        return fail(EXIT_UNAVAILABLE, &*error);
    }
    println!("the settings are good");
    ExitCode::SUCCESS
}

/// Ends a process whose settings cannot be used, or a file that they name.
fn refuse(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    let of_settings = error.downcast_ref::<settings::Error>();
    let of_telemetry = error.downcast_ref::<telemetry::Error>();
    let is_of_file = matches!(of_settings, Some(settings::Error::File { .. }))
        || of_telemetry.is_some_and(telemetry::Error::is_of_file);
    let code = if is_of_file {
        EXIT_UNAVAILABLE
    } else {
        EXIT_SETTINGS
    };
    fail(code, error)
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {}", ErrorChain(error));
    ExitCode::from(code)
}

async fn run<R: Run>(settings: Settings<R::Own>) -> ExitCode {
    let drain = Duration::from_millis(settings.work.drain_ms);
    let mut telemetry = match telemetry::start(R::SERVICE.as_str(), &settings.telemetry, drain) {
        Ok(telemetry) => telemetry,
        Err(error) => return refuse(&error),
    };
    let listener = match listener(&settings).await {
        Ok(listener) => listener,
        Err(error) => return fail(EXIT_SETTINGS, &error),
    };
    let stop = match shutdown::on_signal() {
        Ok(stop) => stop,
        Err(error) => return fail(1, &error),
    };
    // Whether the process lives is answered before there is a broker: an orchestrator that got no answer would end it.
    let http = HttpEndpoint::open(listener, &stop);
    let name = format!("concord-{}", R::SERVICE);
    let connect = async {
        let (own, storage) = (&settings.broker, &settings.storage);
        let mut broker = Broker::connect(&name, own, storage, true).await?;
        broker.hear_apart(&name, own).await.map(|()| broker)
    };
    let broker = tokio::select! {
        broker = connect => match broker {
            Ok(broker) => broker,
            Err(error) => return fail(EXIT_UNAVAILABLE, &error),
        },
        () = stop.cancelled() => return ExitCode::SUCCESS,
    };
    if let Err(error) = provision(&broker, &http.service, &stop).await {
        return fail(EXIT_UNAVAILABLE, &error);
    }
    let ports = match NatsPorts::new(broker).await {
        Ok(ports) => ports,
        Err(error) => return fail(EXIT_UNAVAILABLE, &error),
    };
    let work = Arc::new(settings.work.clone());
    let metrics = Metrics::with_steps(&ports.step_counters);
    let mut context = ServiceContext::new(R::SERVICE, ports, metrics.clone(), work);
    context.records_spans = !settings.telemetry.otlp_endpoint.is_empty();
    let runner = ServiceRunner::new(context, settings.http.ready_lag_max, stop);
    if let Some(exporter) = telemetry.take_metrics() {
        runner.spawn(exporter.run(move || metrics.text(), runner.stop.clone()));
    }
    serve::<R>(runner, http, settings).await
}

/// Creates and compares the streams. A broker that goes away or comes back at this moment is asked again; one that says
/// no for longer will not change its mind, and streams of another installation stay theirs.
async fn provision(
    broker: &Broker,
    shown: &health::Shown,
    stop: &CancellationToken,
) -> Result<(), Unavailable> {
    let begun = Instant::now();
    shown.waits_for("the streams are not looked at yet".to_owned());
    loop {
        let error = match provision::streams(broker).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let is_over = begun.elapsed() > PROVISION_MAX || provision::is_claimed(&error);
        if is_over || stop.is_cancelled() {
            return Err(error);
        }
        let why = ErrorChain(&error).to_string();
        tracing::warn!(error = %why, "The streams could not be looked at or made; trying again.");
        shown.waits_for(format!("the streams could not be looked at or made: {why}"));
        tokio::select! {
            () = tokio::time::sleep(PROVISION_INTERVAL) => {}
            () = stop.cancelled() => {}
        }
    }
}

async fn listener<S>(settings: &Settings<S>) -> Result<Option<TcpListener>, settings::Error> {
    if !settings.http.enabled {
        return Ok(None);
    }
    let address = &settings.http.address;
    let listening = TcpListener::bind(address).await;
    listening.map(Some).map_err(|error| settings::Error::Value {
        key: "http.address".to_owned(),
        message: format!("nothing can listen on {address}: {error}"),
    })
}

/// The HTTP endpoint, which answers from the beginning and is given the service when there is one.
struct HttpEndpoint {
    address: Option<String>,
    service: health::Shown,
}

impl HttpEndpoint {
    fn open(listener: Option<TcpListener>, stop: &CancellationToken) -> Self {
        let service = health::Shown::default();
        let address = listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
            .map(|address| address.to_string());
        if let Some(listener) = listener {
            let serving = health::serve(service.clone(), listener, stop.clone());
            tokio::spawn(async move {
                if let Err(error) = serving.await {
                    tracing::error!(%error, "The HTTP endpoint ended.");
                }
            });
        }
        Self { address, service }
    }
}

/// Sees the other replicas of this service, and takes what they hand over.
fn follow_replicas(runner: &ServiceRunner) {
    let following = Arc::clone(&runner.replicas);
    let (behind, alone) = (runner.clone(), Arc::clone(&runner.replicas));
    let following = following.follow(runner.broker.clone(), runner.stop.clone(), move || {
        behind.is_behind()
    });
    let receiving = hand_off::receive(runner.clone());
    let taking_back = hand_off::take_back(runner.clone());
    runner.spawn(async move {
        // Without a connection there is nobody to see, and a connection subscribes again by itself.
        // What others refuse is looked at before their beats, which say of what came after it that it was taken.
        let ended = tokio::try_join!(biased; taking_back, receiving, following);
        if let Err(error) = ended {
            tracing::error!(error = %ErrorChain(&error), "This replica works alone.");
            alone.work_alone();
        }
    });
}

async fn serve<R: Run>(
    runner: ServiceRunner,
    http: HttpEndpoint,
    settings: Settings<R::Own>,
) -> ExitCode {
    http.service.set(runner.clone());
    let http = http.address;
    let layout = &runner.broker.layout;
    let all = layout
        .consumers()
        .into_iter()
        .chain(layout.adapter_consumers());
    let own = all.filter(|consumer| consumer.service == R::SERVICE);
    runner.spawn(health::watch(
        runner.clone(),
        Arc::new(own.collect()),
        runner.stop.clone(),
    ));
    follow_replicas(&runner);
    archived::follow(&runner).await;
    if let Err(error) = R::start(runner.clone(), settings.service.clone()).await {
        // What has begun ends first, so that the last line says why.
        runner.stop.cancel();
        let drain = Duration::from_millis(runner.work.drain_ms);
        if tokio::time::timeout(drain, runner.wait_for_tasks())
            .await
            .is_err()
        {
            tracing::warn!("What was begun goes on; it will be delivered again.");
        }
        return fail(EXIT_UNAVAILABLE, &*error);
    }
    let registration = match api::register(&runner, http.as_deref()).await {
        Ok(registration) => registration,
        Err(error) => return fail(EXIT_UNAVAILABLE, &*error),
    };
    tracing::info!(service = %R::SERVICE, http = http.as_deref().unwrap_or("off"), "Started.");
    runner.stop.cancelled().await;
    drop(registration);
    let drain = Duration::from_millis(runner.work.drain_ms);
    let drained = tokio::time::timeout(drain, runner.wait_for_tasks()).await;
    // Acknowledgements and answers still in the clients' buffers go out before the process ends.
    let broker = &runner.broker;
    let flush = async { (broker.client.flush().await, broker.heard.flush().await) };
    let flushed = tokio::time::timeout(Duration::from_secs(2), flush).await;
    match (drained, flushed) {
        (Ok(()), Ok((Ok(()), _))) => tracing::info!("Drained."),
        (Ok(()), _) => tracing::warn!("Drained, but the broker did not take the last messages."),
        (Err(_), _) => {
            tracing::warn!("The drain took too long; what was under way will be delivered again.")
        }
    }
    ExitCode::SUCCESS
}
