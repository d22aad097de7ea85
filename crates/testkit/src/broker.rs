//! A nats-server of one test.

use concord_installation::NatsServer;
use tempfile::TempDir;

use crate::programs::nats_server;

/// A real nats-server on a port of its own, with its streams in a temporary directory.
pub struct TestBroker {
    // Before the directory, so that it has ended when the directory is removed.
    server: NatsServer,
    directory: TempDir,
}

impl TestBroker {
    /// Starts a nats-server in a temporary directory.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("concord-broker-")
            .tempdir()
            .expect("a temporary directory");
        let server = NatsServer::spawn(&nats_server(), directory.path(), None).await;
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        Self { server, directory }
    }

    /// The address of the broker.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The server, to be stopped, killed and started again.
    pub fn server(&self) -> &NatsServer {
        &self.server
    }

    /// The folder of its streams.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// A new connection.
    ///
    /// # Panics
    /// When there is none.
    pub async fn client(&self) -> async_nats::Client {
        crate::connect(&self.url()).await
    }
}
