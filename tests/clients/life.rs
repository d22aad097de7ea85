//! An agent registers, sends heartbeats, and deregisters.

use concord_agent::protocol::Encoding;
use concord_agent::{Agent, AgentStatus, Card, Skill};
use serde_json::{Value, json};

use crate::clients::python::Driver;
use crate::clients::stage::Stage;

/// Plays the coordinator for an agent that registers, and checks its card and its first heartbeats.
async fn check_registration(stage: &mut Stage) {
    let (subject, request) = stage.next("registration").await;
    assert_eq!(subject, "concord.v1.msg._.ann.coordinator.request");
    let Value::Object(payload) = &request["payload"] else {
        panic!("{request:#}")
    };
    assert_eq!(payload["action"], "register_agent");
    let card: Card = serde_json::from_value(payload["parameters"].clone()).expect("a card");
    assert_eq!(
        (
            card.agent_id.as_str(),
            card.skills[0].name.as_str(),
            card.heartbeat_ms
        ),
        ("ann", "tax", Some(100))
    );
    assert!(
        card.encodings.contains(&Encoding::Gzip),
        "it says what it reads"
    );
    let answer =
        json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
    stage.answer(&request, &answer).await;
    for _ in 0..3 {
        check_heartbeat(stage, "available").await;
    }
}

/// The next message is a heartbeat with this status.
async fn check_heartbeat(stage: &mut Stage, status: &str) {
    let expected = (
        "concord.v1.beat.ann".to_owned(),
        json!({ "status": status }),
    );
    assert_eq!(stage.next("a heartbeat").await, expected);
}

/// The agent sends heartbeats until it says that it goes, in a heartbeat and to the coordinator.
async fn check_going(stage: &mut Stage) {
    let mut is_unavailable = false;
    let mut is_deregistered = false;
    while !(is_unavailable && is_deregistered) {
        let (subject, message) = stage.next("going").await;
        if subject == "concord.v1.beat.ann" {
            is_unavailable = message["status"] == "unavailable";
        } else if message["message_type"] == "status" {
            // What its author has said of it before; see the test.
            assert_eq!(message["payload"], json!({ "status": "available" }));
        } else {
            let expected =
                json!({ "action": "deregister_agent", "parameters": { "agent_id": "ann" } });
            assert_eq!(message["payload"], expected, "{message:#}");
            is_deregistered = true;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_comes_and_goes() {
    let mut stage = Stage::start().await;
    let skill: Skill =
        serde_json::from_value(json!({ "name": "tax", "examples": ["What is VAT?"] }))
            .expect("a skill");
    let mut card = Card::new(concord_agent::AgentId::new("ann").expect("a name"));
    card.heartbeat_ms = Some(100);
    let url = stage.broker.url();
    let connecting = tokio::spawn(async move {
        Agent::builder("ann")
            .card(card)
            .skill(skill)
            .connect(&url)
            .await
    });
    check_registration(&mut stage).await;
    let agent = connecting.await.expect("it runs").expect("it connects");
    agent
        .status(AgentStatus::Available)
        .await
        .expect("it is said");
    agent.close().await.expect("it is closed");
    check_going(&mut stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_comes_and_goes() {
    let mut stage = Stage::start().await;
    let url = stage.broker.url();
    let (driver, ()) = tokio::join!(
        Driver::start(&url, &["card"]),
        check_registration(&mut stage)
    );
    driver.end().await;
    check_going(&mut stage).await;
}
