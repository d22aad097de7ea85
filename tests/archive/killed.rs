//! The services that archive are killed at random, again and again: no case is lost, none is there twice.

use std::collections::BTreeMap;

use concord_events::topology::StreamKind;
use concord_testkit::{Random, event_data, stored, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::archive::PATIENCE;
use crate::archive::stage::{concord, decide, installation, keep_head, removed};

/// Cases that are decided while the killing goes on.
const CASES: u64 = 12;

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_archivers_loses_nothing_and_doubles_nothing() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let mut random = Random::new(55);
    let mut shown = BTreeMap::new();
    for _ in 0..CASES {
        let case = unique("case");
        decide(&installation, &case).await;
        let show = ["case", "show", &case, "--archive", archive];
        shown.insert(case.clone(), concord(&installation, &show).await);
        let replica = usize::try_from(random.between(0, 2)).expect("small");
        let timer = Service::EscalationTimer;
        installation.kill(timer, replica).expect("a process");
        installation.launch(timer, replica).expect("it starts");
    }
    let head = folder.path().join("head.json");
    keep_head(&installation, &head).await;
    // While segments are written and removed, too.
    for _ in 0..4 {
        let events = event_data(installation.client(), "archive.log.*").await;
        let seen = events.expect("the stream is read").len();
        wait_for("something is archived, or all", PATIENCE, async || {
            let events = event_data(installation.client(), "archive.log.*").await?;
            let listed = event_data(installation.client(), "case.*.decided").await?;
            let goes_on = events.len() > seen || listed.is_empty();
            goes_on
                .then_some(())
                .ok_or_else(|| "nothing new".to_owned())
        })
        .await;
        for replica in [0, 1] {
            let timer = Service::EscalationTimer;
            installation.kill(timer, replica).expect("a process");
            installation.launch(timer, replica).expect("it starts");
        }
    }
    for (case, before) in &shown {
        removed(&installation, case).await;
        let show = ["case", "show", case, "--archive", archive];
        assert_eq!(concord(&installation, &show).await, *before);
    }
    let listed = concord(&installation, &["archive", "list"]).await;
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), shown.len(), "each case once: {listed:#?}");
    let verified = concord(&installation, &["archive", "verify", "--archive", archive]).await;
    assert_eq!(verified["faults"], json!([]), "{verified:#}");
    let head = head.to_str().expect("a text");
    let against = ["check", "--archive", archive, "--against", head];
    let checked = concord(&installation, &against).await;
    assert_eq!(checked["holds"], true, "{checked:#}");
}

/// The messages of a case and its first event are removed by hand, as if the removal had been broken off there.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_is_broken_off_is_finished_and_nobody_sees_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let client = installation.client();
    let timer = Service::EscalationTimer;
    let case = unique("case");
    decide(&installation, &case).await;
    let views = async || {
        let show = ["case", "show", &case, "--archive", archive];
        let transcript = ["case", "transcript", &case, "--archive", archive];
        [
            concord(&installation, &show).await,
            concord(&installation, &transcript).await,
        ]
    };
    // At the same time: ten seconds after it was sealed the case is removed, and a slow machine needs long to show it.
    let killed = async {
        wait_for("the segment", PATIENCE, async || {
            let sealed = event_data(client, "archive.log.sealed").await?;
            sealed.first().map(|_| ()).ok_or_else(|| "none".to_owned())
        })
        .await;
        for replica in [0, 1] {
            installation.kill(timer, replica).expect("a process");
        }
    };
    let (before, ()) = tokio::join!(views(), killed);
    let purged = event_data(client, "archive.log.purged").await;
    assert_eq!(purged.expect("the stream is read"), [json!(null); 0]);
    for (kind, name, filter, most) in [
        (StreamKind::Messages, "CONCORD_MESSAGES", "msg", usize::MAX),
        (StreamKind::Events, "CONCORD_EVENTS", "event.case", 1),
    ] {
        let stream = async_nats::jetstream::new(client.clone())
            .get_stream(name)
            .await
            .expect("the stream");
        let filter = format!("concord.v1.{filter}.{case}.>");
        let found = stored(client, kind, &filter).await.expect("it is read");
        assert!(found.len() > 1);
        for message in found.iter().take(most) {
            let deleted = stream.delete_message(message.sequence).await;
            assert!(deleted.expect("it is deleted"));
        }
    }

    // A file that was written when another replica was faster, or before a crash.
    let mut files = std::fs::read_dir(place.join("segments")).expect("a folder");
    let file = files.next().expect("a file").expect("a file").path();
    std::fs::copy(&file, file.with_file_name("00000002-late.zst")).expect("it is copied");

    assert_eq!(views().await, before);
    for replica in [0, 1] {
        installation.launch(timer, replica).expect("it starts");
    }
    removed(&installation, &case).await;
    assert_eq!(views().await, before);
    let verified = concord(&installation, &["archive", "verify", "--archive", archive]).await;
    assert_eq!(
        (&verified["faults"], &verified["unsealed"]),
        (&json!([]), &json!(["00000002-late"])),
        "{verified:#}"
    );
}
