//! The connection to the broker.

mod connection;
pub mod copies;
pub(crate) mod delivery_info;
mod denials;
mod followed;
mod headers;
mod inbox;
pub mod inbox_progress;
pub mod log_reader;
pub mod migration;
pub mod non_event;
pub mod payload_store;
pub mod provision;
pub mod publish;
pub(crate) mod pull;
pub(crate) mod pull_room;
pub(crate) mod raw_message;
pub(crate) mod refusals;
pub mod room;
pub(crate) mod sealed;
pub mod shared_value;
pub mod subject_reader;
mod tls_files;
mod unavailable;
pub mod wire_preferences;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_nats::Subject;
use async_nats::jetstream::{self, AckKind, context::ContextBuilder};
use concord_archive::{Archive, Bucket, Location};
use concord_events::topology::{Layout, StreamKind};
use concord_wire::subject::{Service, SubjectSpace};
use concord_wire::{AgentId, Dialect, Recipient, Timestamp};

use crate::settings::{self, ArchivePlace, BrokerSettings, StorageSettings};
use connection::REQUEST_TIMEOUT;
use payload_store::PayloadStore;
use refusals::Refusals;
use sealed::SealedAggregates;
use wire_preferences::{CardLookup, WirePreferences};

pub use connection::Error;
pub(crate) use connection::{check_files, host};
pub use denials::Denials;
pub use followed::{bounded, followed};
pub use headers::trace_of;
pub(crate) use headers::{bytes_of, headers};
pub use unavailable::{Operation, Unavailable};

/// A connection with the names of one installation. Cheap to clone.
#[derive(Clone)]
pub struct Broker {
    /// The connection.
    pub client: async_nats::Client,
    /// Where a service hears what agents and people publish and nobody stores: heartbeats, requests to its verbs. A header block that no client
    /// can parse costs the connection that is given it, so a service has another one for these ([`Self::hear_apart`]).
    pub heard: async_nats::Client,
    /// JetStream on it.
    pub jetstream: jetstream::Context,
    /// Subjects, streams and consumers.
    pub layout: Arc<Layout>,
    /// Under whose name services are asked; none for an operator of the installation.
    pub caller: Option<AgentId>,
    preferences: Arc<WirePreferences>,
    /// Bodies with more bytes go compressed to agents that read that.
    compress_over_bytes: usize,
    pub(crate) payload_store: Arc<PayloadStore>,
    /// Where cases that are over are archived; none where nothing is archived, or it is not said where.
    pub archive: Option<Archive>,
    /// Milliseconds after the last event of a case that is over, and the last word of those in it, until it is archived; 0 for never.
    pub archive_after_ms: u64,
    /// Which aggregates of this process's service are archived.
    pub(crate) sealed: Arc<SealedAggregates>,
    /// For the messages of all consumers of this process.
    pub(crate) room: pull_room::Room,
    /// What the broker has not stored of late.
    pub(crate) refusals: Arc<Refusals>,
    /// What it does not let this process do.
    pub(crate) denials: Denials,
}

impl Broker {
    /// Connects, waits until the broker is there, and checks its version.
    ///
    /// `name` is shown by the broker for this connection. With `wait` the first connection is tried until it succeeds.
    pub async fn connect(
        name: &str,
        broker: &BrokerSettings,
        storage: &StorageSettings,
        wait: bool,
    ) -> Result<Self, Error> {
        Self::connect_and_tell(name, (broker, storage), wait, &Denials::default()).await
    }

    /// The same. What the broker does not let the connection do, `denials` are told.
    pub async fn connect_and_tell(
        name: &str,
        (broker, storage): (&BrokerSettings, &StorageSettings),
        wait: bool,
        denials: &Denials,
    ) -> Result<Self, Error> {
        let client = connection::connect(name, broker, wait, denials).await?;
        let jetstream = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .build(client.clone());
        Ok(Self {
            archive: archive_of(storage, &jetstream)?,
            archive_after_ms: storage.archive_after_s.saturating_mul(1_000),
            heard: client.clone(),
            client,
            jetstream,
            layout: Arc::new(Layout::new(&storage.prefix, storage.choices())),
            caller: None,
            preferences: Arc::default(),
            compress_over_bytes: broker.compress_over_bytes,
            payload_store: Arc::new(PayloadStore::new(storage)),
            sealed: Arc::default(),
            room: pull_room::Room::default(),
            refusals: Arc::default(),
            denials: denials.clone(),
        })
    }

