//! A nats-server that is started and stopped by this process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::ConnectErrorKind;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;

use crate::Error;
use crate::discover::get;
use crate::process::{Process, Program};

/// Largest message: above Concord's own limit, so that the service can say that a message is too large.
const PAYLOAD_MAX: &str = "8MB";
/// The time in which a server must have recovered its streams and listen.
const READY_MAX: Duration = Duration::from_secs(60);
/// The time in which a server must have written its streams and ended.
const STOP_MAX: Duration = Duration::from_secs(20);
/// The time in which a server must greet whoever connects.
const GREETING_MAX: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A nats-server with JetStream in a directory, on a port that stays the same when it is started again. It is killed
/// when this is dropped.
#[derive(Debug)]
pub struct NatsServer {
    directory: PathBuf,
    process: Process,
    port: Mutex<Option<u16>>,
    /// Further lines of its configuration.
    more: String,
}

/// The file in which the server says where it listens.
#[derive(Deserialize)]
struct Ports {
    nats: Vec<String>,
    /// Where it answers HTTP, if its configuration lets it.
    #[serde(default)]
    monitoring: Vec<String>,
}

/// A line of configuration with which a server answers HTTP on any free port; see [`NatsServer::monitoring`].
pub const MONITORING: &str = "http: \"127.0.0.1:-1\"";

