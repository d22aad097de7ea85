//! Names and storage on the broker, and where cases that are over go.

use std::path::PathBuf;
use std::time::Duration;

use concord_archive::{S3, S3Settings};
use concord_events::topology::StorageChoices;
use concord_wire::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::error_chain::ErrorChain;

/// The least that streams can be limited to: the largest message fits into the smallest share.
const STORAGE_BYTES_MIN: u64 = 100_000_000;

/// Names and storage on the broker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSettings {
    /// First token of every subject, and in capitals of every stream name: several installations fit in one account.
    pub prefix: Token,
    /// Copies of each stream: 1 on a laptop, 3 in production.
    pub replicas: usize,
    /// Days that messages and dead letters are kept. Facts are kept for ever, those of archived cases in the archive.
    pub message_days: u64,
    /// Bytes that all streams together may take of the broker's disk; 0 for no limit. Messages take at most half, urgent ones and
    /// memory a tenth each; what they leave is kept for events, deadlines and dead letters. See `docs/operating.md`.
    pub bytes_max: u64,
    /// Bytes of the object store in which payloads over 1 MB travel; they are kept as long as messages.
    pub payload_store_bytes: u64,
    /// Bytes of the largest such payload that is read.
    pub payload_bytes_max: u64,
    /// Bytes of such payloads that one agent may have stored by the coordinator at once, counted in parts of 512 KiB; what is more is
    /// refused, until earlier ones expire. 0 for no limit.
    pub payload_agent_bytes_max: u64,
    /// Where cases that are over are archived: a folder that the escalation timers and whoever reads see alike, `s3://BUCKET/PREFIX`
    /// for a store that speaks S3, or `object-store` for the broker's own. Empty for none. See `docs/archive.md`.
    pub archive: String,
    /// Seconds after the last message of a case that is over until it is archived and removed from the streams; 0 for never.
    /// Choose more than an agent that takes part may be away.
    pub archive_after_s: u64,
    /// How the store of `s3://BUCKET/PREFIX` is reached.
    pub s3: S3Settings,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            prefix: Token::fixed(concord_wire::subject::DEFAULT_PREFIX),
            replicas: 1,
            message_days: 90,
            bytes_max: 0,
            payload_store_bytes: 1 << 30,
            payload_bytes_max: concord_encoding::PAYLOAD_BYTES_MAX,
            payload_agent_bytes_max: 256 << 20,
            archive: String::new(),
            archive_after_s: 0,
            s3: S3Settings::default(),
        }
    }
}

impl StorageSettings {
    /// What the layout needs.
    pub fn choices(&self) -> StorageChoices {
        StorageChoices {
            replicas: self.replicas,
            message_age: Duration::from_secs(self.message_days * 86_400),
            bytes_max: (self.bytes_max > 0).then_some(self.bytes_max),
        }
    }
}

/// What `storage.archive` names.
pub(crate) enum ArchivePlace {
    /// Nothing.
    Nowhere,
    /// The broker's own object store.
    ObjectStore,
    /// A store that speaks S3.
    S3(S3),
    /// A folder.
    Folder(PathBuf),
}

impl StorageSettings {
    /// The place of the archive, which is not looked at.
    pub(crate) fn archive_place(&self) -> Result<ArchivePlace, Error> {
        let wrong = |message: String| Error::Value {
            key: "storage.archive".into(),
            message,
        };
        match self.archive.as_str() {
            "" => Ok(ArchivePlace::Nowhere),
            "object-store" => Ok(ArchivePlace::ObjectStore),
            address if address.starts_with("s3://") => {
                let store = S3::new(address, &self.s3);
                let store = store.map_err(|error| wrong(ErrorChain(&error).to_string()))?;
                Ok(ArchivePlace::S3(store))
            }
            other if other.contains("://") => Err(wrong(format!(
                "{other:?} is none of the places there are: a folder, s3://BUCKET/PREFIX, or object-store"
            ))),
            folder => Ok(ArchivePlace::Folder(folder.into())),
        }
    }

    /// Refuses settings that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        self.archive_place()?;
        if self.archive_after_s > 0 && self.archive.is_empty() {
            return Err(Error::Value {
                key: "storage.archive_after_s".into(),
                message:
                    "It is set and storage.archive is not: name a folder there, s3://BUCKET/PREFIX, or object-store"
                        .into(),
            });
        }
        if (1..STORAGE_BYTES_MIN).contains(&self.bytes_max) {
            return Err(Error::Value {
                key: "storage.bytes_max".into(),
                message: format!(
                    "It is {} bytes and must be 0, for no limit, or at least {STORAGE_BYTES_MIN}: the largest message has 8 MB",
                    self.bytes_max
                ),
            });
        }
        Ok(())
    }
}
