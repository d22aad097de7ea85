//! How the broker is reached, and as whom.

use std::path::PathBuf;

use async_nats::ServerAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{Error, Secret, secret};

/// The broker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerSettings {
    /// Addresses of nats-server, separated by commas.
    #[serde(serialize_with = "with_hidden_users")]
    pub servers: String,
    /// File with NATS credentials (JWT and seed).
    pub credentials: Option<PathBuf>,
    /// User name, with `password`.
    pub user: Option<String>,
    /// Password of `user`.
    pub password: Option<Secret>,
    /// File with the password, without the line break at its end.
    pub password_file: Option<PathBuf>,
    /// Token, instead of user and password.
    pub token: Option<Secret>,
    /// File with the certificate authority of the broker's TLS certificate.
    pub tls_ca: Option<PathBuf>,
    /// File with the certificate (PEM) that a broker which verifies its clients is shown; needs `tls_key`.
    pub tls_certificate: Option<PathBuf>,
    /// File with the key of `tls_certificate` (PEM).
    pub tls_key: Option<PathBuf>,
    /// Whether a broker that offers no TLS is refused. Without it whoever stands between can talk the connection out of TLS.
    pub tls_required: bool,
    /// Whether TLS begins before the broker has said anything, as its setting `handshake_first` asks for.
    pub tls_first: bool,
    /// Prefix of the subjects on which answers come, for a user who may subscribe to no other: `concord permissions` names it.
    pub inbox_prefix: Option<String>,
    /// Messages with more bytes than this go compressed to agents whose cards say that they read it.
    pub compress_over_bytes: usize,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        let servers = "nats://127.0.0.1:4222".to_owned();
        Self {
            servers,
            credentials: None,
            user: None,
            password: None,
            password_file: None,
            token: None,
            tls_ca: None,
            tls_certificate: None,
            tls_key: None,
            tls_required: false,
            tls_first: false,
            inbox_prefix: None,
            compress_over_bytes: 16_384,
        }
    }
}

/// Addresses with `instead` in place of the user and the password that stand in them.
pub(crate) fn without_users(servers: &str, instead: &str) -> String {
    let shown = servers.split(',').map(|address| {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let border = if scheme.is_empty() { "" } else { "://" };
        match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}{border}{instead}{host}"),
            None => address.to_owned(),
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

fn with_hidden_users<S: Serializer>(servers: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&without_users(servers, &format!("{}@", secret::HIDDEN)))
}

impl BrokerSettings {
    /// The addresses of `servers`.
    pub(crate) fn addresses(&self) -> std::io::Result<Vec<ServerAddr>> {
        let addresses = self.servers.split(',');
        addresses.map(|address| address.trim().parse()).collect()
    }

    /// An address without a host is read as one, to which nothing connects.
    fn has_empty_address(&self) -> bool {
        let mut addresses = self.servers.split(',');
        addresses.any(|address| address.trim().is_empty())
    }

    /// Refuses addresses that are none, and settings that contradict each other, or of which one is missing.
    pub fn check(&self) -> Result<(), Error> {
        let has_password = self.password.is_some() || self.password_file.is_some();
        let rows = [
            (
                "broker.servers",
                self.addresses().is_err() || self.has_empty_address(),
                "write addresses such as nats://127.0.0.1:4222, separated by commas",
            ),
            (
                "broker.password_file",
                self.password.is_some() && self.password_file.is_some(),
                "give the password or its file, not both",
            ),
            (
                "broker.password_file",
                self.password_file.is_some() && self.user.is_none(),
                "a password needs broker.user",
            ),
            (
                "broker.user",
                self.user.is_some() && !has_password,
                "a user needs broker.password or broker.password_file",
            ),
            (
                "broker.tls_key",
                self.tls_certificate.is_some() != self.tls_key.is_some(),
                "broker.tls_certificate and broker.tls_key need each other",
            ),
        ];
        let wrong = rows.into_iter().find(|(_, is_wrong, _)| *is_wrong);
        wrong.map_or(Ok(()), |(key, _, message)| {
            Err(Error::Value {
                key: key.to_owned(),
                message: message.to_owned(),
            })
        })
    }
}
