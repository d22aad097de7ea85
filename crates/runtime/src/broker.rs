//! The connection to the broker.

pub(crate) mod delivery_info;
pub mod message_lookup;
pub mod non_event;
pub mod provision;
pub mod publish;
pub(crate) mod pull;
pub(crate) mod raw_message;
pub mod shared_value;
mod unavailable;

use std::time::Duration;

use async_nats::jetstream::{self, AckKind, context::ContextBuilder};
use async_nats::{ConnectOptions, Event, HeaderMap, Subject};
use bytes::Bytes;
use concord_events::topology::{BROKER_VERSION_MIN, Layout, StreamKind};
use concord_wire::subject::{Service, SubjectSpace};
use concord_wire::{AgentId, Dialect, Envelope, Recipient, Timestamp, header};
use futures::{Stream, StreamExt};

use crate::codec::claim_check::Payloads;
use crate::codec::dialect;
use crate::codec::trace::Trace;
use crate::codec::wire_preferences::{Speech, SpokenBy};
use crate::event_store;
use crate::service::settings::{BrokerSettings, StorageSettings};

pub use unavailable::{Operation, Unavailable};

/// How long the broker may take for one answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection is tested. A broker behind a black hole is noticed after two of these; the client's own
/// default of a minute leaves a service hanging for as long.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Why there is no broker to work with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection.
    #[error("no connection to NATS at {servers}; is nats-server running there?")]
    Connect {
        /// Where it was tried.
        servers: String,
        /// Why it failed.
        source: async_nats::ConnectError,
    },
    /// The credentials file cannot be read.
    #[error("the credentials file {path} cannot be read")]
    Credentials {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The broker is too old.
    #[error(
        "nats-server {found} is too old: Concord needs {}.{} or newer, for message schedules. Upgrade the broker.",
        BROKER_VERSION_MIN.0,
        BROKER_VERSION_MIN.1
    )]
    TooOld {
        /// Its version.
        found: String,
    },
    /// Server addresses that cannot be parsed.
    #[error("{servers:?} is not a list of NATS addresses such as nats://127.0.0.1:4222")]
    Address {
        /// What was given.
        servers: String,
        /// Why.
        source: std::io::Error,
    },
}

/// What was heard as it was published.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Its subject.
    pub subject: String,
    /// The dialect that its header declares.
    pub dialect: Option<String>,
    /// Its body, as it was before it was compressed.
    pub payload: Bytes,
}

/// A connection with the names of one installation. Cheap to clone.
#[derive(Clone)]
pub struct Broker {
    /// The connection.
    pub client: async_nats::Client,
    /// JetStream on it.
    pub jetstream: jetstream::Context,
    /// Subjects, streams and consumers.
    pub layout: std::sync::Arc<Layout>,
    speech: std::sync::Arc<Speech>,
    compress_over_bytes: usize,
    pub(crate) payloads: std::sync::Arc<Payloads>,
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
        let servers = broker.servers.clone();
        let addresses: Vec<async_nats::ServerAddr> = servers
            .split(',')
            .map(|address| address.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|source| Error::Address {
                servers: servers.clone(),
                source,
            })?;
        let mut delay = Duration::from_millis(100);
        let client = loop {
            let options = options(name, broker)?;
            match options.connect(&addresses[..]).await {
                Ok(client) => break client,
                Err(error) if wait => {
                    tracing::warn!(%servers, %error, "No connection to NATS yet; trying again.");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(source) => return Err(Error::Connect { servers, source }),
            }
        };
        check_version(&client.server_info().version)?;
        let jetstream = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .build(client.clone());
        let layout = std::sync::Arc::new(Layout::new(&storage.prefix, storage.choices()));
        let compress_over_bytes = broker.compress_over_bytes;
        let payloads = std::sync::Arc::new(Payloads::new(storage));
        Ok(Self {
            client,
            jetstream,
            layout,
            speech: Default::default(),
            compress_over_bytes,
            payloads,
        })
    }

    /// Whether there is a connection at this moment.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// The subjects of this installation.
    pub fn subjects(&self) -> &SubjectSpace {
        &self.layout.subjects
    }

    /// Tells the broker what became of a delivery that is acknowledged on `subject`; not awaited until it has heard.
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

