//! The Python library conforms; it runs in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

use crate::clients::conformance;
use crate::clients::stage::{PATIENCE, Stage};

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

/// A program in Python that is an agent by the library.
pub(crate) struct Program {
    process: Child,
    reading: JoinHandle<()>,
}

impl Program {
    /// Starts it; the agent of this name listens when this returns. The program must log at the level INFO.
    pub(crate) async fn start(program: &str, agent: &str) -> Self {
        let mut process = python()
            .arg("-c")
            .arg(program)
            .stderr(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut log = BufReader::new(process.stderr.take().expect("its log")).lines();
        let listening = tokio::time::timeout(PATIENCE, wait_for_log(&mut log, agent));
        listening.await.expect("the Python agent listens");
        // A program whose log nobody reads comes to a halt.
        let reading = tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        Self { process, reading }
    }

    /// Kills it.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.expect("it is ended");
        self.reading.abort();
    }
}

/// Reads the log until the agent listens.
async fn wait_for_log(log: &mut Lines<BufReader<ChildStderr>>, agent: &str) {
    let expected = format!("{agent} listens");
    while let Some(line) = log.next_line().await.expect("its log can be read") {
        if line.contains(&expected) {
            return;
        }
    }
    panic!("the Python agent has ended");
}

/// A program that makes the calls of the conformance cases.
pub(crate) struct Driver(Child);

impl Driver {
    /// Starts it; it listens when this returns.
    pub(crate) async fn start(server: &str, how: &[&str]) -> Self {
        let cases = conformance::path().to_string_lossy().into_owned();
        Self::of("conformance.py", &[&[server, &cases], how].concat()).await
    }

    /// Starts another program in the folder of the library's tests; it listens when this returns.
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

    /// Kills it.
    pub(crate) async fn kill(mut self) {
        self.0.kill().await.expect("it is ended");
    }

    /// Lets it come to its end, and checks that it exits with 0.
    pub(crate) async fn end(mut self) {
        drop(self.0.stdin.take());
        let ended = tokio::time::timeout(PATIENCE, self.0.wait()).await;
        assert!(ended.expect("it ends").expect("it has a status").success());
    }
}
