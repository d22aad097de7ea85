//! Folders that a command fills, and that their owner alone may read: they hold what agents and people have said.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use concord_runtime::service::shutdown;
use tokio_util::sync::CancellationToken;

use crate::shared::failure::Failure;

/// A folder that was empty, or was made.
pub(crate) struct OwnFolder {
    path: PathBuf,
    /// Whether it was made for this.
    is_new: bool,
}

impl OwnFolder {
    /// Makes the folder. Nothing is written over: where it is not empty, the failure has this advice.
    pub(crate) fn begin(path: &Path, advice: &str) -> Result<Self, Failure> {
        let made = |made: std::io::Result<()>| made.map_err(|error| cannot("made", path, &error));
        let above = path.ancestors().take_while(|one| !is_there(one));
        let missing: Vec<&Path> = above.collect();
        if let Some(parent) = path.parent() {
            made(own_folders().recursive(true).create(parent))?;
        }
        let is_new = match own_folders().create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            other => made(other).map(|()| true)?,
        };
        for new in missing {
            sync_folder(folder_of(new))?;
        }
        let entries = std::fs::read_dir(path);
        let mut entries = entries.map_err(|error| cannot("read", path, &error))?;
        if entries.next().is_some() {
            return Err(Failure::usage(format!(
                "{} is not empty; {advice}",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            is_new,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Has it filled, until SIGTERM or Ctrl-C: what is not complete is removed, as [`Self::discard`] does.
    pub(crate) async fn fill<T>(
        self,
        filling: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let asked = asked_to_end()?;
        let filled = tokio::select! {
            filled = filling => filled,
            () = asked.cancelled() => Err(Failure::failed("interrupted")),
        };
        filled.map_err(|failure| self.discard(failure))
    }

    /// Removes what was written before it failed, where the folder was made for it: the failure, with what is left.
    pub(crate) fn discard(self, failure: Failure) -> Failure {
        let shown = self.path.display();
        if !self.is_new {
            return failure.and(format!("what was written stays there: {shown}"));
        }
        match std::fs::remove_dir_all(&self.path) {
            Ok(()) => failure.and(format!("{shown} is removed")),
            Err(error) => failure.and(cannot("removed", &self.path, &error)),
        }
    }
}

/// Cancelled by SIGTERM and Ctrl-C.
pub(crate) fn asked_to_end() -> Result<CancellationToken, Failure> {
    shutdown::on_signal()
        .map_err(|error| Failure::failed(format!("signals cannot be waited for: {error}")))
}

fn own_folders() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Whether there is such a folder; an empty path is where the command runs.
fn is_there(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

/// The folder that something is in.
fn folder_of(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

/// Has the disk take the names of what is in a folder: without them what it has of the files is lost.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Failure> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot("written", path, &error))
}

/// Makes a folder in such a one.
pub(crate) fn new_folder(path: &Path) -> Result<(), Failure> {
    let made = own_folders().create(path);
    made.map_err(|error| cannot("made", path, &error))
}

/// Makes a file in such a one.
pub(crate) fn new_file(path: &Path) -> Result<File, Failure> {
    let mut options = File::options();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| cannot("made", path, &error))
}

pub(crate) fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_above_it_are_made_however_many_are_missing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/c");
        let begun = OwnFolder::begin(&path, "").unwrap();
        assert!(begun.is_new && path.is_dir());
        assert!(!OwnFolder::begin(&path, "").unwrap().is_new);
        new_file(&path.join("one")).unwrap();
        assert!(OwnFolder::begin(&path, "name another").is_err());
    }

    #[test]
    fn what_has_no_folder_is_where_the_command_runs() {
        for (path, folder) in [("a/b", "a"), ("a", "."), ("/a", "/"), ("./a", ".")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
        assert!(is_there(Path::new("")));
    }
}
