//! Headers that mean nothing here, of whoever may publish.

use async_nats::HeaderMap;
use concord_testkit::{Message, TestInstallation, unique, wait_for};
use serde_json::{Value, json};

use crate::bad_input::stage::PATIENCE;

/// Messages, and bytes of the header of each: many times what one answer may have.
const MESSAGES: usize = 40;
const HEADER: usize = 60_000;

/// The number of messages of a case, page by page.
async fn read(client: &async_nats::Client, case: &str) -> Result<usize, String> {
    let (mut number, mut after) = (0, 0);
    loop {
        let request = json!({ "case_id": case, "after": after }).to_string();
        let answer = client
            .request("concord.v1.api.coordinator.messages", request.into())
            .await
            .map_err(|error| error.to_string())?;
        let page: Value =
            serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())?;
        number += page["items"].as_array().ok_or("no items")?.len();
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => return Ok(number),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_headers_keep_nobody_from_reading_a_case() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = unique("case");
    let opening =
        json!({ "case_id": case, "participants": ["ann", "ben"], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let mut headers = HeaderMap::new();
    headers.insert("X-A", "a".repeat(HEADER));
    for _ in 0..MESSAGES {
        let said = Message::new(&case, "mal", "ben", "info_update", json!({ "text": "x" }));
        let (subject, body) = (said.subject(), said.bytes());
        let sent = client.publish_with_headers(subject, headers.clone(), body.into());
        sent.await.expect("it is sent");
    }
    client.flush().await.expect("it is with the broker");
    wait_for("every message of the case", PATIENCE, async || {
        let number = read(client, &case).await?;
        (number > MESSAGES)
            .then_some(())
            .ok_or_else(|| number.to_string())
    })
    .await;
}
