//! Settings of waking.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use concord_domain::activation::WINDOW_MAX;
use concord_embedding::{ServerSettings, Settings as EmbeddingSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Error, KeySource, read_key};

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
    /// How many messages an agent's context window has: what it is given of a conversation when it wakes, and reads with the verb
    /// `context`. 20 at most.
    #[schemars(range(max = 20))]
    pub context_messages: u8,
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
            context_messages: 20,
        }
    }
}

impl WakeSettings {
    /// Checks what the types do not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if usize::from(self.context_messages) <= WINDOW_MAX {
            return Ok(());
        }
        let message = format!("at most {WINDOW_MAX} messages are remembered for an agent");
        Err(Error::new("wake.context_messages", message))
    }

    /// What the model is opened with.
    pub(crate) fn embedding(&self) -> EmbeddingSettings {
        let (model_dir, cache) = (self.model_dir.clone(), self.vectors_max);
        EmbeddingSettings {
            model_dir,
            cache,
            ..EmbeddingSettings::default()
        }
    }

    /// Reads the settings of the embedding server. None where no server is set.
    pub(crate) fn server(&self) -> Result<Option<ServerSettings>, Error> {
        let Some(settings) = &self.embeddings else {
            return Ok(None);
        };
        if self.model_dir.is_some() {
            let message = "leave out wake.model_dir or wake.embeddings";
            return Err(Error::new(KEY, message));
        }
        let source = KeySource {
            env: settings.key_env.as_ref(),
            file: settings.key_file.as_ref(),
            names: ("key_env", "key_file"),
        };
        let server = ServerSettings {
            base_url: settings.base_url.clone(),
            model: settings.model.clone(),
            key: read_key(KEY, &source)?.map(|(_, secret)| secret.reveal().to_owned()),
            timeout: Duration::from_millis(settings.timeout_ms),
            cache: self.vectors_max,
        };
        server
            .check()
            .map_err(|error| Error::new(KEY, error.to_string()))?;
        Ok(Some(server))
    }
}
