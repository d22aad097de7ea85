//! Files of the directory: written whole or not at all, and secrets for their owner alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nkeys::KeyPair;

use crate::Error;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Its owner.
    Secret,
    /// Everybody who may enter the folder.
    Public,
}

impl Mode {
    fn bits(self) -> u32 {
        match self {
            Self::Secret => 0o600,
            Self::Public => 0o644,
        }
    }
}

/// Makes a folder that its owner alone may enter, unless it is there.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(Error::file(path))
}

/// Writes a file in place of what was there: a reader finds the old text or the new one, whole.
pub(super) fn write(path: &Path, text: &str, mode: Mode) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    // Left by a command that was ended while it wrote; nobody else writes here now.
    let _ = std::fs::remove_file(beside);
    write_new(beside, text, mode)?;
    std::fs::rename(beside, path).map_err(Error::file(path))
}

/// Writes a file that is not there yet, onto the disk.
pub(super) fn write_new(path: &Path, text: &str, mode: Mode) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode.bits());
    let write = || {
        let mut file = options.open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(Error::file(path))
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(Error::file(path))
}

/// The key whose seed is in a file, which nobody else may read.
pub(super) fn read_key(path: &Path) -> Result<KeyPair, Error> {
    let metadata = std::fs::metadata(path).map_err(Error::file(path))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(Error::Open(path.to_owned()));
    }
    KeyPair::from_seed(read(path)?.trim()).map_err(|_| Error::Damaged {
        path: path.to_owned(),
        why: "it holds no seed".to_owned(),
    })
}

/// Keeps others from changing the folder.
pub(super) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(".lock");
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(&path).map_err(Error::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(Error::file(&path)(error)),
    }
}
