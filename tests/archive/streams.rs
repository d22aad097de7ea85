//! What is archived leaves the streams, whatever they allow, and nothing else does.

use async_nats::jetstream::stream::Stream;
use concord_events::topology::StreamKind;
use concord_testkit::{
    TestInstallation, event_data, http_get, instances, stored, unique, wait_for,
};
use concord_wire::subject::Service;
use serde_json::Value;

use crate::archive::PATIENCE;
use crate::archive::stage::{decide, installation, keep_head, logged, removed, said};

async fn stream(installation: &TestInstallation, name: &str) -> Stream {
    let context = async_nats::jetstream::new(installation.client().clone());
    context.get_stream(name).await.expect("the stream")
}

async fn sealed(installation: &TestInstallation) {
    wait_for("the segment", PATIENCE, async || {
        let sealed = event_data(installation.client(), "archive.log.sealed").await?;
        sealed.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
}

/// As versions before this one have made it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_allows_no_deletion_is_purged() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let events = stream(&installation, "CONCORD_EVENTS").await;
    let mut config = events.cached_info().config.clone();
    assert!(!config.deny_delete);
    config.deny_delete = true;
    let context = async_nats::jetstream::new(installation.client().clone());
    context.update_stream(config).await.expect("it is changed");
    let case = unique("case");
    decide(&installation, &case).await;
    removed(&installation, &case).await;
    assert!(events.delete_message(1).await.is_err());
}

/// A stream that was lost and made anew counts from one again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_stream_holds_under_the_old_sequences_stays() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let client = installation.client();
    decide(&installation, &unique("case")).await;
    sealed(&installation).await;
    let timer = Service::EscalationTimer;
    for replica in [0, 1] {
        installation.kill(timer, replica).expect("a process");
    }
    let purged = event_data(client, "archive.log.purged").await;
    assert!(purged.expect("the stream is read").is_empty());
    let old = stream(&installation, "CONCORD_MESSAGES").await;
    let info = old.cached_info().clone();
    let context = async_nats::jetstream::new(client.clone());
    let deleted = context.delete_stream("CONCORD_MESSAGES").await;
    deleted.expect("it is deleted");
    let created = context.create_stream(info.config).await;
    created.expect("it is made");
    let count = usize::try_from(info.state.last_sequence + 3).expect("few");
    for number in 0..count {
        let subject = format!("concord.v1.msg.other-{number}.ann.coordinator.finding");
        let stored = context.publish(subject, "{}".into()).await.expect("sent");
        stored.await.expect("it is stored");
    }
    for replica in [0, 1] {
        installation.launch(timer, replica).expect("it starts");
    }
    wait_for("the removal", PATIENCE, async || {
        let purged = event_data(client, "archive.log.purged").await?;
        purged.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
    let left = stored(client, StreamKind::Messages, "concord.v1.msg.*.ann.>").await;
    assert_eq!(left.expect("it is read").len(), count);
}

/// Waits until a head covers so much of the messages.
async fn covered(installation: &TestInstallation, last_sequence: u64) {
    wait_for("a head over all messages", PATIENCE, async || {
        let heads = event_data(installation.client(), "head.log.advanced").await?;
        let streams = heads.last().and_then(|head| head["streams"].as_array());
        let mut streams = streams.into_iter().flatten();
        let messages = streams.find(|one| one["stream"] == "messages");
        let covered = messages.and_then(|one| one["last_sequence"].as_u64());
        (covered >= Some(last_sequence))
            .then_some(())
            .ok_or_else(|| format!("{covered:?} of {last_sequence}"))
    })
    .await;
}

/// What the timers say of themselves.
async fn said_by_timers(installation: &TestInstallation) -> String {
    let timer = |name: &str| name == "concord-escalation-timer";
    let two = |found: &[concord_testkit::Instance]| {
        found.iter().filter(|one| timer(&one.name)).count() == 2
    };
    let found = instances(installation.client(), PATIENCE, two).await;
    let mut answers = String::new();
    for one in found.expect("both answer") {
        if timer(&one.name) {
            let address = one.http().expect("it answers HTTP");
            answers += &http_get(address, "/readyz").await.expect("an answer");
        }
    }
    answers
}

/// Every service is started again, as the manual says.
#[tokio::test(flavor = "multi_thread")]
async fn heads_and_the_archive_go_on_after_a_stream_was_lost_and_made_anew() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let place = place.to_str().expect("a text");
    let installation = installation(place).await;
    let context = async_nats::jetstream::new(installation.client().clone());
    let first = unique("case");
    decide(&installation, &first).await;
    removed(&installation, &first).await;
    // More than is stored afterwards.
    let mut last = 0;
    for _ in 0..300 {
        let subject = "concord.v1.msg._.filler.nobody.note";
        let stored = context.publish(subject, "{}".into()).await.expect("sent");
        last = stored.await.expect("it is stored").sequence;
    }
    covered(&installation, last).await;
    let kept = folder.path().join("head.json");
    keep_head(&installation, &kept).await;

    let processes: Vec<_> = installation.processes().collect();
    for (service, replica) in &processes {
        let ended = installation.terminate(*service, *replica).await;
        ended.expect("a process of the plan");
    }
    let deleted = context.delete_stream("CONCORD_MESSAGES").await;
    deleted.expect("it is deleted");
    for (service, replica) in processes {
        installation.launch(service, replica).expect("it starts");
    }
    installation.ready().await.expect("all are ready");
    let second = unique("case");
    decide(&installation, &second).await;
    removed(&installation, &second).await;

    let anew = "the stream CONCORD_MESSAGES was made anew after";
    wait_for("the timers to say it", PATIENCE, async || {
        let told = said_by_timers(&installation).await;
        told.contains(anew).then_some(()).ok_or(told)
    })
    .await;
    assert!(logged(&installation).contains(anew));
    let kept = kept.to_str().expect("a text");
    let check = ["check", "--against", kept, "--archive", place, "--json"];
    let (_, out, err) = said(&installation, &check).await;
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    let differences = found["against"]["differences"].as_array();
    let differences = differences.expect("a list");
    assert_eq!(differences.len(), 1, "{found:#}");
    let what = differences[0]["what"].as_str().expect("a sentence");
    assert!(what.contains("messages were lost and made anew"), "{what}");
}
