//! Why there is no installation.

use std::path::PathBuf;
use std::time::Duration;

/// Why a process, and with it the installation, is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No nats-server on this machine.
    #[error(
        "there is no nats-server: set CONCORD_NATS_SERVER to one, put one on the PATH, or run scripts/nats-server, \
         which installs one into .tools/"
    )]
    NoNatsServer,
    /// A program is missing.
    #[error("there is no program {}; build it with: cargo build --package {}", path.display(), name)]
    NoProgram {
        /// Its name.
        name: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// A program could not be started.
    #[error("{name} could not be started")]
    Start {
        /// Which program.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the installation could not be written or read.
    #[error("{} could not be used", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A process ended before it was ready.
    #[error("{name} has ended ({status}) before it was ready; the end of its log:\n{tail}")]
    Ended {
        /// Which process.
        name: String,
        /// How it ended.
        status: String,
        /// Last lines of its log.
        tail: String,
    },
    /// A process is not ready in time.
    #[error("{name} is not ready after {} s ({status}); the end of its log:\n{tail}", waited.as_secs())]
    NotReady {
        /// Which process.
        name: String,
        /// How long it was awaited.
        waited: Duration,
        /// What is missing.
        status: String,
        /// Last lines of its log.
        tail: String,
    },
    /// The broker cannot be reached.
    #[error("no connection to NATS at {url}; is nats-server running there?")]
    Connect {
        /// Where.
        url: String,
        /// Why.
        source: async_nats::ConnectError,
    },
    /// Another installation works in this directory.
    #[error("another installation runs in {}; stop it, or choose another directory", directory.display())]
    InUse {
        /// Which directory.
        directory: PathBuf,
    },
    /// The metrics of a process cannot be read.
    #[error("the counter {name} cannot be read: {why}")]
    Metrics {
        /// The name of the counter.
        name: String,
        /// The reason.
        why: String,
    },
    /// No such process in this installation.
    #[error("this installation has no {0}")]
    Unknown(String),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File {
            path: path.into(),
            source,
        }
    }
}
