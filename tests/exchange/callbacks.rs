//! A request with a callback is acknowledged at once, and its asker is notified when it is completed.

use concord_testkit::{Message, TestInstallation, wait_for};
use serde_json::json;

use crate::PATIENCE;
use crate::stage::{answers_to, names, request, requests_with, response};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_callback_is_acknowledged_and_its_completion_is_told() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let slow = request(&ann, &bob, "train", json!({}))
        .with("/payload/callback_url", json!("https://example.org/done"));
    slow.publish(client).await;
    requests_with(&installation, "opened", 1).await;
    Message::new("_", &bob, &ann, "acknowledgement", json!({}))
        .with("/correlation_id", json!(slow.id()))
        .publish(client)
        .await;
    requests_with(&installation, "acknowledged", 1).await;
    let asked = json!({ "from_agent": ann, "message_id": slow.id() });
    response(&asked, &bob).publish(client).await;
    let (_, notification) = wait_for("the completion to be told", PATIENCE, async || {
        let answers = answers_to(client, &slow).await;
        let mut notifications = answers
            .into_iter()
            .filter(|(kind, _)| kind == "notification");
        notifications.next().ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let result = &notification["data"]["payload"]["result"];
    assert_eq!(
        (notification["event"].as_str(), &result["done"]),
        (Some("request_completed"), &json!(true))
    );
    installation.holds(PATIENCE).await;
}
