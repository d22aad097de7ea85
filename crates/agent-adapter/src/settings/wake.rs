//! Settings of waking.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use concord_embedding::{Server, ServerSettings, Settings as EmbeddingSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hosted_agent::endpoint::{KeyPlace, secret};
use crate::settings::check::Error;

/// Where the settings of the embedding server stand.
const KEY: &str = "wake.embeddings";

/// Whom messages wake.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WakeSettings {
    /// Whether it is decided at all.
    pub enabled: bool,
    /// The folder of the sentence model (scripts/model fetches one). Without it messages are matched by letters alone, which
    /// finds fewer of the right agents.
    pub model_dir: Option<PathBuf>,
    /// A server that makes the vectors, in place of the model.
    pub embeddings: Option<EmbeddingServer>,
    /// Vectors of texts that are kept in memory, 1.5 KB each.
    pub vectors_max: NonZeroUsize,
}

/// A server with the API of OpenAI for embeddings: Ollama, TEI and others. While it fails, messages are matched by letters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingServer {
    /// Where the API begins, for example `http://127.0.0.1:11434/v1`; `/embeddings` is added.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The environment variable with its key, which is sent as a bearer token.
    #[serde(default)]
    pub key_env: Option<String>,
    /// A file with the key, instead.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// How long a call may take, and with it a message be delayed, in milliseconds.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

fn timeout_ms() -> u64 {
    1_000
}

impl Default for WakeSettings {
    fn default() -> Self {
        let vectors_max = EmbeddingSettings::default().cache;
        Self {
            enabled: true,
            model_dir: None,
            embeddings: None,
            vectors_max,
        }
    }
}

impl WakeSettings {
    /// What the model is opened with.
    pub(crate) fn embedding(&self) -> EmbeddingSettings {
        let (model_dir, cache) = (self.model_dir.clone(), self.vectors_max);
        EmbeddingSettings {
            model_dir,
            cache,
            ..EmbeddingSettings::default()
        }
    }

    /// The server, not asked yet; none where none is set.
    pub(crate) fn server(&self) -> Result<Option<Server>, Error> {
        let Some(settings) = &self.embeddings else {
            return Ok(None);
        };
        let names = ("key_env", "key_file");
        let place = KeyPlace {
            env: settings.key_env.as_ref(),
            file: settings.key_file.as_ref(),
            names,
        };
        let server = Server::new(&ServerSettings {
            base_url: settings.base_url.clone(),
            model: settings.model.clone(),
            key: secret(KEY, &place)?.map(|(_, secret)| secret.reveal().to_owned()),
            timeout: Duration::from_millis(settings.timeout_ms),
            cache: self.vectors_max,
        });
        server
            .map(Some)
            .map_err(|error| Error::new(KEY, error.to_string()))
    }

    /// Refuses what could not work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.model_dir.is_some() && self.embeddings.is_some() {
            return Err(Error::new(
                KEY,
                "leave out wake.model_dir or wake.embeddings",
            ));
        }
        self.server().map(|_| ())
    }
}