    /// Stores one message under its `message_id`; done when it is stored.
    pub async fn publish(
        &self,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<(), event_store::Error> {
        self.publish_in(dialect::of_recipient(self, envelope), envelope, trace)
            .await
    }

    /// The same in a dialect, which the header says.
    pub async fn publish_in(
        &self,
        spoken: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<(), event_store::Error> {
        crate::event_store::nats::NatsEventStore::publish_all(self, &[(spoken, envelope)], trace)
            .await
    }

    /// The dialect that an agent wants to be written to, where that is known: that of its card, else the one that it spoke last.
    pub(crate) fn dialect_of(&self, agent: &AgentId) -> Option<Dialect> {
        self.speech.of(agent).map(|spoken| spoken.dialect)
    }

    /// The dialect of an agent's card, where it has one.
    pub(crate) fn dialect_by_card(&self, agent: &AgentId) -> Option<Dialect> {
        self.speech.by_card(agent).map(|spoken| spoken.dialect)
    }

    /// Takes into account which dialect an agent has spoken.
    pub(crate) fn heard_in(&self, agent: &AgentId, dialect: Dialect) {
        self.speech.hear(agent, dialect);
    }

    /// Whether a body of so many bytes goes compressed: only to an agent that has said that it reads that.
    pub(crate) fn compresses(&self, to: &Recipient, bytes: usize) -> bool {
        let Recipient::Agent(agent) = to else {
            return false;
        };
        bytes > self.compress_over_bytes
            && self.speech.by_card(agent).is_some_and(|spoken| spoken.gzip)
    }

    /// From now on, and in every copy of this connection, agents are written to as `spoken_by` says: for a directory of the
    /// agents' cards. Only the first call counts.
    pub fn speak(&self, spoken_by: SpokenBy) {
        self.speech.look_up(spoken_by);
    }

    /// Stores one message under its `message_id`, unless its sender has said something to the same recipient under that id
    /// already: then that stands, and this is false. For answers that would not be the same a second time.
    pub async fn publish_first(
        &self,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<bool, event_store::Error> {
        crate::event_store::nats::NatsEventStore::publish_first(self, envelope, trace).await
    }

    /// Whatever is published on subjects that match `filter` from now on, with what was lost while there was no connection
    /// left out.
    pub async fn hear(
        &self,
        filter: String,
    ) -> Result<impl Stream<Item = (String, Bytes)> + Send + Unpin + use<>, Unavailable> {
        let heard = self
            .client
            .subscribe(filter)
            .await
            .map_err(|source| Operation::Subscribe.failed(source))?;
        Ok(heard.map(|message| (message.subject.to_string(), message.payload)))
    }

    /// The same with the dialect that the header declares; in a group each message is given to one of its members.
    pub async fn listen(
        &self,
        filter: String,
        group: Option<&'static str>,
    ) -> Result<impl Stream<Item = Heard> + Send + Unpin + use<>, Unavailable> {
        let subscribed = match group {
            Some(group) => self.client.queue_subscribe(filter, group.to_owned()).await,
            None => self.client.subscribe(filter).await,
        };
        let heard = subscribed.map_err(|source| Operation::Subscribe.failed(source))?;
        Ok(heard.map(|message| {
            let declared = message
                .headers
                .as_ref()
                .and_then(|headers| headers.get(header::DIALECT));
            let dialect = declared.map(|value| value.as_str().to_owned());
            // What cannot be expanded cannot be read as it is either, so it may as well stay so.
            let plain = dialect::plain(&message.payload, message.headers.as_ref())
                .ok()
                .map(|body| body.into_owned());
            let payload = plain.map_or(message.payload, Bytes::from);
            Heard {
                subject: message.subject.to_string(),
                dialect,
                payload,
            }
        }))
    }

    /// Root of a service's API subjects.
    pub fn api_root(&self, service: Service) -> String {
        self.subjects().api_root(service)
    }
}

fn options(name: &str, broker: &BrokerSettings) -> Result<ConnectOptions, Error> {
    let mut options = ConnectOptions::new()
        .name(name)
        .ping_interval(PING_INTERVAL)
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .subscription_capacity(65_536)
        .client_capacity(8_192)
        .reconnect_delay_callback(|attempts| {
            let exponent = u32::try_from(attempts.min(6)).unwrap_or(6);
            Duration::from_millis(25 * 2_u64.pow(exponent)).min(Duration::from_secs(1))
        })
        .event_callback(|event| async move {
            match event {
                Event::Connected => tracing::info!("Connected to NATS."),
                Event::Disconnected => tracing::warn!("Lost the connection to NATS; reconnecting."),
                Event::ServerError(error) => tracing::error!(%error, "NATS reports an error."),
                other => tracing::debug!(event = %other, "NATS connection event."),
            }
        });
    if let Some(path) = &broker.credentials {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Credentials {
            path: path.display().to_string(),
            source,
        })?;
        options = options
            .credentials(&text)
            .map_err(|source| Error::Credentials {
                path: path.display().to_string(),
                source,
            })?;
    }
    if let (Some(user), Some(password)) = (&broker.user, &broker.password) {
        options = options.user_and_password(user.clone(), password.reveal().to_owned());
    }
    if let Some(token) = &broker.token {
        options = options.token(token.reveal().to_owned());
    }
    if let Some(authority) = &broker.tls_ca {
        options = options.add_root_certificates(authority.clone());
    }
    Ok(options)
}

fn check_version(version: &str) -> Result<(), Error> {
    let mut numbers = version
        .split(['.', '-'])
        .map(|part| part.parse::<u64>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < BROKER_VERSION_MIN {
        return Err(Error::TooOld {
            found: version.to_owned(),
        });
    }
    Ok(())
}

/// Headers with a message's id and trace context.
pub(crate) fn headers(message_id: &str, trace: Option<&Trace>) -> HeaderMap {
    let mut headers = trace_headers(trace);
    headers.insert(header::MESSAGE_ID, message_id);
    headers
}

/// Headers with a trace context alone.
pub(crate) fn trace_headers(trace: Option<&Trace>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(trace) = trace {
        headers.insert(header::TRACEPARENT, trace.parent.as_str());
        if let Some(state) = &trace.state {
            headers.insert(header::TRACESTATE, state.as_str());
        }
    }
    headers
}

/// The trace context that a message brings.
pub fn trace_of(headers: Option<&HeaderMap>) -> Option<Trace> {
    let headers = headers?;
    let parent = headers.get(header::TRACEPARENT)?.as_str().to_owned();
    Some(Trace {
        parent,
        state: headers
            .get(header::TRACESTATE)
            .map(|state| state.as_str().to_owned()),
    })
}

/// A broker's time stamp in ours.
pub fn timestamp(nanoseconds: i128) -> Timestamp {
    Timestamp::from_unix_millis(i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_broker_is_refused_by_name() {
        for (version, good) in [
            ("2.14.0", true),
            ("2.15.1", true),
            ("3.0.0-RC.1", true),
            ("2.9.10", false),
            ("2.13.9", false),
            ("", false),
        ] {
            assert_eq!(check_version(version).is_ok(), good, "{version}");
        }
        assert!(
            check_version("2.9.10")
                .unwrap_err()
                .to_string()
                .contains("2.9.10 is too old")
        );
    }
}
