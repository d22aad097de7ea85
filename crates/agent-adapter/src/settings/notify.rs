//! Settings of the notifications. Both channels are off until they are told where to send.

use std::path::PathBuf;

use concord_runtime::service::settings::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;

/// Notifications of people: when a debate waits for an expert, at half and at 90 % of the time, of provisional decisions
/// before a gate, and when what somebody answers for changes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySettings {
    /// By email.
    pub email: EmailSettings,
    /// By webhook.
    pub webhook: WebhookSettings,
    /// Notices older than this many milliseconds are skipped, as after the adapter was stopped for long; so are those
    /// whose time is over.
    pub age_max_ms: u64,
    /// Tries before a notice is given up and kept under `dead`.
    pub tries_max: u64,
    /// Wait after the first try that failed, in milliseconds; doubled after each further one.
    pub wait_first_ms: u64,
    /// Longest wait between two tries, in milliseconds.
    pub wait_max_ms: u64,
    /// How long one try may take, from looking up the name to the last answer, in milliseconds.
    pub timeout_ms: u64,
    /// Tries of one channel under way at once in this process.
    pub concurrency: usize,
    /// File with certificate authorities (PEM) to trust besides those of the system.
    pub tls_ca: Option<PathBuf>,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            email: EmailSettings::default(),
            webhook: WebhookSettings::default(),
            age_max_ms: 86_400_000,
            tries_max: 12,
            wait_first_ms: 5_000,
            wait_max_ms: 600_000,
            timeout_ms: 10_000,
            concurrency: 4,
            tls_ca: None,
        }
    }
}

/// Notifications by email.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmailSettings {
    /// The SMTP server. No mail is sent while there is none.
    pub host: Option<String>,
    /// Its port; by the kind of TLS 587, 465 or 25 when absent.
    pub port: Option<u16>,
    /// `starttls`, `tls` (from the first byte) or `none`.
    pub tls: Tls,
    /// User name, with a password.
    pub username: Option<String>,
    /// Password of `username`; best given by the environment or by `password_file`.
    pub password: Option<Secret>,
    /// File with the password, without the line break at its end.
    pub password_file: Option<PathBuf>,
    /// Who the mails are from, for example `Concord <concord@example.org>`.
    pub from: Option<String>,
    /// Mailboxes that are told of provisional decisions before a gate.
    pub gate_to: Vec<String>,
}

impl Default for EmailSettings {
    fn default() -> Self {
        Self {
            host: None,
            port: None,
            tls: Tls::Starttls,
            username: None,
            password: None,
            password_file: None,
            from: None,
            gate_to: Vec::new(),
        }
    }
}

/// How the connection to the SMTP server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tls {
    /// Not at all.
    None,
    /// After the greeting; nothing is sent to a server that does not offer it.
    Starttls,
    /// From the first byte.
    Tls,
}

/// Notifications by webhook.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// Who may be called: `example.org`, `example.org:8443`, or `http://10.0.0.7:8080` where there is no TLS. Nobody is
    /// called while there is none, because the addresses are written by strangers.
    pub hosts: Vec<String>,
    /// Whether addresses inside this machine and its network may be called, too.
    pub allow_private: bool,
    /// Key of the signatures, `whsec_...`; best given by the environment or by `secret_file`.
    pub secret: Option<Secret>,
    /// File with the key.
    pub secret_file: Option<PathBuf>,
    /// Address that is told of provisional decisions before a gate.
    pub gate_url: Option<String>,
}

impl NotifySettings {
    /// Refuses numbers that could not work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let numbers = [
            ("age_max_ms", self.age_max_ms),
            ("tries_max", self.tries_max),
            ("wait_first_ms", self.wait_first_ms),
            ("wait_max_ms", self.wait_max_ms),
            ("timeout_ms", self.timeout_ms),
            ("concurrency", self.concurrency as u64),
        ];
        match numbers.into_iter().find(|(_, number)| *number == 0) {
            Some((key, _)) => Err(Error::new(format!("notify.{key}"), "it must be at least 1")),
            None if self.tries_max > TRIES_MAX => Err(Error::new(
                "notify.tries_max",
                format!("it is at most {TRIES_MAX}"),
            )),
            None => Ok(()),
        }
    }
}

/// More tries than anybody waits for.
const TRIES_MAX: u64 = 1_000;

/// The secret that is given itself or in a file, if one is.
pub(crate) fn read_secret(
    key: &str,
    itself: Option<&Secret>,
    file: Option<&PathBuf>,
) -> Result<Option<Secret>, Error> {
    match (itself, file) {
        (Some(_), Some(_)) => Err(Error::new(
            format!("notify.{key}"),
            format!("it is given twice; leave out {key} or {key}_file"),
        )),
        (Some(secret), None) => Ok(Some(secret.clone())),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Error::of_file(
                    format!("notify.{key}_file"),
                    format!("{} cannot be read: {error}", file.display()),
                )
            })?;
            Ok(Some(Secret::new(text.trim_end_matches(['\r', '\n']))))
        }
        (None, None) => Ok(None),
    }
}
