//! A running installation: its processes are started, watched, and stopped in order.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use concord_wire::subject::Service;

use crate::discover::instances;
use crate::plan::binary_name;
use crate::process::{Process, Program};
use crate::{Error, NatsServer, Plan, Progress, Tls};

mod counters;

/// The time in which the services must be ready.
const READY_MAX: Duration = Duration::from_secs(60);
/// The time in which a service must end: its own bound for draining, and a little more.
const DRAIN_MAX: Duration = Duration::from_secs(15);
/// The time for which announcements of services are collected, while they start.
const PATIENCE: Duration = Duration::from_millis(250);
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// A broker and the services, each a process. All are killed when this is dropped; [`Installation::stop`] ends them in
/// order.
#[derive(Debug)]
pub struct Installation {
    directory: PathBuf,
    // Before the broker, so that they are dropped before it.
    services: Vec<ServiceProcess>,
    broker: Option<NatsServer>,
    server_url: String,
    credentials: Option<PathBuf>,
    tls: Option<Tls>,
    // Last, so that nobody else takes the directory before all processes have ended.
    _lock: File,
}

#[derive(Debug)]
struct ServiceProcess {
    service: Service,
    replica: usize,
    process: Process,
}

impl Installation {
    /// Starts everything that `plan` says, and waits until every process says that it is ready.
    pub async fn start(plan: Plan, mut progress: impl FnMut(Progress)) -> Result<Self, Error> {
        let logs = plan.directory.join("logs");
        std::fs::create_dir_all(&logs).map_err(|error| Error::file(&logs, error))?;
        let lock = lock(&plan.directory)?;
        let (broker, server_url) = start_broker(&plan, &mut progress).await?;
        let binaries = plan.binaries();
        let process = |service: Service, replica: usize| ServiceProcess {
            service,
            replica,
            process: Process::new(Program {
                name: binary_name(service),
                path: binaries.join(binary_name(service)),
                arguments: plan.arguments(service, &server_url),
                environment: Vec::new(),
                log: logs.join(format!("{service}-{replica}.log")),
                orphaned: "KILL",
            }),
        };
        let replicas = plan.replicas.iter();
        let services = replicas
            .flat_map(|(service, n)| (0..*n).map(|replica| process(*service, replica)))
            .collect();
        let installation = Self {
            directory: plan.directory.clone(),
            services,
            broker,
            server_url,
            credentials: plan.credentials.clone(),
            tls: plan.tls.clone(),
            _lock: lock,
        };
        for service in &installation.services {
            service.process.start()?;
        }
        progress(Progress::ServicesStarted {
            processes: installation.services.len(),
        });
        installation
            .await_ready(installation.services.iter().collect(), &mut progress)
            .await?;
        Ok(installation)
    }

