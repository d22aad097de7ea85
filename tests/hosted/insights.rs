//! A hosted agent hears what another has learned, and confirms the finding that it is about.

use concord_testkit::{Message, event_data, http_post, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Received, Server, Stage, callback_settings};

fn noted() -> Value {
    json!({ "message_type": "info_update", "payload": { "content": "Noted." } })
}

/// Confirms what it is told to matter, and says something else to other news. It has no finding yet.
fn said_to(received: &Received) -> Value {
    let payload = &received.body["payload"];
    match payload["event"].as_str() {
        Some("insight_shared") => json!({
            "message_type": "confirmation", "metadata": { "confidence": 0.6 },
            "payload": { "confirms": payload["data"]["insight"]["value"]["finding"] },
        }),
        Some(_) => noted(),
        None => json!({}),
    }
}

/// A server that answers at once.
async fn prompt() -> Server {
    Server::start(|received| async move { (200, said_to(&received).to_string()) }).await
}

/// A server that answers later, and says something else first.
async fn slow() -> Server {
    Server::start(|received| async move {
        if received.body["message_type"] != "notification" {
            return (200, "{}".to_owned());
        }
        let url = &received.headers["concord-callback-url"];
        let url = url.to_str().expect("an address").to_owned();
        tokio::spawn(async move {
            for answer in [noted(), said_to(&received)] {
                let status = http_post(&url, &answer.to_string()).await;
                assert_eq!(status.expect("the adapter answers"), 200);
            }
        });
        (202, String::new())
    })
    .await
}

#[tokio::test]
async fn a_hosted_agent_hears_an_insight_and_confirms_the_finding() {
    confirms_the_finding(prompt().await).await;
}

#[tokio::test]
async fn nothing_but_a_confirmation_is_published_of_what_is_said_to_news_later() {
    confirms_the_finding(slow().await).await;
}

async fn confirms_the_finding(server: Server) {
    let [hosted, ann] = ["hosted", "ann"].map(unique);
    let settings = format!(
        "{}[[service.agents]]\nagent_id = \"{hosted}\"\nhttp = {{ url = \"{}/agent\" }}\n",
        callback_settings(),
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let client = stage.installation.client();
    let opening = json!({
        "participants": [ann, hosted], "task": { "type": "t", "title": "t", "input": {} },
        "policy": { "finding_timeout_ms": 600_000, "importance": { "filtered": true } },
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
    let said = message_bodies(client, &format!("concord.v1.msg.*.{hosted}.*.*")).await;
    let said = said.expect("the messages").into_iter();
    let noted: Vec<Value> = said
        .filter(|one| one["message_type"] == "info_update")
        .collect();
    assert_eq!(noted, Vec::<Value>::new());
    stage.installation.holds(PATIENCE).await;
}
