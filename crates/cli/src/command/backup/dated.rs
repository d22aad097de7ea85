//! Backups that are named for the time at which they were begun, and the removal of old ones.

use std::path::{Path, PathBuf};

use concord_wire::Timestamp;

use super::directory;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::own_folder::cannot;

/// The name of a backup that is begun at this time: digits alone, so that names in their order are times in their order.
pub(super) fn name(at: Timestamp) -> String {
    let at = at.to_string();
    let seconds = at.split('.').next().unwrap_or_default();
    let digits = seconds.chars().filter(|one| !matches!(one, '-' | ':'));
    digits.chain(['Z']).collect()
}

fn is_name(text: &str) -> bool {
    let digits =
        |part: &str, number| part.len() == number && part.chars().all(|one| one.is_ascii_digit());
    let parts = text.strip_suffix('Z').and_then(|text| text.split_once('T'));
    parts.is_some_and(|(day, time)| digits(day, 8) && digits(time, 6))
}

/// Removes the oldest of the complete backups of a directory until so many are left. Whatever else is there stays.
pub(super) fn remove_older(parent: &Path, keep: usize) -> Result<Vec<PathBuf>, Failure> {
    let mut complete = backups(parent)?;
    complete.retain(|path| directory::is_complete(path));
    complete.truncate(complete.len().saturating_sub(keep));
    for old in &complete {
        std::fs::remove_dir_all(old).map_err(|error| cannot("removed", old, &error))?;
    }
    Ok(complete)
}

/// Removes what backups have left that were killed, but for the one that is made now. That something cannot be removed is no reason to
/// make no backup.
pub(super) fn remove_left(parent: &Path, own: &Path) {
    let found = backups(parent).unwrap_or_else(|failure| {
        output::complain(&failure.to_string());
        Vec::new()
    });
    for path in found {
        if path == own || !directory::is_left(&path) {
            continue;
        }
        match std::fs::remove_dir_all(&path) {
            Ok(()) => output::complain(&format!(
                "{} is removed: it was never complete",
                path.display()
            )),
            Err(error) => output::complain(&cannot("removed", &path, &error).to_string()),
        }
    }
}

/// What is named like a backup, the oldest first.
fn backups(parent: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(parent).map_err(|error| cannot("read", parent, &error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read", parent, &error))?;
        if entry.file_name().to_str().is_some_and(is_name) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_time_and_nothing_else_is_a_name() {
        let at = Timestamp::parse("2026-11-25T03:00:07.250Z").unwrap();
        assert_eq!(name(at), "20261125T030007Z");
        assert!(is_name(&name(at)));
        for other in [
            "2026-11-25",
            "20261125T030007",
            "20261125T03000xZ",
            "copy",
            "Z",
        ] {
            assert!(!is_name(other), "{other}");
        }
    }

    #[test]
    fn the_oldest_complete_backups_are_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, is_complete: bool| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            if is_complete {
                std::fs::write(path.join("manifest.json"), "{}").unwrap();
            }
            path
        };
        let first = make("20261123T030000Z", true);
        make("20261124T030000Z", false);
        make("by-hand", true);
        let last = ["20261125T030000Z", "20261126T030000Z"].map(|name| make(name, true));
        assert_eq!(remove_older(parent.path(), 2).unwrap(), [first]);
        assert!(last.iter().all(|path| path.is_dir()));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 4);
        assert!(remove_older(parent.path(), 2).unwrap().is_empty());
    }
}
