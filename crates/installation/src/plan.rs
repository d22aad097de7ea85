//! The plan of an installation: its processes, folders and settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use concord_wire::subject::Service;

/// The services of an installation, in the order in which they are started.
pub const SERVICES: [Service; 5] = [
    Service::Coordinator,
    Service::ConflictDetector,
    Service::DebateFacilitator,
    Service::EscalationTimer,
    Service::AgentAdapter,
];

/// Name of a service's program, and of its micro service.
pub fn binary_name(service: Service) -> String {
    format!("concord-{service}")
}

/// Certificates of a client, each a file in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The authority that has signed the broker's certificate.
    pub authority: PathBuf,
    /// The client's own certificate.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
}

/// The plan of an installation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Streams, logs and configuration go here; it is made when it is not there.
    pub directory: PathBuf,
    /// The nats-server to start; found on the machine when absent.
    pub nats_server: Option<PathBuf>,
    /// Port of the broker; any free one when absent.
    pub port: Option<u16>,
    /// Further lines of the configuration of a broker that is started: users, accounts, TLS.
    pub nats_config: String,
    /// File of the credentials with which the installation itself connects, where the broker asks for some.
    pub credentials: Option<PathBuf>,
    /// The certificates with which the installation itself connects, where the broker speaks TLS.
    pub tls: Option<Tls>,
    /// A broker that is there already, instead of starting one.
    pub server_url: Option<String>,
    /// The folder of the services' programs; that of the running program when absent.
    pub binaries: Option<PathBuf>,
    /// The number of processes of each service.
    pub replicas: BTreeMap<Service, usize>,
    /// Settings for all services, `key=value`.
    pub settings: Vec<String>,
    /// Settings for one service, `key=value`.
    pub service_settings: BTreeMap<Service, Vec<String>>,
    /// Configuration file of the agent adapter: which agents it hosts.
    pub adapter_config: Option<PathBuf>,
}

impl Plan {
    /// A broker and one process of each service, with everything in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            nats_server: None,
            port: None,
            nats_config: String::new(),
            credentials: None,
            tls: None,
            server_url: None,
            binaries: None,
            replicas: SERVICES.iter().map(|service| (*service, 1)).collect(),
            settings: Vec::new(),
            service_settings: BTreeMap::new(),
            adapter_config: None,
        }
    }

    /// With this many processes of `service`.
    #[must_use]
    pub fn with_replicas(mut self, service: Service, replicas: usize) -> Self {
        self.replicas.insert(service, replicas);
        self
    }

    /// With a setting for all services, for example `work.in_flight_max=16`.
    #[must_use]
    pub fn with_setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// With a setting for one service.
    #[must_use]
    pub fn with_service_setting(mut self, service: Service, setting: impl Into<String>) -> Self {
        self.service_settings
            .entry(service)
            .or_default()
            .push(setting.into());
        self
    }

    pub(crate) fn binaries(&self) -> PathBuf {
        let beside = || {
            std::env::current_exe()
                .ok()
                .and_then(|exe| exe.parent().map(Path::to_owned))
        };
        self.binaries.clone().or_else(beside).unwrap_or_default()
    }

    pub(crate) fn arguments(&self, service: Service, server_url: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(config) = self
            .adapter_config
            .as_ref()
            .filter(|_| service == Service::AgentAdapter)
        {
            arguments.extend(["--config".to_owned(), config.display().to_string()]);
        }
        let address = format!("broker.servers={server_url}");
        let own = self.service_settings.get(&service).into_iter().flatten();
        for setting in std::iter::once(&address).chain(&self.settings).chain(own) {
            arguments.extend(["--set".to_owned(), setting.clone()]);
        }
        arguments
    }
}

/// A step of the start of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The broker is being started.
    StartingBroker,
    /// The broker answers requests.
    BrokerReady {
        /// The address of the broker.
        url: String,
    },
    /// The services' processes have been started.
    ServicesStarted {
        /// The number of processes.
        processes: usize,
    },
    /// One process is ready.
    ServiceReady {
        /// The service.
        service: Service,
        /// The number of the process among those of the service, from 0.
        replica: usize,
        /// The number of processes of all services that are ready.
        ready: usize,
        /// The number of processes of all services.
        of: usize,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartingBroker => write!(f, "starting nats-server"),
            Self::BrokerReady { url } => write!(f, "nats-server is ready at {url}"),
            Self::ServicesStarted { processes } => {
                write!(f, "starting {processes} service processes")
            }
            Self::ServiceReady {
                service,
                replica,
                ready,
                of,
            } => {
                write!(f, "{service}-{replica} is ready ({ready} of {of})")
            }
        }
    }
}