    async fn await_ready(
        &self,
        mut awaited: Vec<&ServiceProcess>,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), Error> {
        let client = self.client().await?;
        let (begun, of, mut ready) = (Instant::now(), awaited.len(), 0);
        while let Some(first) = awaited.first() {
            if let Some(ended) = awaited.iter().find_map(|service| service.ended_early()) {
                return Err(ended);
            }
            let pids: Vec<Option<u32>> = awaited
                .iter()
                .map(|service| service.process.pid())
                .collect();
            let all_there = |found: &[crate::Instance]| {
                pids.iter().all(|pid| found.iter().any(|i| i.pid() == *pid))
            };
            let found = instances(&client, PATIENCE, all_there)
                .await
                .unwrap_or_default();
            let mut status = "it has not announced itself on the broker".to_owned();
            let mut still = Vec::new();
            for service in &awaited {
                let pid = service.process.pid();
                let Some(instance) = found.iter().find(|instance| instance.pid() == pid) else {
                    still.push(*service);
                    continue;
                };
                match instance.readiness().await {
                    Ok(()) => {
                        ready += 1;
                        let ServiceProcess {
                            service, replica, ..
                        } = service;
                        progress(Progress::ServiceReady {
                            service: *service,
                            replica: *replica,
                            ready,
                            of,
                        });
                    }
                    Err(reasons) => {
                        status = reasons;
                        still.push(*service);
                    }
                }
            }
            if !still.is_empty() && begun.elapsed() > READY_MAX {
                return Err(first.not_ready(begun.elapsed(), status));
            }
            awaited = still;
            if !awaited.is_empty() {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// A connection to the broker, or to any of several.
    pub async fn client(&self) -> Result<async_nats::Client, Error> {
        let url = &self.server_url;
        let addresses: Vec<&str> = url.split(',').collect();
        let mut options = async_nats::ConnectOptions::new();
        if let Some(path) = &self.credentials {
            let read = options.credentials_file(path).await;
            options = read.map_err(|error| Error::file(path, error))?;
        }
        if let Some(tls) = &self.tls {
            options = options
                .require_tls(true)
                .add_root_certificates(tls.authority.clone())
                .add_client_certificate(tls.certificate.clone(), tls.key.clone());
        }
        options
            .connect(&addresses[..])
            .await
            .map_err(|source| Error::Connect {
                url: url.clone(),
                source,
            })
    }

    /// The address of the broker, for example `nats://127.0.0.1:4222`; of several, separated by commas.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// The folder of streams and logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The broker, when this installation has started one.
    pub fn broker(&self) -> Option<&NatsServer> {
        self.broker.as_ref()
    }

    /// Every process: which service, and which process of it, from 0.
    pub fn processes(&self) -> impl Iterator<Item = (Service, usize)> + '_ {
        self.services
            .iter()
            .map(|service| (service.service, service.replica))
    }

    fn find(&self, service: Service, replica: usize) -> Result<&ServiceProcess, Error> {
        let found = self
            .services
            .iter()
            .find(|s| s.service == service && s.replica == replica);
        found.ok_or_else(|| Error::Unknown(format!("{service}-{replica}")))
    }

    /// The process id, while it runs.
    pub fn pid(&self, service: Service, replica: usize) -> Option<u32> {
        self.find(service, replica)
            .ok()
            .and_then(|found| found.process.pid())
    }

    /// The path of the log of a process.
    pub fn log(&self, service: Service, replica: usize) -> Option<&Path> {
        self.find(service, replica)
            .ok()
            .map(|found| found.process.program.log.as_path())
    }

    /// SIGKILL, and waits until the process is gone.
    pub fn kill(&self, service: Service, replica: usize) -> Result<(), Error> {
        self.find(service, replica)?.process.kill();
        Ok(())
    }

    /// SIGTERM, and waits until the process has ended. True when it did so in time, without being killed.
    pub async fn terminate(&self, service: Service, replica: usize) -> Result<bool, Error> {
        let found = self.find(service, replica)?;
        found.process.terminate();
        Ok(found.process.wait(DRAIN_MAX).await)
    }

    /// Stops a process without its knowing. False when it does not run.
    pub fn freeze(&self, service: Service, replica: usize) -> Result<bool, Error> {
        Ok(self.find(service, replica)?.process.freeze())
    }

    /// Lets a frozen process go on. False when it does not run.
    pub fn thaw(&self, service: Service, replica: usize) -> Result<bool, Error> {
        Ok(self.find(service, replica)?.process.thaw())
    }

    /// Starts a process that has ended, without waiting for it.
    pub fn launch(&self, service: Service, replica: usize) -> Result<(), Error> {
        self.find(service, replica)?.process.start()
    }

    /// Starts a process that has ended, and waits until it is ready.
    pub async fn restart(&self, service: Service, replica: usize) -> Result<(), Error> {
        let found = self.find(service, replica)?;
        found.process.start()?;
        self.await_ready(vec![found], &mut |_| {}).await
    }

    /// Waits until every process that runs is ready, as after the broker was away.
    pub async fn ready(&self) -> Result<(), Error> {
        let running = self
            .services
            .iter()
            .filter(|service| service.process.is_running())
            .collect();
        self.await_ready(running, &mut |_| {}).await
    }

    /// Processes that have ended by themselves, with their exit status.
    pub fn exited(&self) -> Vec<(Service, usize, std::process::ExitStatus)> {
        let ended = self.services.iter().filter_map(|s| {
            s.process
                .ended()
                .map(|status| (s.service, s.replica, status))
        });
        ended.collect()
    }

    /// Stops the broker in order (SIGTERM); the services stay, and wait for it.
    pub async fn stop_broker(&self) -> Result<bool, Error> {
        Ok(self.own_broker()?.stop().await)
    }

    /// Kills the broker (SIGKILL).
    pub fn kill_broker(&self) -> Result<(), Error> {
        self.own_broker()?.kill();
        Ok(())
    }

    /// Starts the broker again, with its streams and on its port, and waits until it answers.
    pub async fn start_broker(&self) -> Result<(), Error> {
        self.own_broker()?.start().await
    }

    fn own_broker(&self) -> Result<&NatsServer, Error> {
        self.broker
            .as_ref()
            .ok_or_else(|| Error::Unknown("broker of its own".into()))
    }

    /// The last lines of every log, for a person who looks for what went wrong.
    pub fn log_tails(&self) -> String {
        let mut text = String::new();
        for ServiceProcess {
            service,
            replica,
            process,
        } in &self.services
        {
            text.push_str(&format!("--- {service}-{replica}\n{}\n", process.tail()));
        }
        if let Some(broker) = &self.broker {
            text.push_str(&format!("--- nats-server\n{}\n", broker.log_tail()));
        }
        text
    }

    /// Ends everything in order: SIGTERM to all services, then to the broker. Names what had to be killed.
    pub async fn stop(self) -> Vec<String> {
        let mut killed = Vec::new();
        for service in &self.services {
            service.process.terminate();
        }
        let begun = Instant::now();
        for ServiceProcess {
            service,
            replica,
            process,
        } in &self.services
        {
            if !process
                .wait(DRAIN_MAX.saturating_sub(begun.elapsed()))
                .await
            {
                killed.push(format!("{service}-{replica}"));
            }
        }
        if let Some(broker) = &self.broker
            && !broker.stop().await
        {
            killed.push("nats-server".to_owned());
        }
        killed
    }
}

impl ServiceProcess {
    fn ended_early(&self) -> Option<Error> {
        let status = self.process.ended()?;
        let name = format!("{}-{}", self.service, self.replica);
        Some(Error::Ended {
            name,
            status: status.to_string(),
            code: status.code(),
            tail: self.process.tail(),
        })
    }

    fn not_ready(&self, waited: Duration, status: String) -> Error {
        let name = format!("{}-{}", self.service, self.replica);
        Error::NotReady {
            name,
            waited,
            status,
            tail: self.process.tail(),
        }
    }
}

/// Two brokers on the same streams would destroy them.
fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join(".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|error| Error::file(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse {
            directory: directory.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(Error::file(&path, error)),
    }
}

async fn start_broker(
    plan: &Plan,
    progress: &mut impl FnMut(Progress),
) -> Result<(Option<NatsServer>, String), Error> {
    if let Some(url) = &plan.server_url {
        return Ok((None, url.clone()));
    }
    progress(Progress::StartingBroker);
    let program = plan.nats_server.clone().map_or_else(NatsServer::find, Ok)?;
    let broker = NatsServer::spawn_with(
        &program,
        &plan.directory.join("broker"),
        plan.port,
        &plan.nats_config,
    )
    .await?;
    let url = broker.url();
    progress(Progress::BrokerReady { url: url.clone() });
    Ok((Some(broker), url))
}
