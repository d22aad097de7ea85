//! A case whose analyses are being done again is not over: what comes of them belongs to it.

use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_testkit::{Message, event_data, message_bodies, stored, unique, wait_for};
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{concord, decide, decided, find, installation, open, removed};

/// What is asked of the coordinator, and waits until so many events follow from it.
async fn ask(client: &Client, message: Message, followed: &str, count: usize) {
    message.store(client).await;
    wait_for(followed, PATIENCE, async || {
        let events = event_data(client, followed).await?;
        (events.len() == count)
            .then_some(())
            .ok_or_else(|| format!("{events:?}"))
    })
    .await;
}

fn request(case: &str, from: &str, action: &str, parameters: Value) -> Message {
    let payload = json!({ "action": action, "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

/// The message by which the agent is to do its analysis again.
async fn asked(client: &Client, agent: &str) -> Value {
    wait_for("the task of the run", PATIENCE, async || {
        let filter = format!("concord.v1.msg.*.*.{agent}.task_assignment");
        let given = message_bodies(client, &filter).await?;
        let is_it = |body: &Value| body["payload"]["task"]["type"] == "rerun_analysis";
        let found = given.into_iter().find(is_it);
        found.ok_or_else(|| "none".to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_is_archived_when_its_analyses_have_been_done_again() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let client = installation.client();
    let [case, other] = ["case", "other"].map(unique);
    let [ann, ben] = open(&installation, &case).await;
    let card = request("_", &ben, "register_agent", json!({ "agent_id": ben }));
    ask(client, card, &format!("agent.{ben}.registered"), 1).await;
    let uses = json!([{ "kind": "analysis", "id": "dcf", "metric": "x" }]);
    for (place, (from, id, figure, uses)) in [
        (&ann, "dcf", 85, json!([])),
        (&ben, "memo", 10, uses),
        (&ann, "dcf", 95, json!([])),
    ]
    .into_iter()
    .enumerate()
    {
        let analysis = json!({
            "analysis_id": id, "type": "test", "figures": { "x": figure }, "rerun_minutes": 5, "depends_on": uses,
        });
        let published = request(&case, from, "publish_analysis", analysis);
        let followed = format!("impact.{case}.published");
        ask(client, published, &followed, place + 1).await;
    }
    for agent in [&ann, &ben] {
        find(&installation, &case, agent, 40).await;
    }
    decided(&installation, &case).await;
    concord(&installation, &["impact", "run", &case]).await;
    let task = asked(client, &ben).await;

    // Long enough for everything else that is over.
    decide(&installation, &other).await;
    removed(&installation, &other).await;
    let filter = format!("concord.v1.event.impact.{case}.>");
    let left = stored(client, StreamKind::Events, &filter).await;
    assert_eq!(left.map(|events| events.len()), Ok(4), "it is under way");

    let result = json!({ "result": { "figures": { "x": 20 } } });
    let result = Message::new("_", &ben, "coordinator", "task_result", result);
    let result = result.with("/reply_to", task["message_id"].clone());
    result.store(client).await;
    removed(&installation, &case).await;
    let left = stored(client, StreamKind::Events, &filter).await;
    assert_eq!(left.map(|events| events.len()), Ok(0));
}
