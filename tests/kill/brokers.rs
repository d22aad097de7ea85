//! Three brokers that form a cluster, and the links between them, which can be cut.
//!
//! Each broker reaches each other one through a link of its own, a forwarder in this process. A link that is cut carries nothing and
//! says nothing, as a network does that loses every packet; when it is mended, what was held goes on. Each keeps its streams on a disk of
//! its own, which can become full.

use std::net::SocketAddr;
use std::time::Duration;

use concord_installation::NatsServer;
use concord_testkit::{free_address, nats_server};
use futures::future::join_all;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::kill::disk::Disk;

/// How many brokers.
pub(crate) const BROKERS: usize = 3;
/// The size of a forwarder's buffer.
const BUFFER: usize = 64 * 1024;

/// A cluster of brokers on this machine.
pub(crate) struct Brokers {
    // Before the directory, so that they have ended when it is removed.
    servers: Vec<NatsServer>,
    /// For each broker whether its links carry anything.
    connected: Vec<watch::Sender<bool>>,
    /// How long everything takes from one to another.
    delay: watch::Sender<Duration>,
    /// The disk of each; none where no file system can be mounted.
    disks: Vec<Disk>,
    _links: JoinSet<()>,
    directory: TempDir,
}

impl Brokers {
    /// Starts them. A client can use any of them at once; streams need more than half of them.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("concord-cluster-")
            .tempdir()
            .expect("a temporary directory");
        let addresses: Vec<SocketAddr> = (0..BROKERS).map(|_| free_address()).collect();
        let connected: Vec<_> = (0..BROKERS).map(|_| watch::channel(true).0).collect();
        let delay = watch::Sender::new(Duration::ZERO);
        let mut links = JoinSet::new();
        let (mut starts, mut disks) = (Vec::new(), Vec::new());
        for (broker, address) in addresses.iter().enumerate() {
            let mut routes = Vec::new();
            for (other, to) in addresses.iter().enumerate() {
                if other != broker {
                    let state = LinkState {
                        ends: [connected[broker].subscribe(), connected[other].subscribe()],
                        delay: delay.subscribe(),
                    };
                    routes.push(link(&mut links, *to, state).await);
                }
            }
            // What a broker tells others of itself leads nowhere: they know each other by their links alone.
            let config = format!(
                "server_name: \"broker-{broker}\"\ncluster {{\n name: \"test\"\n listen: \"{address}\"\n advertise: \"127.0.0.1:1\"\n \
                 routes: [{}]\n}}",
                routes.join(", ")
            );
            let home = directory.path().join(broker.to_string());
            disks.extend(Disk::mount(&home.join("jetstream")));
            starts.push(async move {
                let server = NatsServer::spawn_with(&nats_server(), &home, None, &config).await;
                server.unwrap_or_else(|error| panic!("{error}"))
            });
        }
        Self {
            servers: join_all(starts).await,
            connected,
            delay,
            disks,
            _links: links,
            directory,
        }
    }

    /// The addresses of all, separated by commas.
    pub(crate) fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// Kills one.
    pub(crate) fn kill(&self, broker: usize) {
        self.servers[broker].kill();
    }

    /// Starts one again that was killed.
    pub(crate) async fn start_again(&self, broker: usize) {
        let started = self.servers[broker].start().await;
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stops one without its knowing.
    pub(crate) fn freeze(&self, broker: usize) {
        assert!(self.servers[broker].freeze(), "it runs");
    }

    /// Lets a frozen one go on.
    pub(crate) fn thaw(&self, broker: usize) {
        assert!(self.servers[broker].thaw(), "it runs");
    }

    /// Cuts one off from the others. Its clients go on reaching it.
    pub(crate) fn cut_off(&self, broker: usize) {
        self.connected[broker].send_replace(false);
    }

    /// Mends its links.
    pub(crate) fn mend(&self, broker: usize) {
        self.connected[broker].send_replace(true);
    }

    /// Makes everything take so long from one to another.
    pub(crate) fn delay(&self, delay: Duration) {
        self.delay.send_replace(delay);
    }

    /// Whether their disks can become full.
    pub(crate) fn have_disks(&self) -> bool {
        self.disks.len() == BROKERS
    }

    /// Fills the disk of one.
    pub(crate) async fn fill_disk(&self, broker: usize) {
        self.disks[broker].fill().await;
    }

    /// How many have found their disk full.
    pub(crate) fn found_full(&self) -> usize {
        let found_full = |broker: &usize| {
            let home = self.directory.path().join(broker.to_string());
            let log = std::fs::read_to_string(home.join("nats-server.log"));
            log.unwrap_or_default().contains("no space left on device")
        };
        (0..BROKERS).filter(found_full).count()
    }

    /// What each has complained of in its log.
    pub(crate) fn complaints(&self) -> String {
        let mut complaints = String::new();
        for broker in 0..BROKERS {
            let log = self.directory.path().join(broker.to_string());
            let log = std::fs::read_to_string(log.join("nats-server.log")).unwrap_or_default();
            let lines = log.lines().filter(|line| line.contains("[ERR]"));
            complaints.extend(lines.map(|line| format!("broker-{broker}: {line}\n")));
        }
        complaints
    }

    /// Makes room on the disk of one, and starts it again: it does not write any more until then.
    pub(crate) async fn make_room(&self, broker: usize) {
        self.disks[broker].make_room();
        self.servers[broker].stop().await;
        self.start_again(broker).await;
    }
}

/// What a link does at the moment.
#[derive(Clone)]
struct LinkState {
    /// Whether each end is connected.
    ends: [watch::Receiver<bool>; 2],
    delay: watch::Receiver<Duration>,
}

/// Forwards connections to `to` while both ends are connected; its address as a route.
async fn link(tasks: &mut JoinSet<()>, to: SocketAddr, state: LinkState) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let route = listener.local_addr().expect("bound");
    tasks.spawn(async move {
        let mut streams = JoinSet::new();
        while let Ok((from, _)) = listener.accept().await {
            // The other broker may not listen yet, or not any more: then this connection ends, and is tried again.
            if let Ok(onward) = TcpStream::connect(to).await {
                let (read, write) = from.into_split();
                let (read_back, write_back) = onward.into_split();
                streams.spawn(forward(read, write_back, state.clone()));
                streams.spawn(forward(read_back, write, state.clone()));
            }
        }
    });
    format!("\"nats://{route}\"")
}

/// Forwards one direction until either side closes it.
async fn forward(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: LinkState,
) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let delay = *state.delay.borrow();
        // This is how a slow network behaves; nothing is waited for.
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        for end in &mut state.ends {
            if end.wait_for(|connected| *connected).await.is_err() {
                return;
            }
        }
        let Some(bytes) = buffer.get(..read) else {
            return;
        };
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
    // The other direction ends by itself once this one is closed.
    let _ = to.shutdown().await;
}
