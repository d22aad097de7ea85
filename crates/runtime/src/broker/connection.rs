//! How the connection to the broker is made: addresses, credentials, timeouts, and the version that is needed.

use std::time::Duration;

use async_nats::{Auth, AuthError, Client, ConnectOptions, Event, ServerAddr};
use concord_credentials::CredentialsFile;
use concord_events::topology::BROKER_VERSION_MIN;

use crate::broker::denials::Denials;
use crate::broker::tls_files;
use crate::error_chain::ErrorChain;
use crate::settings::{self, BrokerSettings, without_users};

/// How long the broker may take for one answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
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
        /// The path of the file.
        path: String,
        /// Why it cannot be used.
        source: std::io::Error,
    },
    /// The file with the password cannot be read.
    #[error("broker.password_file {path} cannot be read")]
    PasswordFile {
        /// The path of the file.
        path: String,
        /// Why it cannot be used.
        source: std::io::Error,
    },
    /// A file for TLS cannot be read, or holds something else.
    #[error("{setting} {path} cannot be read")]
    TlsFile {
        /// The setting that names it.
        setting: &'static str,
        /// The path of the file.
        path: String,
        /// Why it cannot be used.
        source: std::io::Error,
    },
    /// The client's certificate and its key are none for each other.
    #[error("broker.tls_certificate {certificate} and broker.tls_key {key} do not fit")]
    TlsPair {
        /// The path of the certificate.
        certificate: String,
        /// The path of the key.
        key: String,
        /// Why they cannot be used.
        source: async_nats::rustls::Error,
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
    /// The place of the archive cannot be used.
    #[error(transparent)]
    Archive(#[from] settings::Error),
    /// Server addresses that cannot be parsed.
    #[error("{servers:?} is not a list of NATS addresses such as nats://127.0.0.1:4222")]
    Address {
        /// The addresses as they were given.
        servers: String,
        /// Why it cannot be used.
        source: std::io::Error,
    },
}

/// Connects, waits until the broker is there, and checks its version. With `wait` the first connection is tried until it
/// succeeds. What the broker does not let the connection do, `denials` are told.
pub(super) async fn connect(
    name: &str,
    broker: &BrokerSettings,
    wait: bool,
    denials: &Denials,
) -> Result<Client, Error> {
    let servers = without_users(&broker.servers, "");
    let addresses = broker.addresses().map_err(|source| Error::Address {
        servers: servers.clone(),
        source,
    })?;
    let mut delay = Duration::from_millis(100);
    let client = loop {
        let options = options(name, broker, &addresses, denials)?;
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
    Ok(client)
}

fn options(
    name: &str,
    broker: &BrokerSettings,
    addresses: &[ServerAddr],
    denials: &Denials,
) -> Result<ConnectOptions, Error> {
    let (connection, denials) = (name.to_owned(), denials.clone());
    // What cannot be read is said at the start; later it is tried again with each connection.
    check_files(broker)?;
    let (own, known) = (broker.clone(), addresses.to_vec());
    let mut options = ConnectOptions::with_auth_callback(move |nonce| {
        let identity = identity(&own, &known, &nonce);
        let identity = identity.map_err(|error| AuthError::new(ErrorChain(&error).to_string()));
        async move { identity }
    });
    options = options
        .name(format!("{name} {}", own_process()))
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
        .event_callback(move |event| {
            happened(&connection, &event, &denials);
            std::future::ready(())
        });
    if let Some(prefix) = &broker.inbox_prefix {
        options = options.custom_inbox_prefix(prefix.clone());
    }
    if let Some(authority) = &broker.tls_ca {
        options = options.add_root_certificates(authority.clone());
    }
    if let (Some(certificate), Some(key)) = (&broker.tls_certificate, &broker.tls_key) {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    if broker.tls_required {
        options = options.require_tls(true);
    }
    if broker.tls_first {
        options = options.tls_first();
    }
    Ok(options)
}

/// This process in words, as it stands in the names of its connections: its id, and the machine where that is known. By it somebody who asks
/// the broker finds a process that answers nothing.
fn own_process() -> String {
    let pid = std::process::id();
    match host() {
        host if host.is_empty() => format!("pid {pid}"),
        host => format!("pid {pid} on {host}"),
    }
}

/// The name of the machine, which is that of the pod where there are pods; empty where it is not known.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// Says which of the files that the settings name cannot be used: the password's, the credentials', those for TLS.
pub(crate) fn check_files(broker: &BrokerSettings) -> Result<(), Error> {
    identity(broker, &[], b"")?;
    tls_files::check(broker)
}

fn happened(connection: &str, event: &Event, denials: &Denials) {
    match event {
        Event::Connected => {
            // It may be as somebody with other rights.
            denials.forget();
            tracing::info!(connection, "Connected to NATS.");
        }
        Event::Disconnected => {
            tracing::warn!(connection, "Lost the connection to NATS; reconnecting.");
        }
        Event::ServerError(error) => {
            denials.take(error);
            tracing::error!(%error, "NATS reports an error.");
        }
        other => tracing::debug!(event = %other, "NATS connection event."),
    }
}

/// As whom a connection is made. Files are read for each connection, so whoever has put a new one in place of an old one needs
/// to tell nobody.
fn identity(
    broker: &BrokerSettings,
    addresses: &[ServerAddr],
    nonce: &[u8],
) -> Result<Auth, Error> {
    let mut identity = Auth::new();
    if let Some(path) = &broker.credentials {
        let unusable = |source| Error::Credentials {
            path: path.display().to_string(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(unusable)?;
        let malformed = |form| std::io::Error::new(std::io::ErrorKind::InvalidData, form);
        let file = CredentialsFile::parse(&text).map_err(|form| unusable(malformed(form)))?;
        let signature = file.sign(nonce).map_err(|form| unusable(malformed(form)))?;
        identity.jwt = Some(file.token().to_owned());
        identity.signature = Some(signature);
    }
    let named = match (&broker.user, password(broker)?) {
        (Some(user), Some(password)) => Some((user.clone(), password)),
        _ => addresses.iter().find_map(user_of),
    };
    (identity.username, identity.password) = named.unzip();
    identity.token = broker.token.as_ref().map(|token| token.reveal().to_owned());
    Ok(identity)
}

/// The password of the broker's user, from the settings or from its file.
fn password(broker: &BrokerSettings) -> Result<Option<String>, Error> {
    if let Some(password) = &broker.password {
        return Ok(Some(password.reveal().to_owned()));
    }
    let Some(path) = &broker.password_file else {
        return Ok(None);
    };
    let unusable = |source| Error::PasswordFile {
        path: path.display().to_string(),
        source,
    };
    let text = std::fs::read_to_string(path).map_err(unusable)?;
    let password = text.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        // The broker would say no more than that it refuses the user.
        let empty = std::io::Error::new(std::io::ErrorKind::InvalidData, "it is empty");
        return Err(unusable(empty));
    }
    Ok(Some(password.to_owned()))
}

/// The user and the password that an address names, as in `nats://eva:secret@127.0.0.1:4222`. The client library passes over
/// them, and a broker with a user for those who name none would take whoever connects for that one.
fn user_of(address: &ServerAddr) -> Option<(String, String)> {
    Some((
        decoded(address.username()?),
        decoded(address.password().unwrap_or_default()),
    ))
}

/// A part of an address without its percent signs.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.first_chunk::<2>().filter(|_| *first == b'%');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = match code {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_an_address_is_used_and_not_shown() {
        let user = |address: &str| user_of(&address.parse().unwrap());
        let named = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(user("nats://eva:x@127.0.0.1:4222"), named("eva", "x"));
        assert_eq!(user("nats://eva:a%40b%2@127.0.0.1"), named("eva", "a@b%2"));
        assert_eq!(user("nats://127.0.0.1:4222"), None);
        assert_eq!(
            without_users("nats://eva:x@127.0.0.1:4222, 127.0.0.2,eva:p@h", ""),
            "nats://127.0.0.1:4222, 127.0.0.2,h"
        );
    }

    #[test]
    fn a_file_is_read_for_each_connection() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("password");
        let broker = BrokerSettings {
            user: Some("eva".to_owned()),
            password_file: Some(path.clone()),
            ..BrokerSettings::default()
        };
        let password = || identity(&broker, &[], b"").map(|auth| auth.password);
        assert!(password().is_err());
        for text in ["one", "two"] {
            std::fs::write(&path, format!("{text}\n")).unwrap();
            assert_eq!(password().unwrap().as_deref(), Some(text));
        }
        std::fs::write(&path, "\n").unwrap();
        let error = password().unwrap_err();
        assert!(ErrorChain(&error).to_string().contains("it is empty"));
    }

    #[test]
    fn credentials_that_are_none_are_refused_by_their_path() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("eva.creds");
        std::fs::write(&path, "nothing of use").unwrap();
        let broker = BrokerSettings {
            credentials: Some(path),
            ..BrokerSettings::default()
        };
        let error = identity(&broker, &[], b"").err().unwrap();
        let text = ErrorChain(&error).to_string();
        assert!(
            text.contains("eva.creds") && text.contains("no line between"),
            "{text}"
        );
    }

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
