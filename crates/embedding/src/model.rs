//! A sentence model in this process.

use std::num::NonZeroUsize;
use std::path::Path;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokenizers::{Tokenizer, TruncationParams};

use crate::bert::{Bert, Config};
use crate::error::Error;
use crate::weights::Weights;

/// The files that the folder of a model has.
pub const MODEL_FILES: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];
/// Bytes of a text that are read; the rest is ignored.
pub const TEXT_BYTES_MAX: usize = 4_096;
/// Tokens of a text that are read, with the two marks: as many as all-MiniLM-L6-v2 was trained with. This bounds the time of a call.
pub const TOKENS_MAX: usize = 128;

/// The beginning of a text that is read.
pub(crate) fn beginning(text: &str) -> &str {
    let end = (0..=TEXT_BYTES_MAX.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// A BERT sentence model, with the mean of its last layer as the vector.
pub struct Model {
    tokenizer: Tokenizer,
    bert: Bert,
    /// The threads that compute, so that no more cores are used than the settings allow. A text is computed on one thread.
    threads: ThreadPool,
}

impl Model {
    /// Reads a model from a folder with [`MODEL_FILES`]. Its weights are held in memory, 90 MB of the usual one.
    pub fn open(dir: &Path, threads: NonZeroUsize) -> Result<Self, Error> {
        let [config, weights, tokenizer] = MODEL_FILES.map(|name| dir.join(name));
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })
        };
        let malformed = |path: &Path, problem: String| Error::Malformed {
            path: path.to_owned(),
            problem,
        };
        let parsed: Config = serde_json::from_slice(&read(&config)?)
            .map_err(|error| malformed(&config, error.to_string()))?;
        parsed
            .check()
            .map_err(|problem| malformed(&config, problem))?;
        let mut parsed_tokenizer = Tokenizer::from_bytes(read(&tokenizer)?)
            .map_err(|error| malformed(&tokenizer, error.to_string()))?;
        let truncation = TruncationParams {
            max_length: TOKENS_MAX.min(parsed.positions()),
            ..Default::default()
        };
        parsed_tokenizer
            .with_padding(None)
            .with_truncation(Some(truncation))
            .map_err(|error| malformed(&tokenizer, error.to_string()))?;
        let file = read(&weights)?;
        let bert = Weights::read(&file).and_then(|tensors| Bert::new(&parsed, &tensors));
        let bert = bert.map_err(|problem| malformed(&weights, problem))?;
        let threads = ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .thread_name(|number| format!("embedding-{number}"))
            .build()
            .map_err(Error::Threads)?;
        Ok(Self {
            tokenizer: parsed_tokenizer,
            bert,
            threads,
        })
    }

    /// The vector of a text, of length 1.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, Error> {
        let tokens = self
            .tokenizer
            .encode_fast(beginning(text), true)
            .map_err(|error| Error::Tokens {
                problem: error.to_string(),
            })?;
        self.threads
            .install(|| self.bert.sentence(tokens.get_ids()))
            .map_err(|token| Error::UnknownToken { token })
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.bert.dimensions()
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("dimensions", &self.dimensions())
            .finish_non_exhaustive()
    }
}
