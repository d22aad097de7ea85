//! A service that was away reads several things at once which came one after the other, and not always in that order.

use concord_testkit::{Message, TestInstallation, event_data, settled, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::questions::PATIENCE;

/// So many times the order is left to chance.
const MANY: usize = 12;

fn query(number: usize, content: &str) -> Message {
    let payload = json!({ "content": content });
    Message::new(
        "_",
        &format!("eva-{number}"),
        "_any",
        "group_query",
        payload,
    )
}

/// The adapter reads cards and messages apart from each other, and decides about a message once.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_wakes_whom_it_names_although_they_registered_a_moment_before() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    installation.freeze(Service::AgentAdapter, 0).unwrap();
    for number in 0..MANY {
        let name = format!("new-{number}");
        let card = json!({ "action": "register_agent", "parameters": { "agent_id": name } });
        Message::new("_", &name, "coordinator", "request", card)
            .store(client)
            .await;
        wait_for("the registration", PATIENCE, async || {
            let registered = event_data(client, &format!("agent.{name}.registered")).await?;
            (!registered.is_empty())
                .then_some(())
                .ok_or_else(|| "none".to_owned())
        })
        .await;
        query(number, &format!("@{name} who knows?"))
            .store(client)
            .await;
    }
    installation.thaw(Service::AgentAdapter, 0).unwrap();
    let decided = wait_for("it to be decided whom they wake", PATIENCE, async || {
        let decided = event_data(client, "wake.*.decided").await?;
        let found = decided.len();
        (found == MANY)
            .then_some(decided)
            .ok_or_else(|| format!("{found} are"))
    })
    .await;
    for one in decided {
        assert_eq!(one["woken"].as_array().map_or(0, Vec::len), 1, "{one}");
    }
    settled(client, PATIENCE).await.unwrap();
}
