//! The errors of a model.

use std::path::PathBuf;

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the model cannot be read.
    #[error(
        "the model's file {path} cannot be read; `scripts/model` fetches the usual one, model_dir names its folder"
    )]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file of the model is not what it should be.
    #[error("the model's file {path} cannot be used: {problem}")]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The threads that compute cannot be started.
    #[error("no threads for the model")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// The text cannot be taken apart into tokens.
    #[error("the text cannot be taken apart into tokens: {problem}")]
    Tokens {
        /// The reason.
        problem: String,
    },
    /// The tokenizer is that of another model.
    #[error(
        "the weights have no row for token {token}: model.safetensors and tokenizer.json are of different models"
    )]
    UnknownToken {
        /// The number that the tokenizer gave it.
        token: u32,
    },
}
