//! A restore that does not come to its end can be repeated: it takes back what it made, and nothing else.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use async_nats::jetstream;
use concord_testkit::{
    TestBroker, TestInstallation, command, concord_at, concord_program, wait_for,
};
use futures::TryStreamExt;
use serde_json::Value;
use tokio::fs::OpenOptions;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::backup::{PATIENCE, text};

/// Far less than the broker may take to answer.
const SOON: Duration = Duration::from_secs(40);

/// The copy of an installation that is gone.
async fn copied(folder: &Path) -> PathBuf {
    let installation = TestInstallation::start_without_adapter().await;
    let copy = folder.join("copy");
    let made = concord_at(installation.server_url(), &["backup", &text(&copy)]).await;
    made.good();
    copy
}

async fn streams(client: &async_nats::Client) -> Vec<String> {
    let context = jetstream::new(client.clone());
    context.stream_names().try_collect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_refused_midway_takes_back_what_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(folder.path()).await;
    let broker = TestBroker::start().await;
    let client = broker.client().await;
    let described = std::fs::read(copy.join("CONCORD_EVENTS/backup.json")).unwrap();
    let described: Value = serde_json::from_slice(&described).unwrap();
    // No two streams take the same subjects.
    let in_the_way = jetstream::stream::Config {
        name: "OTHER".to_owned(),
        subjects: serde_json::from_value(described["config"]["subjects"].clone()).unwrap(),
        ..Default::default()
    };
    let context = jetstream::new(client.clone());
    context.create_stream(in_the_way).await.unwrap();

    let restore = ["restore", &text(&copy)];
    let failed = concord_at(&broker.url(), &restore).await;
    assert_eq!(streams(&client).await, ["OTHER"], "{failed:?}");
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("removed again"), "{failed:?}");

    context.delete_stream("OTHER").await.unwrap();
    concord_at(&broker.url(), &restore).await.good();
    let twice = concord_at(&broker.url(), &restore).await.refused(2);
    assert!(twice.contains("exist already"), "{twice}");
    for name in streams(&client).await {
        assert!(twice.contains(&format!("nats stream rm {name}")), "{twice}");
    }
}

/// A restore that is in the middle of a stream, and stays there until its end is dropped.
struct Midway {
    restore: Child,
    _more_to_come: tokio::fs::File,
}

impl Midway {
    async fn of(broker: &TestBroker, copy: &Path) -> Self {
        let contents = copy.join("CONCORD_EVENTS/stream.tar.s2");
        let whole = std::fs::read(&contents).unwrap();
        std::fs::remove_file(&contents).unwrap();
        let made = command("mkfifo").arg(&contents).status().await.unwrap();
        assert!(made.success());
        let program = concord_program();
        let mut restore = command(program);
        restore.args(["--server", &broker.url(), "restore", &text(copy)]);
        let restore = restore.spawn().unwrap();
        // It reads everything before it writes anything, and then once more.
        tokio::fs::write(&contents, &whole).await.unwrap();
        let client = broker.client().await;
        wait_for("the first streams", PATIENCE, async || {
            let found = streams(&client).await;
            let is_made = found.iter().any(|name| name == "CONCORD_MESSAGES");
            is_made.then_some(()).ok_or_else(|| format!("{found:?}"))
        })
        .await;
        let mut pipe = OpenOptions::new()
            .write(true)
            .open(&contents)
            .await
            .unwrap();
        pipe.write_all(&whole[..whole.len() / 2]).await.unwrap();
        pipe.flush().await.unwrap();
        Self {
            restore,
            _more_to_come: pipe,
        }
    }

    /// Asks it to end: its code, and what it says about it.
    async fn interrupted(mut self) -> (ExitStatus, String) {
        let pid = self.restore.id().expect("it runs").to_string();
        let asked = command("kill").args(["-TERM", &pid]).status().await;
        assert!(asked.unwrap().success());
        let mut lines = BufReader::new(self.restore.stderr.take().unwrap()).lines();
        let mut complaint = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("error: ") {
                complaint = line;
                break;
            }
        }
        drop(self._more_to_come);
        (self.restore.wait().await.unwrap(), complaint)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_interrupted_takes_back_what_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(folder.path()).await;
    let broker = TestBroker::start().await;
    let contents = copy.join("CONCORD_EVENTS/stream.tar.s2");
    let whole = std::fs::read(&contents).unwrap();
    let (ended, said) = Midway::of(&broker, &copy).await.interrupted().await;
    let left = streams(&broker.client().await).await;
    assert!(left.is_empty(), "{ended}: {said} {left:?}");
    assert_eq!(ended.code(), Some(1), "{said}");
    assert!(
        said.contains("interrupted") && said.contains("removed again"),
        "{said}"
    );
    std::fs::remove_file(&contents).unwrap();
    std::fs::write(&contents, whole).unwrap();
    let again = concord_at(&broker.url(), &["restore", &text(&copy)]).await;
    again.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_whose_broker_dies_says_so_soon() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(folder.path()).await;
    let broker = TestBroker::start().await;
    let midway = Midway::of(&broker, &copy).await;
    broker.server().kill();
    drop(midway._more_to_come);
    let ended = timeout(SOON, midway.restore.wait_with_output()).await;
    let ended = ended.expect("it does not wait for an answer").unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(69), "{said}");
    assert!(
        said.contains("the connection to the broker is lost") && said.contains("nats stream rm"),
        "{said}"
    );
    assert!(!said.contains("the rights of an operator"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_whose_broker_is_gone_says_what_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(folder.path()).await;
    let broker = TestBroker::start().await;
    let midway = Midway::of(&broker, &copy).await;
    let made = streams(&broker.client().await).await;
    broker.server().kill();
    let (ended, said) = midway.interrupted().await;
    assert_eq!(ended.code(), Some(1), "{said}");
    for name in made {
        assert!(said.contains(&format!("nats stream rm {name}")), "{said}");
    }
    assert!(!said.contains("CONCORD_EVENTS"), "{said}");
}
