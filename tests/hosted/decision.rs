//! A hosted agent is told when a decision that it took part in changes.

use concord_testkit::{Message, unique, wait_for};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Received, Server, Stage};

/// A server that finds a high risk, and answers what it is told with words that nobody asked for.
async fn start_server() -> Server {
    Server::start(|received| async move {
        let answer = match received.body["message_type"].as_str() {
            Some("task_assignment") => json!({
                "message_type": "finding", "payload": { "summary": "Risky.", "risk_score": 80 },
            }),
            _ => json!({ "message_type": "info_update", "payload": { "content": "Noted." } }),
        };
        (200, answer.to_string())
    })
    .await
}

/// The changes of decisions that the server was told of.
fn changes(received: &[Received]) -> Vec<Value> {
    received
        .iter()
        .map(|call| &call.body["payload"])
        .filter(|payload| payload["event"] == "case_decision_changed")
        .map(|payload| payload["data"].clone())
        .collect()
}

#[tokio::test]
async fn a_hosted_agent_is_told_of_an_override_after_the_decision() {
    let server = start_server().await;
    let [hosted, other] = ["hosted", "other"].map(unique);
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{hosted}\"\nhttp = {{ url = \"{}/agent\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let installation = &stage.installation;
    installation.register("gail", &["reviewer"]).await;
    let opening = json!({
        "participants": [hosted, other], "task": { "type": "t", "title": "t", "input": {} },
        "policy": {
            "conflict_handling": "ladder", "rounds_max": 0,
            "ladder": { "times": { "opinion_ms": 1, "mediation_ms": 50, "person_ms": 100 } },
        },
    });
    let case = installation.open_case(&opening).await;
    let finding = json!({ "summary": "Usual.", "risk_score": 20 });
    Message::finding(case.as_str(), &other, finding, 0.8)
        .store(installation.client())
        .await;
    let decided = installation.decision(&case, PATIENCE).await;
    let decision = &decided["decision"];
    let debate = decision["provisional"][0].as_str().expect("a debate");
    let review = json!({
        "gate": "final review", "action": "override", "debate_id": debate, "position": "10", "value": 10,
        "rationale": "The annex caps it.",
    });
    Message::new(case.as_str(), "gail", "coordinator", "review", review)
        .store(installation.client())
        .await;
    let told = wait_for("the server to be told", PATIENCE, async || {
        changes(&server.received())
            .pop()
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(told["decision"]["outcome"]["risk_score"], 10.0);
    assert_eq!(
        (&told["change"]["version"], &told["change"]["by"]),
        (&json!(2), &json!("gail"))
    );
    stage.wait_until_done(&hosted).await;
    let subject = format!("concord.v1.msg.{case}.{hosted}.*.info_update");
    let published = concord_testkit::message_bodies(installation.client(), &subject).await;
    assert_eq!(published.expect("the messages"), Vec::<Value>::new());
    installation.holds(PATIENCE).await;
}
