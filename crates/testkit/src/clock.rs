//! Services whose clock is wrong.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use concord_installation::{SERVICES, binary_name};

use crate::programs::{binaries, root};

/// The services' programs in `directory`, each with a clock that is so many seconds ahead; behind when there are fewer than 0. None, and
/// a line that says so, where there is no libfaketime.
///
/// # Panics
/// When they cannot be written.
pub fn binaries_with_clock(directory: &Path, ahead_s: i32) -> Option<PathBuf> {
    let output = Command::new(root().join("scripts/faketime")).output();
    let output = output.expect("scripts/faketime runs");
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        println!("SKIPPED, no clock can be made wrong: {why}");
        return None;
    }
    let library = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let folder = directory.join(format!("clock{ahead_s}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    for service in SERVICES {
        let name = binary_name(service);
        let program = binaries().join(&name);
        // Waiting is not to be affected: that goes by another clock.
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD='{library}' FAKETIME='{ahead_s:+}s' FAKETIME_DONT_FAKE_MONOTONIC=1\nexec '{}' \"$@\"\n",
            program.display()
        );
        let path = folder.join(name);
        std::fs::write(&path, script).expect("a script");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, all).expect("it can be run");
    }
    Some(folder)
}
