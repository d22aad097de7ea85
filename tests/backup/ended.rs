//! Backups that take long, fail, or are killed: how long the services stand still, and what is left on the disk.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::consumer::pull;
use concord_testkit::{TestInstallation, command, concord_program, wait_for};
use futures::{StreamExt, TryStreamExt};
use tokio::process::Child;

use crate::backup::{PATIENCE, open, paused, text};

/// An event that is being worked on, for which every backup waits.
pub(crate) struct UnderWay(jetstream::Message);

impl UnderWay {
    pub(crate) async fn at(installation: &TestInstallation) -> Self {
        open(installation, "under-way", false).await;
        let context = jetstream::new(installation.client().clone());
        let stream = context.get_stream("CONCORD_EVENTS").await.unwrap();
        let slow = pull::Config {
            durable_name: Some("slow".to_owned()),
            ack_wait: Duration::from_secs(600),
            ..Default::default()
        };
        let slow = stream.create_consumer(slow).await.unwrap();
        let mut messages = slow.fetch().max_messages(1).messages().await.unwrap();
        Self(messages.next().await.unwrap().unwrap())
    }

    pub(crate) async fn done(self) {
        self.0.double_ack().await.unwrap();
    }
}

/// A backup that has paused everything, and waits.
pub(crate) async fn waiting(installation: &TestInstallation, arguments: &[&str]) -> Child {
    let program = concord_program();
    let mut backup = command(program);
    backup.args(["--server", installation.server_url(), "backup"]);
    let mut backup = backup.args(arguments).spawn().unwrap();
    let client = installation.client();
    wait_for("everything paused", PATIENCE, async || {
        assert_eq!(backup.try_wait().unwrap(), None, "it waits");
        let (paused, all) = (paused(client).await, durable(client).await);
        let is_all = paused == all;
        is_all
            .then_some(())
            .ok_or_else(|| format!("{paused} of {all}"))
    })
    .await;
    backup
}

/// How many consumers a backup pauses, of the streams that [`paused`] looks at.
async fn durable(client: &async_nats::Client) -> usize {
    infos(client).await.len()
}

async fn infos(client: &async_nats::Client) -> Vec<jetstream::consumer::Info> {
    let context = jetstream::new(client.clone());
    let mut durable = Vec::new();
    for stream in ["CONCORD_EVENTS", "CONCORD_MESSAGES"] {
        let stream = context.get_stream(stream).await.unwrap();
        let all: Vec<_> = stream.consumers().try_collect().await.unwrap();
        durable.extend(
            all.into_iter()
                .filter(|info| info.config.durable_name.is_some()),
        );
    }
    durable
}

async fn send(signal: &str, process: &Child) {
    let pid = process.id().expect("it runs").to_string();
    let sent = command("kill").args([signal, &pid]).status().await;
    assert!(sent.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_stand_still_for_as_long_as_a_backup_takes() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let under_way = UnderWay::at(&installation).await;
    // Longer than a machine stands still, and shorter than the backup takes.
    let backup = waiting(&installation, &[&copy, "--pause-max", "14"]).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(16) {
        let on: Vec<_> = infos(client)
            .await
            .into_iter()
            .filter(|info| !info.paused)
            .collect();
        let on: Vec<_> = on
            .iter()
            .map(|info| (&info.name, info.pause_remaining))
            .collect();
        assert!(on.is_empty(), "after {:?}: {on:?}", begun.elapsed());
    }
    under_way.done().await;
    let ended = backup.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(paused(client).await, 0);
    let said = String::from_utf8(ended.stderr).unwrap();
    let waits = said
        .matches("waiting until this is done: 1 of slow")
        .count();
    assert!(waits >= 3, "at once, and every five seconds: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_during_which_the_services_went_on_fails() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let under_way = UnderWay::at(&installation).await;
    let backup = waiting(&installation, &[&copy, "--pause-max", "10"]).await;
    send("-STOP", &backup).await;
    wait_for("the end of the pause", PATIENCE, async || {
        let paused = paused(client).await;
        (paused == 0)
            .then_some(())
            .ok_or_else(|| paused.to_string())
    })
    .await;
    under_way.done().await;
    send("-CONT", &backup).await;
    let ended = backup.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("the services went on"), "{said}");
    assert_eq!(paused(client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_go_on_a_minute_after_a_backup_was_killed() {
    let installation = TestInstallation::start_without_adapter().await;
    let folder = tempfile::tempdir().unwrap();
    let copy = text(&folder.path().join("copy"));
    let _under_way = UnderWay::at(&installation).await;
    let mut backup = waiting(&installation, &[&copy]).await;
    backup.kill().await.unwrap();
    for info in infos(installation.client()).await {
        let left = info.pause_remaining.expect("it is paused");
        assert!(left <= Duration::from_secs(60), "{}: {left:?}", info.name);
    }
}
