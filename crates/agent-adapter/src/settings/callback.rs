//! Settings of the answers that hosted agents give later.

use std::net::SocketAddr;
use std::path::PathBuf;

use concord_runtime::service::settings::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Error;

/// Fewest characters of the key.
const SECRET_MIN: usize = 32;

/// Where hosted agents that answer a message with status 202 give their answer later.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallbackSettings {
    /// Where to listen, for example `0.0.0.0:8090`; nobody can answer later when absent.
    pub listen: Option<String>,
    /// How agents reach that, for example `https://concord.example.org/callback`; any replica may be behind it.
    pub public_url: Option<String>,
    /// Key of the addresses that agents are given, at least 32 characters, the same for all replicas; best given by the
    /// environment or by `secret_file`.
    pub secret: Option<Secret>,
    /// File with the key.
    pub secret_file: Option<PathBuf>,
    /// How long such an address can be used at most, in milliseconds; never beyond the message's own deadline.
    pub lifetime_ms: u64,
}

impl Default for CallbackSettings {
    fn default() -> Self {
        Self {
            listen: None,
            public_url: None,
            secret: None,
            secret_file: None,
            lifetime_ms: 600_000,
        }
    }
}

/// Where answers are posted, parsed from the settings.
#[derive(Debug)]
pub(crate) struct CallbackConfig {
    pub(crate) listen: SocketAddr,
    /// How agents reach `listen`, without a slash at its end.
    pub(crate) public_url: String,
    /// The key that signs the addresses.
    pub(crate) secret: Secret,
    /// How long an address can be used at most.
    pub(crate) lifetime_ms: u64,
}

impl CallbackConfig {
    /// Parses the settings. None when agents cannot answer later.
    pub(crate) fn parse(settings: &CallbackSettings) -> Result<Option<Self>, Error> {
        let Some(listen) = &settings.listen else {
            let unused = settings.public_url.is_some()
                || settings.secret.is_some()
                || settings.secret_file.is_some();
            let message = "public_url and secret are of no use without listen";
            return if unused {
                Err(Error::new("callback.listen", message))
            } else {
                Ok(None)
            };
        };
        let form = "write an address and a port, such as 0.0.0.0:8090";
        let listen = listen
            .parse()
            .map_err(|_| Error::new("callback.listen", form))?;
        let missing = || {
            Error::new(
                "callback.public_url",
                "say how agents reach callback.listen",
            )
        };
        let public_url = settings.public_url.as_deref().ok_or_else(missing)?;
        let url = Url::parse(public_url)
            .map_err(|error| Error::new("callback.public_url", error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https")
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(Error::new(
                "callback.public_url",
                "write an address such as https://example.org/callback",
            ));
        }
        let secret = read_secret(settings)?;
        if secret.reveal().len() < SECRET_MIN {
            let form = format!(
                "it has fewer than {SECRET_MIN} characters; for example: head -c 32 /dev/urandom | base64"
            );
            return Err(Error::new("callback.secret", form));
        }
        if settings.lifetime_ms == 0 {
            return Err(Error::new("callback.lifetime_ms", "it must be at least 1"));
        }
        let public_url = public_url.trim_end_matches('/').to_owned();
        Ok(Some(Self {
            listen,
            public_url,
            secret,
            lifetime_ms: settings.lifetime_ms,
        }))
    }
}

fn read_secret(settings: &CallbackSettings) -> Result<Secret, Error> {
    match (&settings.secret, &settings.secret_file) {
        (Some(_), Some(_)) => Err(Error::new(
            "callback.secret",
            "leave out secret or secret_file",
        )),
        (Some(secret), None) => Ok(secret.clone()),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Error::of_file(
                    "callback.secret_file",
                    format!("{} cannot be read: {error}", file.display()),
                )
            })?;
            Ok(Secret::new(text.trim()))
        }
        (None, None) => Err(Error::new(
            "callback.secret",
            "the addresses are signed, and there is no key",
        )),
    }
}
