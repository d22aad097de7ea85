//! What ends a request: whoever answers first what everybody was asked, and a notification that says that the work is complete.

use concord_testkit::{Message, TestInstallation, settled, wait_for};
use serde_json::json;

use crate::exchange::PATIENCE;
use crate::exchange::stage::{fails, in_millis, known, names, request, requests_with, response};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_everybody_ends_with_the_first_answer_or_with_a_timeout() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let asked = |millis: u64| {
        request(&ann, "_all", "ponder", json!({})).with("/deadline", json!(in_millis(millis)))
    };
    let lost = asked(700);
    fails(client, &lost, "TIMEOUT").await;

    let good = asked(20_000);
    good.publish(client).await;
    response(&good.body, &bob).publish(client).await;
    let answered = requests_with(&installation, "answered", 1).await;
    assert_eq!(answered[0]["request"]["request_id"], good.id());
    assert_eq!(answered[0]["answer"]["by"], json!(bob));
    // A broadcast of another type expects no answer.
    Message::new(
        "_",
        &ann,
        "_all",
        "notification",
        json!({ "event": "lunch" }),
    )
    .store(client)
    .await;
    settled(client, PATIENCE).await.unwrap();
    let asked = [&lost, &good].map(|asked| asked.id().to_owned());
    assert_eq!(known(client).await, Ok(asked.into()));
    installation.holds(PATIENCE).await;
}

/// A notification of `by` that names a request.
fn told(asked: &Message, by: &str, event: &str) -> Message {
    let payload = json!({ "event": event, "data": { "pct": 10 }, "severity": "info" });
    Message::new("_", by, &asked.from, "notification", payload)
        .with("/correlation_id", json!(asked.id()))
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_ends_no_request_and_any_other_notification_does() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let lost = request(&ann, &bob, "train", json!({})).with("/deadline", json!(in_millis(2_000)));
    let slow = request(&ann, &bob, "train", json!({}))
        .with("/payload/callback_url", json!("https://example.org/done"));
    for asked in [&lost, &slow] {
        asked.publish(client).await;
    }
    wait_for("both to be known", PATIENCE, async || {
        let known = known(client).await?;
        (known.len() == 2)
            .then_some(())
            .ok_or_else(|| format!("{known:?}"))
    })
    .await;
    for asked in [&lost, &slow] {
        told(asked, &bob, "progress").publish(client).await;
    }
    // Who tells of its progress has the request.
    let acknowledged = requests_with(&installation, "acknowledged", 1).await;
    assert_eq!(acknowledged.len(), 1, "{acknowledged:?}");
    let failed = requests_with(&installation, "failed", 1).await;
    assert_eq!(
        (
            &failed[0]["request"]["request_id"],
            &failed[0]["error_code"]
        ),
        (&json!(lost.id()), &json!("TIMEOUT"))
    );

    let done = told(&slow, &bob, "training_done");
    done.publish(client).await;
    let answered = requests_with(&installation, "answered", 1).await;
    assert_eq!(answered[0]["request"]["request_id"], slow.id());
    assert_eq!(answered[0]["answer"]["message_id"], done.id());
    installation.holds(PATIENCE).await;
}
