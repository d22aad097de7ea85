//! Where the files of an archive are kept.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

/// Why a place cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The file system says no.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// A place of files under names with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder, which all timers and readers must see alike.
    Folder(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Location {
    /// Writes a file whole or not at all; done when it would survive a loss of power. The same file may be written again.
    pub(crate) async fn write(&self, name: &str, bytes: Bytes) -> Result<(), LocationError> {
        match self {
            Self::Folder(folder) => write_file(&folder.join(name), &bytes).await?,
        }
        Ok(())
    }

    /// Reads a file; none where there is none of this name.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Bytes>, LocationError> {
        match self {
            Self::Folder(folder) => match tokio::fs::read(folder.join(name)).await {
                Ok(bytes) => Ok(Some(bytes.into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Removes a file; nothing where there is none of this name.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), LocationError> {
        match self {
            Self::Folder(folder) => match tokio::fs::remove_file(folder.join(name)).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
        }
    }

    /// The names of the files in a part of the place, in order and without it.
    pub(crate) async fn list(&self, part: &str) -> Result<Vec<String>, LocationError> {
        let mut names = Vec::new();
        match self {
            Self::Folder(folder) => {
                let mut entries = match tokio::fs::read_dir(folder.join(part)).await {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
                    Err(error) => return Err(error.into()),
                };
                while let Some(entry) = entries.next_entry().await? {
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Writes beside the file, and puts it in its place when the disk has it.
async fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    tokio::fs::create_dir_all(folder).await?;
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = tokio::fs::File::create(&unfinished).await?;
    file.write_all(bytes).await?;
    file.sync_all().await?;
    drop(file);
    tokio::fs::rename(&unfinished, path).await?;
    // The name itself is safe only when the folder is.
    tokio::fs::File::open(folder).await?.sync_all().await
}
