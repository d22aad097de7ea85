//! The errors of an installation.

use std::path::PathBuf;
use std::time::Duration;

/// The reason for which an installation, or one of its processes, does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no nats-server on this machine.
    #[error(
        "there is no nats-server: set CONCORD_NATS_SERVER to one, put one on the PATH, or run scripts/nats-server, \
         which installs one into .tools/"
    )]
    NoNatsServer,
    /// A program has not been built.
    #[error("there is no program {}; build it with: cargo build --package {}", path.display(), name)]
    NoProgram {
        /// The name of the program.
        name: String,
        /// The path where it should be.
        path: PathBuf,
    },
    /// A program could not be started.
    #[error("{name} could not be started")]
    Start {
        /// The name of the program.
        name: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the installation could not be written or read.
    #[error("{} could not be used", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A process ended before it was ready.
    #[error("{name} has ended ({status}) before it was ready; the end of its log:\n{tail}")]
    Ended {
        /// The name of the process.
        name: String,
        /// The exit status.
        status: String,
        /// The exit code of a service; none of the broker and where a signal ended it.
        code: Option<i32>,
        /// Last lines of its log.
        tail: String,
    },
    /// A process is not ready in time.
    #[error("{name} is not ready after {} s ({status}); the end of its log:\n{tail}", waited.as_secs())]
    NotReady {
        /// The name of the process.
        name: String,
        /// The time for which it was awaited.
        waited: Duration,
        /// What the process still lacks, in its own words.
        status: String,
        /// Last lines of its log.
        tail: String,
    },
    /// The broker cannot be reached.
    #[error("no connection to NATS at {url}; is nats-server running there?")]
    Connect {
        /// The address of the broker.
        url: String,
        /// The cause.
        source: async_nats::ConnectError,
    },
    /// Another installation works in this directory.
    #[error("another installation runs in {}; stop it, or choose another directory", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The metrics of a process cannot be read.
    #[error("the counter {name} cannot be read: {why}")]
    Metrics {
        /// The name of the counter.
        name: String,
        /// The cause, in words.
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
