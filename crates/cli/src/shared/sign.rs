//! The key with which a person signs what they rule or review.

use std::path::PathBuf;

use clap::Args;
use concord_runtime::signing::SigningKey;

use crate::shared::failure::Failure;

/// The key with which a person signs.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// Sign with the secret key in this file; its public key is registered with the person.
    #[arg(long, value_name = "FILE", env = "CONCORD_KEY")]
    key: Option<PathBuf>,
}

impl SignArgs {
    /// The key; none where nothing is to be signed.
    pub fn read(&self) -> Result<Option<SigningKey>, Failure> {
        let read = |path: &PathBuf| {
            SigningKey::read(path).map_err(|error| Failure::usage(error.to_string()))
        };
        self.key.as_ref().map(read).transpose()
    }
}
