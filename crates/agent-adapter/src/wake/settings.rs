//! Settings of waking.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use concord_embedding::Settings as EmbeddingSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom messages wake.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WakeSettings {
    /// Whether it is decided at all.
    pub enabled: bool,
    /// The folder of the sentence model (scripts/model fetches one). Without it messages are matched by letters alone, which
    /// finds fewer of the right agents.
    pub model_dir: Option<PathBuf>,
    /// Vectors of texts that are kept in memory, 1.5 KB each.
    pub vectors_max: NonZeroUsize,
}

impl Default for WakeSettings {
    fn default() -> Self {
        Self { enabled: true, model_dir: None, vectors_max: EmbeddingSettings::default().cache }
    }
}

impl WakeSettings {
    /// What the model is opened with.
    pub(super) fn embedding(&self) -> EmbeddingSettings {
        let (model_dir, cache) = (self.model_dir.clone(), self.vectors_max);
        EmbeddingSettings { model_dir, cache, ..EmbeddingSettings::default() }
    }
}
