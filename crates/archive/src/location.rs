//! Where the files of an archive are kept.

mod bucket;
mod folder;
mod s3;

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;

pub use bucket::Bucket;
pub use s3::{AddressError, Refusal, S3, S3Error, S3Settings};

/// Why a place cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The file system says no.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The broker does not do it.
    #[error("the broker's object store does not work")]
    Bucket(#[source] async_nats::Error),
    /// The broker sends nothing of a file, or of the names.
    #[error("the broker's object store has sent nothing for {} seconds", bucket::SILENT_MAX.as_secs())]
    Silent,
    /// The broker's object store has lost data of a file.
    #[error("its description is there, and its data is lost: {stored} of {parts} parts are stored")]
    Incomplete {
        /// Parts that are stored.
        stored: usize,
        /// Parts that the file has.
        parts: usize,
    },
    /// The S3-compatible store does not do it.
    #[error(transparent)]
    S3(#[from] S3Error),
}

/// A place of files under names with `/`.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // A process has one.
pub enum Location {
    /// A folder, which all timers and readers must see alike.
    Folder(PathBuf),
    /// An object store of the broker.
    Bucket(Bucket),
    /// A part of a bucket in an S3-compatible store.
    S3(S3),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Bucket(bucket) => write!(f, "{bucket}"),
            Self::S3(store) => write!(f, "{store}"),
        }
    }
}

impl Location {
    /// Writes a file whole or not at all; done when it would survive a loss of power. The same file may be written again. A folder
    /// is made only for the first: one that is gone later is a volume that is not mounted.
    pub(crate) async fn write(
        &self,
        name: &str,
        bytes: Bytes,
        is_first: bool,
    ) -> Result<(), LocationError> {
        match self {
            Self::Folder(path) => Ok(folder::write(&path.join(name), &bytes, is_first).await?),
            Self::Bucket(bucket) => bucket.write(name, &bytes).await,
            Self::S3(store) => Ok(store.write(name, bytes).await?),
        }
    }

    /// Reads a file; none where there is none of this name.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Bytes>, LocationError> {
        match self {
            Self::Folder(path) => Ok(folder::read(&path.join(name)).await?),
            Self::Bucket(bucket) => bucket.read(name).await,
            Self::S3(store) => Ok(store.read(name).await?),
        }
    }

    /// Removes a file; nothing where there is none of this name.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), LocationError> {
        match self {
            Self::Folder(path) => Ok(folder::remove(&path.join(name)).await?),
            Self::Bucket(bucket) => bucket.remove(name).await,
            Self::S3(store) => Ok(store.remove(name).await?),
        }
    }

    /// The names of the files in a part of the place, in order and without it.
    pub(crate) async fn list(&self, part: &str) -> Result<Vec<String>, LocationError> {
        let mut names = match self {
            Self::Folder(path) => folder::list(&path.join(part)).await?,
            Self::Bucket(bucket) => bucket.list(part).await?,
            Self::S3(store) => store.list(part).await?,
        };
        names.sort();
        Ok(names)
    }
}
