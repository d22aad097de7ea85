//! The programs that tests run: nats-server and the services, as this checkout builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use concord_installation::{SERVICES, binary_name};

use crate::command::command;

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A nats-server, found or installed by `scripts/nats-server`.
///
/// # Panics
/// When there is none.
pub fn nats_server() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let output = Command::new(root().join("scripts/nats-server"))
            .output()
            .expect("scripts/nats-server runs");
        assert!(
            output.status.success(),
            "scripts/nats-server: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    };
    FOUND.get_or_init(find).clone()
}

/// The directory where Python finds what the servers of tests need, which is installed there when it is missing.
///
/// # Panics
/// When it cannot be installed.
pub fn python_tools() -> PathBuf {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let output = Command::new(root().join("scripts/python-tools"))
            .arg("--tests")
            .output();
        let output = output.expect("scripts/python-tools runs");
        assert!(
            output.status.success(),
            "scripts/python-tools: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    });
    root().join(".tools")
}

/// The directory with the services' programs, built as the running test is (debug or release) and up to date.
///
/// `CONCORD_BINARIES` names a directory to use as it is.
///
/// # Panics
/// When they cannot be built.
pub fn binaries() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let services: Vec<String> = SERVICES.into_iter().map(binary_name).collect();
    BUILT
        .get_or_init(|| programs_of(&services.iter().map(String::as_str).collect::<Vec<_>>()))
        .clone()
}

/// The directory with the programs of these packages, built like [`binaries`].
///
/// # Panics
/// When they cannot be built.
pub fn programs_of(packages: &[&str]) -> PathBuf {
    std::env::var_os("CONCORD_BINARIES").map_or_else(|| build(packages), PathBuf::from)
}

/// The program `concord`, built like [`binaries`].
///
/// # Panics
/// When it cannot be built.
pub fn concord_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || programs_of(&["concord-cli"]).join("concord");
    BUILT.get_or_init(build).clone()
}

/// Runs the command `concord` to its end; [`concord_at`] does so on a server.
///
/// # Panics
/// When it cannot be built or started.
pub fn concord(arguments: &[&str]) -> Output {
    let mut run = command(concord_program());
    let run = run.as_std_mut().args(arguments);
    run.output().expect("concord runs")
}

/// Cargo builds the programs of the package under test alone, so the others are built here.
fn build(packages: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its own program");
    // <target>/<profile>/deps/<test>
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("a test's program is in target/<profile>/deps")
        .to_owned();
    let name = profile
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("debug");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root())
        .args(["build", "--quiet", "--bins"]);
    cargo.args(["--profile", if name == "debug" { "dev" } else { name }]);
    cargo.arg("--target-dir").arg(
        profile
            .parent()
            .expect("a profile is in a target directory"),
    );
    for package in packages {
        cargo.args(["--package", package]);
    }
    let output = cargo.output().expect("cargo runs");
    assert!(
        output.status.success(),
        "the programs do not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    profile
}
