//! A disk that can become full: a file system in memory, whose size is set to what is in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use concord_testkit::wait_for;

/// The size of a disk with room. Only what is written takes memory.
const ROOM: &str = "8g";
/// So many bytes fit still when it is made full; less than the least that a broker writes of one case.
const LEFT: u64 = 16 * 1024;

const PATIENCE: Duration = Duration::from_secs(60);

/// A file system of its own; it is taken away when this is dropped.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// One at this directory, which is made. None, and a line that says so, where this process may not mount anything.
    pub(crate) fn mount(directory: &Path) -> Option<Self> {
        std::fs::create_dir_all(directory).expect("a directory");
        let options = format!("size={ROOM}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
        let output = mount.arg(directory).output().ok();
        if output.is_some_and(|output| output.status.success()) {
            return Some(Self(directory.to_owned()));
        }
        println!("SKIPPED, no disk becomes full: this process may not mount a file system");
        None
    }

    /// Makes it full. What is being written at that moment may take more than was counted: then it is counted again.
    pub(crate) async fn fill(&self) {
        wait_for("the disk to be full", PATIENCE, async || {
            let used = self.used();
            self.resize(&(used + LEFT).to_string())
        })
        .await;
    }

    /// Makes room on it again.
    pub(crate) fn make_room(&self) {
        self.resize(ROOM).unwrap_or_else(|error| panic!("{error}"));
    }

    fn used(&self) -> u64 {
        let mut df = Command::new("df");
        let output = df.args(["--output=used", "-B1"]).arg(&self.0).output();
        let text = String::from_utf8(output.expect("df is there").stdout).expect("text");
        let number = text.lines().nth(1).map(str::trim);
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    fn resize(&self, size: &str) -> Result<(), String> {
        let options = format!("remount,size={size}");
        let mut mount = Command::new("mount");
        let output = mount.args(["-o", &options]).arg(&self.0).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: nothing that still looks at it may keep it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