    /// From now on what is heard of agents and people is heard on a connection of its own. It may be lost as often as somebody likes: the work
    /// goes on.
    pub(crate) async fn hear_apart(
        &mut self,
        name: &str,
        settings: &BrokerSettings,
    ) -> Result<(), Error> {
        self.heard =
            connection::connect(&format!("{name}-heard"), settings, true, &self.denials).await?;
        Ok(())
    }

    /// How often the connection was made on which agents and people are heard; none while there is none.
    pub fn hears_since(&self) -> Option<u64> {
        let hears = self.heard.connection_state() == async_nats::connection::State::Connected;
        hears.then(|| self.heard.statistics().connects.load(Ordering::Relaxed))
    }

    /// Whether there is a connection at this moment.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// How often this process has connected to the broker.
    pub fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// The subjects of this installation.
    pub fn subjects(&self) -> &SubjectSpace {
        &self.layout.subjects
    }

    /// Tells the broker what became of a delivery that is acknowledged on `subject`. It does not wait for an answer.
    pub(crate) async fn acknowledge(
        &self,
        subject: Subject,
        kind: AckKind,
    ) -> Result<(), async_nats::PublishError> {
        self.client.publish(subject, kind.into()).await
    }

    /// A handle on a stream, without asking the broker for it.
    pub async fn stream(
        &self,
        kind: StreamKind,
    ) -> Result<jetstream::stream::Stream<()>, Unavailable> {
        let name = self.layout.stream_name(kind);
        self.jetstream
            .get_stream_no_info(name)
            .await
            .map_err(|source| Operation::OpenStream.failed(source))
    }

    /// The dialect in which an agent wants to be written to: that of its card, else the one in which it wrote last. None where
    /// neither is known.
    pub(crate) fn dialect_of(&self, agent: &AgentId) -> Option<Dialect> {
        self.preferences.of(agent).map(|known| known.dialect)
    }

    /// The dialect of an agent's card, where it has one.
    pub(crate) fn dialect_by_card(&self, agent: &AgentId) -> Option<Dialect> {
        self.preferences.by_card(agent).map(|known| known.dialect)
    }

    /// Takes into account in which dialect an agent has written.
    pub(crate) fn wrote_in(&self, agent: &AgentId, dialect: Dialect) {
        self.preferences.wrote_in(agent, dialect);
    }

    /// Whether a body of so many bytes goes compressed: only to an agent whose card says that it reads that.
    pub(crate) fn compresses(&self, to: &Recipient, bytes: usize) -> bool {
        let Recipient::Agent(agent) = to else {
            return false;
        };
        bytes > self.compress_over_bytes
            && self
                .preferences
                .by_card(agent)
                .is_some_and(|known| known.gzip)
    }

    /// From now on, and in every copy of this connection, agents are written to as `cards` says, which a directory of the
    /// agents' cards answers. Only the first call counts.
    pub fn write_by_cards(&self, cards: CardLookup) {
        self.preferences.look_up(cards);
    }

    /// Root of a service's API subjects.
    pub fn api_root(&self, service: Service) -> String {
        self.subjects().api_root(service)
    }
}

/// The archive that the settings name; none where they name none.
fn archive_of(
    storage: &StorageSettings,
    jetstream: &jetstream::Context,
) -> Result<Option<Archive>, settings::Error> {
    let location = match storage.archive_place()? {
        ArchivePlace::Nowhere => return Ok(None),
        ArchivePlace::ObjectStore => {
            let bucket = Layout::new(&storage.prefix, storage.choices()).archive_bucket();
            Location::Bucket(Bucket::new(jetstream.clone(), bucket, storage.replicas))
        }
        ArchivePlace::S3(store) => Location::S3(store),
        ArchivePlace::Folder(folder) => Location::Folder(folder),
    };
    Ok(Some(Archive::new(location)))
}

/// A broker's time stamp in ours.
pub fn timestamp(nanoseconds: i128) -> Timestamp {
    Timestamp::from_unix_millis(i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX))
}
