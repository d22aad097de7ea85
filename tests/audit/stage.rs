//! An installation that has settled two cases, stopped; and brokers on copies of what it has stored.

use std::path::{Path, PathBuf};

use concord_events::topology::StreamKind;
use concord_installation::NatsServer;
use concord_testkit::{
    Message, Stored, TestInstallation, command, concord_at, concord_program, connect, dead_letters,
    event_data, finish, nats_server, settled, stored, unique, wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::audit::PATIENCE;

/// What an installation has stored, and what an auditor has kept of it.
pub(crate) struct Stage {
    directory: TempDir,
    /// A case that has settled a conflict.
    pub(crate) case: String,
    /// Another one.
    pub(crate) other: String,
}

/// A running installation that makes heads quickly, signed by a key in `directory`.
pub(crate) async fn installation(key: &Path) -> TestInstallation {
    let setting = |text: String| (Service::EscalationTimer, text);
    TestInstallation::start_with(|plan| {
        [
            setting("service.head_interval_ms=300".to_owned()),
            setting(format!("service.head_key={}", key.display())),
        ]
        .into_iter()
        .fold(
            plan.with_replicas(Service::AgentAdapter, 0)
                .with_replicas(Service::EscalationTimer, 2),
            |plan, (service, setting)| plan.with_service_setting(service, setting),
        )
    })
    .await
}

/// Runs `concord` on a broker: its exit code and its JSON.
pub(crate) async fn concord(url: &str, arguments: &[&str]) -> (i32, Value) {
    let output = concord_at(url, &[arguments, &["--json"]].concat()).await;
    let said = serde_json::from_str(&output.out);
    (
        output.code,
        said.unwrap_or_else(|error| panic!("{error}: {output:?}")),
    )
}

/// Lets two analysts differ in a case until it is decided.
pub(crate) async fn decide(installation: &TestInstallation, case: &str) {
    let [ann, ben] = ["ann", "ben"].map(unique);
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
        "policy": { "answer_timeout_ms": 300 },
    });
    installation.open_case(&opening).await;
    for (agent, score) in [(&ann, 10), (&ben, 80)] {
        let finding = json!({ "summary": "Seen.", "risk_score": score });
        let finding = Message::finding(case, agent, finding, 0.8);
        finding.store(installation.client()).await;
    }
    wait_for(format!("the decision of {case}"), PATIENCE, async || {
        let decided = event_data(installation.client(), &format!("case.{case}.decided")).await?;
        decided.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
}

/// Waits until heads cover everything that is stored but the last head itself: the head, as an auditor keeps it.
pub(crate) async fn covering_head(installation: &TestInstallation) -> Value {
    let client = installation.client();
    settled(client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    wait_for("a head over everything", PATIENCE, async || {
        let mut ends = Vec::new();
        for kind in StreamKind::EVIDENCE {
            let all = stored(client, kind, ">").await?;
            let others = all
                .iter()
                .filter(|one| !one.subject.contains(".event.head."));
            ends.push((kind.as_str(), others.map(|one| one.sequence).max()));
        }
        let heads = stored(client, StreamKind::Events, "concord.v1.event.head.>").await?;
        let last = heads.last().map(Stored::json).unwrap_or_default();
        let streams = last["data"]["streams"].as_array();
        let streams = streams.ok_or("there is no head yet")?;
        for (name, end) in ends {
            let covered = streams.iter().find(|one| one["stream"] == name);
            let covered = covered.and_then(|one| one["last_sequence"].as_u64());
            if covered < end {
                return Err(format!("{name} up to {covered:?} of {end:?}"));
            }
        }
        Ok(())
    })
    .await;
    let (code, head) = concord(installation.server_url(), &["audit", "head"]).await;
    assert_eq!(code, 0, "{head}");
    head
}

impl Stage {
    /// Plays two cases and a message that becomes a dead letter, keeps head and bundle, and stops everything.
    pub(crate) async fn played() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        let mut make = command(concord_program());
        make.args(["keys", "generate"]).arg(path("head.key"));
        finish(&mut make).await.good();
        let installation = installation(&path("head.key")).await;
        let [case, other] = ["case", "other"].map(unique);
        decide(&installation, &case).await;
        let letter = format!("concord.v1.msg.{case}.ann.coordinator.finding");
        let client = installation.client();
        client
            .publish(letter, "no JSON".into())
            .await
            .expect("it is sent");
        wait_for("the dead letter", PATIENCE, async || {
            let letters = dead_letters(client).await?;
            letters.first().map(|_| ()).ok_or_else(|| "none".to_owned())
        })
        .await;
        decide(&installation, &other).await;
        let head = covering_head(&installation).await;
        std::fs::write(path("head.json"), head.to_string()).expect("it is written");
        let folder = path("bundle").display().to_string();
        let exported = concord(installation.server_url(), &["audit", "export", &folder]).await;
        assert_eq!(exported.0, 0, "{exported:?}");
        let processes: Vec<_> = installation.processes().collect();
        for (service, replica) in processes {
            installation
                .terminate(service, replica)
                .await
                .expect("it ends");
        }
        installation.stop_broker().await.expect("it ends");
        copy(&streams(installation.directory()), &path("jetstream"));
        Self {
            directory,
            case,
            other,
        }
    }

    /// A file or folder that the auditor has kept.
    pub(crate) fn kept(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// A broker on a copy of what was stored.
    pub(crate) async fn copy(&self) -> CopiedBroker {
        let directory = tempfile::tempdir().expect("a temporary directory");
        copy(
            &self.directory.path().join("jetstream"),
            &directory.path().join("jetstream"),
        );
        let server = NatsServer::spawn(&nats_server(), directory.path(), None).await;
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        CopiedBroker {
            server,
            _directory: directory,
        }
    }
}

/// A broker on a copy of streams.
pub(crate) struct CopiedBroker {
    // Before the directory, so that it has ended when the directory is removed.
    server: NatsServer,
    _directory: TempDir,
}

impl CopiedBroker {
    /// Its address.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// A connection.
    pub(crate) async fn client(&self) -> async_nats::Client {
        connect(&self.url()).await
    }
}

/// The folder of the streams below a folder.
fn streams(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.file_name().is_some_and(|name| name == "jetstream") {
            return folder;
        }
        let entries = std::fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        folders.extend(paths.filter(|path| path.is_dir()));
    }
    panic!("the broker has stored nothing");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("it is copied");
        }
    }
}