impl NatsServer {
    /// A nats-server on this machine: `$CONCORD_NATS_SERVER`, the `PATH`, or `.tools/bin` of this directory or one above.
    pub fn find() -> Result<PathBuf, Error> {
        if let Some(given) =
            std::env::var_os("CONCORD_NATS_SERVER").filter(|given| !given.is_empty())
        {
            let path = PathBuf::from(given);
            return if path.is_file() {
                Ok(path)
            } else {
                Err(Error::NoProgram {
                    name: "nats-server".into(),
                    path,
                })
            };
        }
        let here = std::env::current_dir().unwrap_or_default();
        let tools = here.ancestors().map(|above| above.join(".tools/bin"));
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&on_path).chain(tools);
        places
            .map(|place| place.join("nats-server"))
            .find(|path| path.is_file())
            .ok_or(Error::NoNatsServer)
    }

    /// Starts `program` with its streams in `directory`, and waits until it answers.
    ///
    /// Without a `port` it takes any free one of the loopback interface.
    pub async fn spawn(program: &Path, directory: &Path, port: Option<u16>) -> Result<Self, Error> {
        Self::spawn_with(program, directory, port, "").await
    }

    /// The same with further lines of configuration. Where they ask for credentials or certificates, a refusal counts as an answer.
    pub async fn spawn_with(
        program: &Path,
        directory: &Path,
        port: Option<u16>,
        more: &str,
    ) -> Result<Self, Error> {
        std::fs::create_dir_all(directory).map_err(|error| Error::file(directory, error))?;
        let program = Program {
            name: "nats-server".into(),
            path: program.to_owned(),
            arguments: vec![
                "--config".into(),
                directory.join("nats.conf").display().to_string(),
            ],
            environment: Vec::new(),
            log: directory.join("nats-server.log"),
            orphaned: "TERM",
        };
        let server = Self {
            directory: directory.to_owned(),
            process: Process::new(program),
            port: Mutex::new(port),
            more: more.to_owned(),
        };
        server.start().await?;
        Ok(server)
    }

    /// Starts the server again, on the port it had, and waits until it answers.
    pub async fn start(&self) -> Result<(), Error> {
        if self.process.is_running() {
            return Ok(());
        }
        self.configure()?;
        self.process.start()?;
        let begun = Instant::now();
        let mut status = "it has not said where it listens".to_owned();
        while begun.elapsed() < READY_MAX {
            if let Some(ended) = self.process.ended() {
                return Err(self.ended(&ended.to_string()));
            }
            if let Some(port) = self.listening() {
                *self.port.lock().unwrap_or_else(PoisonError::into_inner) = Some(port);
                match async_nats::connect(self.url()).await {
                    Ok(_) => return Ok(()),
                    // It answers, and knows its users.
                    Err(error) if error.kind() == ConnectErrorKind::AuthorizationViolation => {
                        return Ok(());
                    }
                    // It speaks TLS, for which this has no certificates.
                    Err(_) if asks_for_tls(port).await => return Ok(()),
                    Err(error) => status = error.to_string(),
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Err(Error::NotReady {
            name: "nats-server".into(),
            waited: READY_MAX,
            status,
            tail: self.process.tail(),
        })
    }

    fn ended(&self, status: &str) -> Error {
        Error::Ended {
            name: "nats-server".into(),
            status: status.into(),
            code: None,
            tail: self.process.tail(),
        }
    }

    fn configure(&self) -> Result<(), Error> {
        for stale in self.port_files() {
            std::fs::remove_file(&stale).map_err(|error| Error::file(stale, error))?;
        }
        let port = self
            .port
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .map_or(-1, i32::from);
        // The configuration's strings have the escapes of JSON.
        let quoted =
            |path: &Path| serde_json::to_string(&path.display().to_string()).unwrap_or_default();
        let text = format!(
            "host: \"127.0.0.1\"\nport: {port}\nmax_payload: {PAYLOAD_MAX}\nports_file_dir: {}\n\
             jetstream {{ store_dir: {} }}\n{}\n",
            quoted(&self.directory),
            quoted(&self.directory.join("jetstream")),
            self.more,
        );
        let path = self.directory.join("nats.conf");
        std::fs::write(&path, text).map_err(|error| Error::file(path, error))
    }

    fn port_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "ports"))
            .collect()
    }

    fn ports(&self) -> Option<Ports> {
        let text = self
            .port_files()
            .into_iter()
            .find_map(|path| std::fs::read(path).ok())?;
        // A file that is still being written is read again.
        serde_json::from_slice(&text).ok()
    }

    /// What the server says about itself over HTTP, as JSON; `path` for example `/varz`. It needs [`MONITORING`].
    pub async fn monitoring(&self, path: &str) -> Result<serde_json::Value, Error> {
        let unread = |why: String| Error::Metrics {
            name: path.to_owned(),
            why,
        };
        let ports = self.ports().map(|ports| ports.monitoring);
        let url = ports.and_then(|urls| urls.into_iter().next());
        let url = url.ok_or_else(|| unread("the server was started without monitoring".into()))?;
        let address = url.trim_start_matches("http://");
        let (_, body) = get(address, path)
            .await
            .map_err(|error| unread(format!("{address} does not answer: {error}")))?;
        serde_json::from_str(&body).map_err(|error| unread(error.to_string()))
    }

    /// The port that the server says it listens on.
    fn listening(&self) -> Option<u16> {
        self.ports()?
            .nats
            .iter()
            .find_map(|url| url.rsplit(':').next()?.parse().ok())
    }

    /// Its address, for example `nats://127.0.0.1:4222`.
    pub fn url(&self) -> String {
        let port = self
            .port
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unwrap_or_default();
        format!("nats://127.0.0.1:{port}")
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// The exit status; none while it runs.
    pub fn exited(&self) -> Option<std::process::ExitStatus> {
        self.process.ended()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.process.tail()
    }

    /// SIGTERM, and waits until it has ended. True when it did so in time, without being killed.
    pub async fn stop(&self) -> bool {
        self.process.terminate();
        self.process.wait(STOP_MAX).await
    }

    /// Stops the server without its knowing. False when it does not run.
    pub fn freeze(&self) -> bool {
        self.process.freeze()
    }

    /// Lets a frozen server go on. False when it does not run.
    pub fn thaw(&self) -> bool {
        self.process.thaw()
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&self) {
        self.process.kill();
    }
}

/// Whether a server that listens on this port says that it speaks TLS alone.
async fn asks_for_tls(port: u16) -> bool {
    let Ok(connection) = TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let mut greeting = String::new();
    let mut connection = BufReader::new(connection);
    let read = tokio::time::timeout(GREETING_MAX, connection.read_line(&mut greeting)).await;
    read.is_ok() && greeting.starts_with("INFO ") && greeting.contains("\"tls_required\":true")
}
