//! Names and storage on the broker, and where cases that are over go.

use std::path::{Path, PathBuf};
use std::time::Duration;

use concord_archive::{AddressError, S3, S3Settings};
use concord_events::topology::StorageChoices;
use concord_wire::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::error_chain::ErrorChain;

/// The least that streams can be limited to: the largest message fits into the smallest share.
const STORAGE_BYTES_MIN: u64 = 100_000_000;
/// The most copies of a stream that nats-server makes.
const REPLICAS_MAX: usize = 5;
/// The most days that nats-server can count: it keeps them in nanoseconds.
const MESSAGE_DAYS_MAX: u64 = i64::MAX as u64 / 86_400_000_000_000;
/// The place of an archive in the broker itself.
const OBJECT_STORE: &str = "object-store";

/// Names and storage on the broker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSettings {
    /// First token of every subject, and in capitals of every stream name: several installations fit in one account, and their prefixes
    /// differ in more than capitals.
    pub prefix: Token,
    /// Copies of each stream: 1 on a laptop, 3 in production, at most 5.
    pub replicas: usize,
    /// Days that messages and dead letters are kept; 0 for ever. Events are kept for ever, those of archived cases in the archive.
    pub message_days: u64,
    /// Bytes that all streams together may take of the broker's disk; 0 sets no limit, and leaves one that stands. Messages take at most half, urgent ones,
    /// memory and dead letters a tenth each; what they leave is kept for events and deadlines. See `docs/operating.md`.
    pub bytes_max: u64,
    /// Bytes of the object store in which payloads over 1 MB travel; they are kept as long as messages.
    pub payload_store_bytes: u64,
    /// Bytes of the largest such payload that is read.
    pub payload_bytes_max: u64,
    /// Bytes of such payloads that one agent may have stored by the coordinator at once, counted in parts of 512 KiB; what is more is
    /// refused, until earlier ones expire. 0 for no limit.
    pub payload_agent_bytes_max: u64,
    /// Where cases that are over are archived: a folder from `/` on that the escalation timers and whoever reads see alike, `s3://BUCKET/PREFIX`
    /// for a store that speaks S3, or `object-store` for the broker's own. Empty for none. See `docs/archive.md`.
    pub archive: String,
    /// Seconds after the last event of a case that is over, and the last word of those in it, until it is archived and removed
    /// from the streams; 0 for never. Choose more than an agent that takes part may be away. It may be at most nine tenths of
    /// `message_days`: older messages are not stored any more, and a case would go to the archive without what was said in it.
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
            message_age: Duration::from_secs(self.message_days.saturating_mul(86_400)),
            bytes_max: (self.bytes_max > 0).then_some(self.bytes_max),
        }
    }
}

/// Whether a place begins like `s3:`: slips among them would be folders.
fn has_scheme(place: &str) -> bool {
    let scheme = place.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    }) || place.contains("://")
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
            OBJECT_STORE => Ok(ArchivePlace::ObjectStore),
            address if address.starts_with("s3://") => {
                let store = S3::new(address, &self.s3);
                let store = store.map_err(|error| match error {
                    AddressError::Tls(error) => Error::File {
                        key: "storage.s3.ca".into(),
                        message: error.to_string(),
                    },
                    other => wrong(ErrorChain(&other).to_string()),
                })?;
                Ok(ArchivePlace::S3(store))
            }
            other if has_scheme(other) => Err(wrong(format!(
                "{other:?} is none of the places there are: a folder, s3://BUCKET/PREFIX, or object-store"
            ))),
            folder if Path::new(folder).is_absolute() => Ok(ArchivePlace::Folder(folder.into())),
            // Processes have working directories of their own, and cases leave the streams for what is there.
            relative => Err(wrong(format!(
                "{relative:?} is no place: a folder begins with /, and the others are s3://BUCKET/PREFIX and object-store"
            ))),
        }
    }

    /// A place as somebody names it on a command line: a folder is looked for where they are.
    pub fn archive_from_here(place: &str) -> String {
        if place.is_empty() || place == OBJECT_STORE || has_scheme(place) {
            return place.to_owned();
        }
        let folder = std::path::absolute(place);
        folder.map_or_else(|_| place.to_owned(), |folder| folder.display().to_string())
    }

    /// Looks at the file with the credentials of the store, where there is one. A start does not, because the file is read for each
    /// request, and may come later.
    pub(crate) fn check_files(&self) -> Result<(), Error> {
        match self.archive_place()? {
            ArchivePlace::S3(store) => store.check_credentials().map_err(|error| Error::File {
                key: "storage.s3.credentials_file".into(),
                message: error.to_string(),
            }),
            _ => Ok(()),
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
        self.check_age()?;
        self.check_limits()
    }

    /// Refuses to archive cases whose messages have expired by then. The tenth that is left is for what a case itself takes.
    fn check_age(&self) -> Result<(), Error> {
        let (after, days) = (self.archive_after_s, self.message_days);
        let most = days.saturating_mul(86_400) / 10 * 9;
        if days == 0 || after <= most {
            return Ok(());
        }
        Err(Error::Value {
            key: "storage.archive_after_s".into(),
            message: format!(
                "It is {after} and may be at most {most}, nine tenths of storage.message_days ({days}): a case would be archived without \
                 its messages, which are not stored any more by then"
            ),
        })
    }

    /// Refuses what the broker can never do: it would be tried for minutes, and the cause be hard to see.
    fn check_limits(&self) -> Result<(), Error> {
        let most = |key: &str, value: u64, most: u64| {
            let message = format!("It is {value} and may be at most {most}");
            let key = key.to_owned();
            (value > most).then_some(Error::Value { key, message })
        };
        let days = most("storage.message_days", self.message_days, MESSAGE_DAYS_MAX);
        let copies = most(
            "storage.replicas",
            self.replicas as u64,
            REPLICAS_MAX as u64,
        );
        days.or(copies).map_or(Ok(()), Err)
    }
}
