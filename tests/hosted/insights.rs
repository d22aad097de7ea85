//! A hosted agent hears what another has learned, and confirms the finding that it is about.

use concord_testkit::{Message, event_data, unique, wait_for};
use serde_json::json;

use crate::stage::{PATIENCE, Server, Stage};

/// A server that has no finding yet, confirms what it is told to matter, and says something else to other news.
async fn confirming() -> Server {
    Server::start(|received| async move {
        let payload = &received.body["payload"];
        let answer = match payload["event"].as_str() {
            Some("insight_shared") => json!({
                "message_type": "confirmation", "metadata": { "confidence": 0.6 },
                "payload": { "confirms": payload["data"]["insight"]["value"]["finding"] },
            }),
            Some(_) => json!({ "message_type": "info_update", "payload": { "content": "Noted." } }),
            None => json!({}),
        };
        (200, answer.to_string())
    })
    .await
}

#[tokio::test]
async fn a_hosted_agent_hears_an_insight_and_confirms_the_finding() {
    let server = confirming().await;
    let [hosted, ann] = ["hosted", "ann"].map(unique);
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{hosted}\"\nhttp = {{ url = \"{}/agent\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let client = stage.installation.client();
    let opening = json!({
        "participants": [ann, hosted], "task": { "type": "t", "title": "t", "input": {} },
        "policy": { "importance": { "filtered": true } },
    });
    let case = stage.installation.open_case(&opening).await;
    let seen = json!({ "summary": "Seen.", "risk_score": 10 });
    let finding = Message::finding(case.as_str(), &ann, seen, 0.8);
    finding.store(client).await;
    let recorded = format!("case.{case}.finding_recorded");
    wait_for("the finding", PATIENCE, async || {
        let recorded = event_data(client, &recorded).await?.len();
        (recorded == 1).then_some(()).ok_or("none".to_owned())
    })
    .await;
    let parameters =
        json!({ "topic": "risk", "value": { "finding": finding.id() }, "importance": 0.95 });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    let insight = Message::new(case.as_str(), &ann, "coordinator", "request", payload);
    insight.store(client).await;
    let filter = format!("case.{case}.confirmed");
    let confirmed = wait_for("a confirmation", PATIENCE, async || {
        let confirmed = event_data(client, &filter).await?;
        confirmed.into_iter().next().ok_or("none".to_owned())
    })
    .await;
    assert_eq!(
        (
            &confirmed["finding"],
            &confirmed["author"],
            &confirmed["strengthened"]
        ),
        (&json!(finding.id()), &json!(ann), &json!(0.86))
    );
    let last = json!({ "summary": "Seen.", "risk_score": 12 });
    Message::finding(case.as_str(), &hosted, last, 0.7)
        .store(client)
        .await;
    stage.installation.decision(&case, PATIENCE).await;
    stage.wait_until_done(&hosted).await;
    assert_eq!(
        event_data(client, &filter).await.map(|all| all.len()),
        Ok(1)
    );
    stage.installation.holds(PATIENCE).await;
}
