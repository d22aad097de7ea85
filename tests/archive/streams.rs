//! What is archived leaves the streams, whatever they allow, and nothing else does.

use async_nats::jetstream::stream::Stream;
use concord_events::topology::StreamKind;
use concord_testkit::{TestInstallation, event_data, stored, unique, wait_for};
use concord_wire::subject::Service;

use crate::archive::PATIENCE;
use crate::archive::stage::{decide, installation, removed};

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
