//! An S3-compatible store by others: moto, with signatures that botocore checks, as `s3_server.py` puts them together.

use std::path::Path;
use std::process::Stdio;

use concord_archive::S3Settings;
use concord_testkit::{command, free_address, python_tools};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// The bucket that there is.
pub(crate) const BUCKET: &str = "cases";
/// The region in which it is.
pub(crate) const REGION: &str = "eu-test-1";
/// Who may do everything, and who may only read.
pub(crate) const WRITER: [&str; 2] = ["AKWRITER", "writers-hush"];
pub(crate) const READER: [&str; 2] = ["AKREADER", "readers-hush"];

/// A store that runs until it is dropped.
pub(crate) struct S3Server {
    pub(crate) endpoint: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl S3Server {
    /// Starts one, with these arguments of the program besides.
    pub(crate) async fn start(scheme: &str, arguments: &[&str]) -> Self {
        let address = free_address();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("archive/s3_server.py");
        let user = |[key, secret]: [&str; 2], may: &str| format!("{key}:{secret}:{may}");
        let mut python = command("python3");
        python
            .arg(program)
            .args(["--port", &address.port().to_string()]);
        python.args(["--bucket", BUCKET, "--region", REGION]);
        python.args(["--user", &user(WRITER, "GET,PUT,DELETE,LIST")]);
        python.args(["--user", &user(READER, "GET,LIST")]);
        python.args(arguments).env("PYTHONPATH", python_tools());
        python.stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = python.spawn().expect("python3 runs");
        let output = process.stdout.take().expect("a pipe");
        let mut server = Self {
            endpoint: format!("{scheme}://{address}"),
            input: process.stdin.take().expect("a pipe"),
            output: BufReader::new(output).lines(),
            _process: process,
        };
        server.answer().await;
        server
    }

    /// Tells it to do something, as `s3_server.py` says; its answer.
    pub(crate) async fn tell(&mut self, command: Value) -> Value {
        let line = format!("{command}\n");
        let written = self.input.write_all(line.as_bytes()).await;
        written.expect("the store listens");
        self.answer().await
    }

    async fn answer(&mut self) -> Value {
        let line = tokio::time::timeout(crate::archive::PATIENCE, self.output.next_line()).await;
        let line = line.expect("the store answers").expect("a line");
        serde_json::from_str(&line.expect("the store runs")).expect("JSON")
    }

    /// The names of all objects.
    pub(crate) async fn keys(&mut self) -> Vec<String> {
        let answer = self.tell(json!({ "keys": "" })).await;
        serde_json::from_value(answer["keys"].clone()).expect("names")
    }

    /// How it is reached with the credentials in a file.
    pub(crate) fn settings(&self, credentials: &Path) -> S3Settings {
        S3Settings {
            endpoint: self.endpoint.clone(),
            region: REGION.to_owned(),
            credentials_file: Some(credentials.to_owned()),
            ..S3Settings::default()
        }
    }
}

/// Writes credentials in the form of `~/.aws/credentials`.
pub(crate) fn write_credentials(file: &Path, [key, secret]: [&str; 2], token: Option<&str>) {
    let token = token.map_or(String::new(), |token| {
        format!("aws_session_token = {token}\n")
    });
    let text =
        format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n{token}");
    std::fs::write(file, text).expect("it is written");
}
