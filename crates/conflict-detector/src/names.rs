//! Names that the sentence model takes for words of a policy's vocabulary.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use concord_domain::aggregates::detection::DetectionInput;
use concord_domain::rules::names;
use concord_embedding::Embedder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the conflict detector alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DetectorSettings {
    /// How names are compared by their meaning.
    pub names: NameSettings,
}

/// How names are compared by their meaning, where the policy of a case asks for it (`vocabulary.similarity_min`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NameSettings {
    /// The folder of the sentence model (scripts/model fetches one). Without it names are compared by their aliases alone.
    pub model_dir: Option<PathBuf>,
    /// Vectors of names that are kept in memory, 1.5 KB each.
    pub vectors_max: NonZeroUsize,
}

impl Default for NameSettings {
    fn default() -> Self {
        Self {
            model_dir: None,
            vectors_max: concord_embedding::Settings::default().cache,
        }
    }
}

/// Opens the model of the settings; none where they name none.
///
/// # Errors
/// It cannot be read: the operator relies on it.
pub(crate) fn open(
    settings: &NameSettings,
) -> Result<Option<Arc<Embedder>>, concord_embedding::Error> {
    let settings = concord_embedding::Settings {
        model_dir: settings.model_dir.clone(),
        cache: settings.vectors_max,
        ..concord_embedding::Settings::default()
    };
    Ok(Embedder::open(&settings)?.map(Arc::new))
}

/// Has the model say which names are words of the vocabulary, where the policy asks for it and there is a model.
pub(crate) async fn scored(
    mut input: DetectionInput,
    model: Option<&Arc<Embedder>>,
) -> DetectionInput {
    let (true, Some(model)) = (input.model_absent, model) else {
        return input;
    };
    let model = Arc::clone(model);
    let vocabulary = input.policy.vocabulary.clone();
    let unknown = names::unknown(&vocabulary, &input.findings);
    let computed = tokio::task::spawn_blocking(move || {
        let vector = |name: &str| match model.embed(name) {
            Ok(vector) => Some(vector),
            Err(error) => {
                tracing::warn!(%error, "A name has no vector; it is compared by its aliases.");
                None
            }
        };
        names::scored(&vocabulary, &unknown, vector)
    });
    if let Ok(scored) = computed.await {
        input.scored = scored;
        input.model_absent = false;
    }
    input
}
