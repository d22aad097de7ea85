//! A case of which a great deal is stored goes to the archive if it can, and hinders no other in any event.

use async_nats::{Client, HeaderMap};
use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, TestInstallation, event_data, messages, now, stored, unique, wait_for,
};
use concord_wire::header::CONTENT_ENCODING;
use serde_json::json;

use crate::archive::PATIENCE;
use crate::archive::stage::{
    concord, decide, decided, find, installation, installation_with_timers, open, removed,
};

/// Events on a filter, behind the prefix.
async fn events_of(client: &Client, filter: &str) -> Result<usize, String> {
    let filter = format!("concord.v1.event.{filter}");
    Ok(stored(client, StreamKind::Events, &filter).await?.len())
}

/// A request of an agent to another that nobody answers in time.
fn request(case: &str, from: &str) -> Message {
    let payload = json!({ "action": "ponder", "parameters": {} });
    let due = now().plus_millis(3_000);
    Message::new(case, from, "mute", "request", payload).with("/deadline", json!(due))
}

/// As whoever has compressed it publishes it.
async fn publish_compressed(client: &Client, message: &Message) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, "gzip");
    let body = concord_encoding::gzip(&message.bytes()).expect("it is compressed");
    let published = client.publish_with_headers(message.subject(), headers, body.into());
    published.await.expect("it is sent");
    client.flush().await.expect("the broker takes it");
}

/// Waits until so many requests have ended.
async fn ended(installation: &TestInstallation, count: usize) {
    wait_for(format!("{count} requests to end"), PATIENCE, async || {
        let ended = event_data(installation.client(), "request.*.failed").await?;
        match ended.len() >= count {
            true => Ok(()),
            false => Err(format!("{} have", ended.len())),
        }
    })
    .await;
}

/// What is refused stays in the stream under its case, so one agent makes it as large as it likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_is_too_large_stays_in_the_streams_and_others_are_archived() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let place = place.to_str().expect("a text");
    let bound = ["service.archive_case_bytes_max=150000"];
    let installation = installation_with_timers(place, &bound).await;
    let client = installation.client();
    // The first that is looked at.
    let (large, other) = (unique("a-case"), unique("b-case"));
    for _ in 0..4 {
        let subject = format!("concord.v1.msg.{large}.ann.coordinator.finding");
        let sent = client.publish(subject, vec![b'x'; 50_000].into()).await;
        sent.expect("it is sent");
    }
    decide(&installation, &large).await;
    decide(&installation, &other).await;
    removed(&installation, &other).await;
    let left = messages(client, &format!("concord.v1.msg.{large}.>")).await;
    let large_ones = left.expect("it is read");
    let large_ones = large_ones.iter().filter(|one| one.payload.len() == 50_000);
    assert_eq!(large_ones.count(), 4);
    let listed = concord(&installation, &["archive", "list", "--archive", place]).await;
    let listed = listed.to_string();
    assert!(
        listed.contains(&other) && !listed.contains(&large),
        "{listed}"
    );
    let shown = concord(&installation, &["case", "show", &large]).await;
    assert!(shown.to_string().contains(&large), "{shown}");
}

/// The broker gives the last messages of a thousand subjects at once, and a request leaves two or three.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_of_many_requests_is_archived_with_all_of_them_compressed_ones_too() {
    const REQUESTS: usize = 550;
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let client = installation.client();
    let case = unique("case");
    let [ann, ben] = open(&installation, &case).await;
    for number in 0..REQUESTS {
        let request = request(&case, &ann);
        match number % 10 {
            0 => publish_compressed(client, &request).await,
            _ => request.publish(client).await,
        }
    }
    ended(&installation, REQUESTS).await;
    find(&installation, &case, &ann, 10).await;
    find(&installation, &case, &ben, 80).await;
    decided(&installation, &case).await;
    removed(&installation, &case).await;
    let left = events_of(client, "request.>").await;
    assert_eq!(left, Ok(0));
}
