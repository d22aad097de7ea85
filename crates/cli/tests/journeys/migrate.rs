//! Streams that somebody or another version has made differently are shown, and changed when somebody says so.

use std::time::Duration;

use async_nats::jetstream::object_store;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use concord_testkit::{CommandOutput, TestBroker, finish};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::command::{concord, run};

fn rows(report: &Value, list: &str) -> Vec<(String, String)> {
    let rows = report[list].as_array().unwrap().iter();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    rows.map(|row| (text(row, "stream"), text(row, "property")))
        .collect()
}

/// A file with these settings.
fn settings(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

async fn migrate(broker: &TestBroker, more: &[&str]) -> CommandOutput {
    let url = broker.url();
    run(&[&["migrate", "--server", &url], more].concat()).await
}

#[tokio::test]
async fn what_differs_is_shown_and_changed_on_demand() {
    let broker = TestBroker::start().await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    let migrate = async |more: &[&str]| migrate(&broker, more).await;

    // In an empty broker everything is missing, and made.
    let empty = migrate(&[]).await;
    assert_eq!(empty.code, 1, "{empty:?}");
    assert!(
        empty.out.contains("concord migrate --config FILE --apply"),
        "{empty:?}"
    );
    migrate(&["--apply"]).await.good();
    assert!(
        migrate(&[])
            .await
            .good()
            .contains("Every stream is as it is defined")
    );

    let mut messages = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    let found = messages.info().await.unwrap().config.clone();
    let changed = Config {
        max_age: Duration::from_secs(3_600),
        allow_direct: false,
        description: Some("Ours.".to_owned()),
        ..found
    };
    jetstream.update_stream(changed).await.unwrap();
    let planned = migrate(&["--json"]).await;
    assert_eq!(planned.code, 1, "{planned:?}");
    let planned: Value = serde_json::from_str(&planned.out).unwrap();
    let expected = [
        ("CONCORD_MESSAGES", "max_age"),
        ("CONCORD_MESSAGES", "allow_direct"),
    ];
    let expected = expected.map(|(stream, property)| (stream.to_owned(), property.to_owned()));
    assert_eq!(rows(&planned, "changes"), expected);
    assert_eq!(planned["applied"], false);
    // The default would take the place of what somebody may have set, and older messages would go at once.
    let unsaid = migrate(&["--apply"]).await;
    assert_eq!(unsaid.code, 2, "{unsaid:?}");
    for word in ["max_age", "CONCORD_MESSAGES", "3600s", "--config FILE"] {
        assert!(unsaid.err.contains(word), "{unsaid:?}");
    }
    let now = messages.info().await.unwrap().config.clone();
    assert!(!now.allow_direct, "nothing is changed");

    let settings = settings("[storage]\nmessage_days = 90\n");
    let config = ["--config", path(&settings)];
    let stated = [&config[..], &["--apply", "--json"]].concat();
    let applied = migrate(&stated).await.json();
    assert_eq!(
        (&applied["applied"], rows(&applied, "remaining")),
        (&Value::Bool(true), Vec::new())
    );
    let now = messages.info().await.unwrap().config.clone();
    assert_eq!(
        now.description.as_deref(),
        Some("Ours."),
        "what is no matter of ours stays"
    );
}

#[tokio::test]
async fn what_cannot_be_changed_is_said() {
    let broker = TestBroker::start().await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    migrate(&broker, &["--apply"]).await.good();
    jetstream.delete_stream("CONCORD_DEAD").await.unwrap();
    let dead = Config {
        name: "CONCORD_DEAD".into(),
        subjects: vec!["concord.v1.dead.>".into()],
        retention: RetentionPolicy::WorkQueue,
        ..Config::default()
    };
    jetstream.create_stream(dead).await.unwrap();
    let settings = settings("[storage]\nmessage_days = 90\n");
    let config = ["--config", path(&settings), "--apply"];
    let rest = migrate(&broker, &config).await;
    assert_eq!(rest.code, 1, "{rest:?}");
    assert!(
        rest.out
            .contains("cannot be changed: how a stream keeps messages"),
        "{rest:?}"
    );
    let left = migrate(&broker, &["--json"]).await;
    let left: Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!(
        rows(&left, "changes"),
        [("CONCORD_DEAD".to_owned(), "retention".to_owned())]
    );
}

/// Of each setting it counts whether that one is stated: whoever connects by a file has not said how long messages are kept.
#[tokio::test]
async fn a_default_takes_the_place_of_nothing_that_was_set() {
    let broker = TestBroker::start().await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    migrate(&broker, &["--apply"]).await.good();
    let mut messages = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    let year = Duration::from_secs(365 * 86_400);
    let kept_longer = Config {
        max_age: year,
        allow_direct: false,
        ..messages.info().await.unwrap().config.clone()
    };
    jetstream.update_stream(kept_longer).await.unwrap();

    for text in ["[broker]\n", "[storage]\nreplicas = 1\nbytes_max = 0\n"] {
        let file = settings(text);
        let config = ["--config", path(&file), "--apply"];
        let unsaid = migrate(&broker, &config).await;
        let now = messages.info().await.unwrap().config.clone();
        assert_eq!((now.max_age, now.allow_direct), (year, false), "{unsaid:?}");
        let said = unsaid.refused(2);
        for word in ["max_age", "CONCORD_MESSAGES", "storage.message_days"] {
            assert!(said.contains(word), "{said}");
        }
        assert!(!said.contains("storage.replicas"), "{said}");
    }
    let mut stated = concord();
    stated.args(["migrate", "--server", &broker.url(), "--apply"]);
    let stated = stated.env("CONCORD_STORAGE__MESSAGE_DAYS", "90");
    finish(stated).await.good();
    let now = messages.info().await.unwrap().config.clone();
    assert_eq!(now.max_age, year * 90 / 365);
}

#[tokio::test]
async fn an_archive_in_the_broker_has_as_many_copies_as_the_events_that_went_there() {
    let broker = TestBroker::start().await;
    let jetstream = async_nats::jetstream::new(broker.client().await);
    migrate(&broker, &["--apply"]).await.good();
    let archive = object_store::Config {
        bucket: "CONCORD_ARCHIVE".to_owned(),
        ..Default::default()
    };
    jetstream.create_object_store(archive).await.unwrap();
    migrate(&broker, &[]).await.good();
    let three = settings("[storage]\nreplicas = 3\n");
    let config = ["--config", path(&three)];
    let planned = migrate(&broker, &[&config[..], &["--json"]].concat()).await;
    let planned: Value = serde_json::from_str(&planned.out).unwrap();
    let archive = ("OBJ_CONCORD_ARCHIVE".to_owned(), "replicas".to_owned());
    assert!(rows(&planned, "changes").contains(&archive), "{planned}");
    let url = broker.url();
    let doctor = run(&[&["doctor", "--server", &url], &config[..]].concat()).await;
    let told = "OBJ_CONCORD_ARCHIVE: replicas is 1 and should be 3";
    assert!(doctor.out.contains(told), "{doctor:?}");
}
