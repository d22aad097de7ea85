//! Large messages that come while a service cannot read them.

use std::time::Duration;

use async_nats::jetstream;
use concord_testkit::{Message, TestInstallation, message_bodies, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::kill::blows::{freeze, thaw};

const PATIENCE: Duration = Duration::from_secs(60);
/// 47 MB, which one agent may send at once.
const MESSAGES: usize = 12;
const BYTES: usize = 3_900_000;
/// Four of them are as many bytes as a process asks for in one request, and it may have asked twice.
const SENT_MAX: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_is_sent_before_it_reads_is_bounded_in_bytes() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    freeze(&installation, Service::Coordinator, 0);
    let text = "x".repeat(BYTES);
    for _ in 0..MESSAGES {
        let payload = json!({ "action": "no_such_action", "parameters": { "text": text } });
        Message::new("_", "ann", "coordinator", "request", payload)
            .publish(client)
            .await;
    }
    let jetstream = jetstream::new(client.clone());
    let stream = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    let state = wait_for("all to be stored", PATIENCE, async || {
        let state = stream.consumer_info("coordinator-inbox").await.unwrap();
        let stored = state.num_pending as usize + state.num_ack_pending;
        (stored == MESSAGES)
            .then_some(state)
            .ok_or_else(|| format!("{stored} are"))
    })
    .await;
    assert!(state.num_ack_pending <= SENT_MAX, "{state:?}");
    thaw(&installation, Service::Coordinator, 0);
    wait_for("each to be refused", PATIENCE, async || {
        let errors = message_bodies(client, "concord.v1.msg.*.coordinator.ann.error");
        let errors = errors.await.unwrap().len();
        (errors == MESSAGES)
            .then_some(())
            .ok_or_else(|| format!("{errors} are"))
    })
    .await;
    installation.holds(PATIENCE).await;
}
