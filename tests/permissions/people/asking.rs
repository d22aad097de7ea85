//! Whoever may do more than read asks the group, and hears the one answer.

use concord_testkit::{Message, knows_agents, message_bodies, settled, unique, wait_for};
use serde_json::json;

use super::{Cast, Stage};
use crate::permissions::PATIENCE;

/// A reviewer asks an agent that answers; an auditor may not ask.
pub(super) async fn check_asking(stage: &Stage) {
    let Cast { rob, adam, .. } = &stage.cast;
    let client = stage.installation.client();
    let tess = unique("tess");
    let card = json!({ "action": "register_agent", "parameters": { "agent_id": tess } });
    let register = Message::new("_", &tess, "coordinator", "request", card);
    register.store(client).await;
    let filter = format!("concord.v1.msg.*.*.{tess}.*");
    wait_for("the agent to be registered", PATIENCE, async || {
        let told = message_bodies(client, &filter).await?;
        told.first().map(drop).ok_or_else(|| "nothing".to_owned())
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
    // Its card reaches the adapter by itself.
    knows_agents(&stage.installation, PATIENCE).await;
    let answer = async {
        let woken = wait_for("the agent to be woken", PATIENCE, async || {
            let mut told = message_bodies(client, &filter).await?;
            told.retain(|body| body["payload"]["event"] == "woken");
            told.pop().ok_or_else(|| "it is not".to_owned())
        })
        .await;
        let asked = &woken["payload"]["data"]["message"];
        let payload = json!({ "status": "success", "result": { "content": "It is." } });
        let answer = Message::new("_", &tess, rob.as_str(), "response", payload)
            .with("/reply_to", asked["message_id"].clone());
        answer.store(client).await;
    };
    let line = format!("ask '@{tess} is this usual?'");
    let (answered, ()) = tokio::join!(stage.good(rob, &line), answer);
    let expected = format!("primary {tess}: It is.");
    assert!(answered.contains(&expected), "{answered}");
    stage.refused(adam, &line, "does not let").await;
}
