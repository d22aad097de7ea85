//! A backup while somebody else pauses or resumes consumers: a copy whose streams do not fit together is none.

use std::time::Duration;

use async_nats::jetstream;
use concord_testkit::{TestInstallation, concord_at};
use serde_json::json;
use time::OffsetDateTime;

use crate::backup::ended::{UnderWay, waiting};
use crate::backup::{paused, text};

const INBOX: &str = "coordinator-inbox";

async fn resume(client: &async_nats::Client) {
    let subject = format!("$JS.API.CONSUMER.PAUSE.CONCORD_MESSAGES.{INBOX}");
    let answer = client.request(subject, json!({}).to_string().into()).await;
    assert!(!answer.unwrap().payload.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_fails_in_which_somebody_else_has_resumed_a_consumer() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let under_way = UnderWay::at(&installation).await;
    let backup = waiting(&installation, &[&text(&copy)]).await;
    resume(client).await;
    under_way.done().await;
    let ended = backup.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the services went on") && said.contains(INBOX),
        "{said}"
    );
    assert!(!copy.exists(), "{said}");
    assert_eq!(paused(client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_backup_is_refused_and_the_first_goes_on() {
    let installation = TestInstallation::start_without_adapter().await;
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let under_way = UnderWay::at(&installation).await;
    let running = waiting(&installation, &[&text(&first)]).await;
    let backup = ["backup", &text(&second)];
    let refused = concord_at(installation.server_url(), &backup)
        .await
        .refused(1);
    assert!(
        refused.contains("another backup") && refused.contains("ends by itself in"),
        "{refused}"
    );
    assert!(!second.exists());
    under_way.done().await;
    let ended = running.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(paused(installation.client()).await, 0);
    concord_at(installation.server_url(), &backup).await.good();
}

/// An operator's pause is no reason against a backup, and a backup does not end it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_for_long_stays_so() {
    let installation = TestInstallation::start_without_adapter().await;
    let context = jetstream::new(installation.client().clone());
    let stream = context.get_stream("CONCORD_MESSAGES").await.unwrap();
    let until = OffsetDateTime::now_utc() + Duration::from_secs(3_600);
    stream.pause_consumer(INBOX, until).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let backup = ["backup", &text(&folder.path().join("copy"))];
    concord_at(installation.server_url(), &backup).await.good();
    let left = stream.consumer_info(INBOX).await.unwrap().pause_remaining;
    assert!(left > Some(Duration::from_secs(3_000)), "{left:?}");
    assert_eq!(paused(installation.client()).await, 1);
}
