//! Vectors of texts, for the comparison of meanings.
//!
//! [`Model`] runs a BERT sentence model in this process, on the processor: all-MiniLM-L6-v2, or another of the same shape.
//! [`Embedder`] adds a cache, because the examples of an agent are the same each time its card is read. Calls block while the
//! model computes, about 10 ms for a short text. A service makes them on threads that may block.

mod bert;
mod cache;
mod error;
mod model;
mod server;
mod weights;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use cache::Cache;
pub use error::Error;
pub use model::{MODEL_FILES, Model, TEXT_BYTES_MAX, TOKENS_MAX};
pub use server::{Server, ServerError, ServerSettings};

/// Settings of the model and its cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The folder of the model: `config.json`, `model.safetensors`, `tokenizer.json`. None for no vectors.
    pub model_dir: Option<PathBuf>,
    /// How many vectors are kept in memory; one has 1.5 KB with the usual model.
    pub cache: NonZeroUsize,
    /// How many texts are computed at once, each on a thread of its own.
    pub threads: NonZeroUsize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model_dir: None,
            cache: NonZeroUsize::new(10_000).unwrap_or(NonZeroUsize::MIN),
            threads: NonZeroUsize::MIN,
        }
    }
}

/// A model with a cache. Several threads may use it at once.
#[derive(Debug)]
pub struct Embedder {
    model: Model,
    cache: Cache,
}

impl Embedder {
    /// Reads the model that the settings name. None when they name no model.
    pub fn open(settings: &Settings) -> Result<Option<Self>, Error> {
        let Some(dir) = &settings.model_dir else {
            return Ok(None);
        };
        Ok(Some(Self {
            model: Model::open(dir, settings.threads)?,
            cache: Cache::new(settings.cache),
        }))
    }

    /// The vector of a text, of length 1.
    pub fn embed(&self, text: &str) -> Result<Arc<[f32]>, Error> {
        let key = Cache::key(text);
        if let Some(vector) = self.cache.get(&key) {
            return Ok(vector);
        }
        // Not under the cache's lock: somebody else's text must not wait for this one.
        let vector: Arc<[f32]> = self.model.embed(text)?.into();
        self.cache.put(key, Arc::clone(&vector));
        Ok(vector)
    }

    /// The vectors of texts, in their order.
    pub fn embed_all<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Arc<[f32]>>, Error> {
        texts.into_iter().map(|text| self.embed(text)).collect()
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.model.dimensions()
    }
}
