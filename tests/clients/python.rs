//! The Python library, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::conformance;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_conforms() {
    conforms(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_conforms_with_a_durable_inbox() {
    conforms(&["durable"]).await;
}

async fn conforms(how: &[&str]) {
    let mut stage = Stage::start().await;
    let driver = Driver::start(&stage.broker.url(), how).await;
    conformance::play(&mut stage).await;
    driver.end().await;
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Python with the library and what it needs.
pub(crate) fn python() -> Command {
    let tools = std::process::Command::new(root().join("scripts/python-tools")).status();
    assert!(tools.expect("scripts/python-tools runs").success());
    let paths = [root().join("clients/python/src"), root().join(".tools")];
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", std::env::join_paths(paths).expect("paths"))
        .kill_on_drop(true);
    command
}

/// The driver that does what the cases ask for.
pub(crate) struct Driver(Child);

impl Driver {
    /// Starts it; it listens when this returns.
    pub(crate) async fn start(server: &str, how: &[&str]) -> Self {
        let cases = conformance::path().to_string_lossy().into_owned();
        Self::of("conformance.py", &[&[server, &cases], how].concat()).await
    }

    /// The same of another program in the folder of the library's tests.
    pub(crate) async fn of(program: &str, arguments: &[&str]) -> Self {
        let mut command = python();
        command
            .arg(root().join("clients/python/tests").join(program))
            .args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 runs");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = lines.next_line().await.expect("its output can be read");
        assert_eq!(line.as_deref(), Some("listening"));
        Self(child)
    }

    /// Ends it at once.
    pub(crate) async fn kill(mut self) {
        self.0.kill().await.expect("it is ended");
    }

    /// Lets it come to its end, which it must do in good order.
    pub(crate) async fn end(mut self) {
        drop(self.0.stdin.take());
        let ended = tokio::time::timeout(crate::stage::PATIENCE, self.0.wait()).await;
        assert!(ended.expect("it ends").expect("it has a status").success());
    }
}
