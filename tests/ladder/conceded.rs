//! A challenge that the challenged agent concedes.

use concord_testkit::Message;
use serde_json::json;

use crate::ladder::stage::Stage;

/// The challenger says nothing more, and nobody else is asked: the decision changes at once, and both are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_is_conceded_is_settled_without_the_challenger() {
    let stage = Stage::start(1).await;
    stage.challenge().await;
    let asked = stage
        .message_to(&stage.finance, "challenge", |_| true)
        .await;
    let debate = asked["correlation_id"].as_str().expect("an id");
    let concedes = json!({ "agrees_with": stage.strategy, "reasoning": "They are right." });
    let to = "debate-facilitator";
    let message = Message::new(&stage.case, &stage.finance, to, "agreement", concedes);
    stage
        .send(&message.with("/correlation_id", debate.to_owned()))
        .await;
    let changed = stage.event("case", "decision_changed", |_| true).await["data"].clone();
    assert_eq!(changed["outcome"]["status"], "accepted", "{changed}");
    assert_eq!(changed["outcome"]["resolution"]["value"], 30, "{changed}");
    for agent in [&stage.finance, &stage.strategy] {
        let told = |message: &serde_json::Value| {
            message["payload"]["event"] == "case_decision_changed"
                && message["payload"]["data"]["change"]["version"] == 2
        };
        stage.message_to(agent, "notification", told).await;
    }
    stage.holds().await;
}
