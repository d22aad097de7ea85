//! The servers by which people are notified: small programs in Python that print what they receive.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use concord_testkit::{free_address, python_tools, wait_for};
use serde_json::Value;

use crate::notifications::PATIENCE;

/// The key with which the adapter signs webhooks.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    free_address().port()
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    process: Child,
    printed: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts an SMTP server.
    pub(crate) async fn smtp(port: u16, arguments: &[&str]) -> Self {
        Self::start("smtp_server.py", port, arguments).await
    }

    /// Starts a receiver of webhooks that answers with these statuses in turn, the last of them for ever.
    pub(crate) async fn webhook(port: u16, answers: &str) -> Self {
        Self::webhook_with(port, &["--answers", answers]).await
    }

    /// Starts a receiver of webhooks with these arguments.
    pub(crate) async fn webhook_with(port: u16, arguments: &[&str]) -> Self {
        Self::start(
            "webhook_server.py",
            port,
            &[&["--secret", SECRET], arguments].concat(),
        )
        .await
    }

    async fn start(program: &str, port: u16, arguments: &[&str]) -> Self {
        let mut python = Command::new("python3");
        python
            .arg(root().join("tests/notifications").join(program))
            .args(["--port", &port.to_string()])
            .args(arguments);
        python
            .env("PYTHONPATH", python_tools())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = python.spawn().expect("python3 runs");
        let output = process.stdout.take().expect("its output is a pipe");
        let printed = Arc::<Mutex<Vec<Value>>>::default();
        let lines = Arc::clone(&printed);
        // Ends with the process, whose output it reads.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                lines
                    .lock()
                    .unwrap()
                    .push(serde_json::from_str(&line).expect("a line is JSON"));
            }
        });
        let server = Self { process, printed };
        server
            .printed(program, |line| line["listening"] == port)
            .await;
        server
    }

    /// Everything that it has received so far, in order.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.printed
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.get("listening").is_none())
            .cloned()
            .collect()
    }

    /// Everything that it has received, once there is at least so much: what it has answered may be printed a moment later.
    pub(crate) async fn received_at_least(&self, number: usize) -> Vec<Value> {
        wait_for(format!("{number} lines"), PATIENCE, async || {
            let received = self.received();
            (received.len() >= number)
                .then_some(received.clone())
                .ok_or_else(|| format!("{received:#?}"))
        })
        .await
    }

    /// Waits until it prints a line for which `is_it` is true; `what` names what is awaited.
    pub(crate) async fn printed(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, PATIENCE, async || {
            let printed = self.printed.lock().unwrap().clone();
            printed
                .iter()
                .find(|line| is_it(line))
                .cloned()
                .ok_or_else(|| format!("{printed:#?}"))
        })
        .await
    }

    /// Waits for a mail whose subject begins so.
    pub(crate) async fn mail(&self, beginning: &str) -> Value {
        self.printed(beginning, |line| {
            header(line, "subject").starts_with(beginning)
        })
        .await
    }

    /// Waits for a call of this type that was answered with this status.
    pub(crate) async fn call(&self, kind: &str, status: u16) -> Value {
        self.printed(kind, |line| {
            line["body"]["type"] == kind && line["status"] == status
        })
        .await
    }
}

/// A header of a mail; empty when it has none.
pub(crate) fn header(mail: &Value, name: &str) -> String {
    let headers = mail["headers"].as_array().into_iter().flatten();
    let found = headers
        .filter(|header| header[0] == name)
        .filter_map(|header| header[1].as_str());
    found.collect::<Vec<_>>().join("; ")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; what matters is that it is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
