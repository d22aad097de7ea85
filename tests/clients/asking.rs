//! What an agent of the Rust library asks with a time limit says until when an answer counts.

use std::time::Duration;

use concord_agent::{Agent, AgentId, Message, MessageType, Recipient};
use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::clients::stage::Stage;

/// What ann sends when she asks ben this for so long; her patience is then cut short.
async fn asked(stage: &mut Stage, agent: &Agent, message: &Message, within: Duration) -> Value {
    let asking = agent.ask(message.clone(), within);
    tokio::select! {
        answer = asking => panic!("nobody has answered: {answer:?}"),
        (_, asked) = stage.next("a request") => asked,
    }
}

fn time(value: &Value) -> Timestamp {
    serde_json::from_value(value.clone()).expect("a time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_says_until_when_where_its_asker_waits_longer_than_is_usual() {
    let mut stage = Stage::start().await;
    let agent = Agent::builder("ann")
        .connect(&stage.broker.url())
        .await
        .expect("it connects");
    let message = |kind: MessageType, payload: Value| {
        let ben = Recipient::Agent(AgentId::fixed("ben"));
        agent.message(ben, kind, &payload).expect("a message")
    };
    let request = |more: Value| {
        let mut payload = json!({ "action": "help", "parameters": {} });
        let more = more.as_object().expect("an object").clone();
        payload.as_object_mut().expect("an object").extend(more);
        message(MessageType::Request, payload)
    };
    let long = Duration::from_secs(45);
    let month = Duration::from_secs(30 * 86_400);
    for (within, waits_ms) in [(long, 45_000), (Duration::MAX, 29 * 86_400_000)] {
        let sent = asked(&mut stage, &agent, &request(json!({})), within).await;
        let waits = time(&sent["deadline"]).millis_since(time(&sent["timestamp"]));
        // It was made before it was asked.
        assert!(
            (waits_ms..waits_ms + 30_000).contains(&waits),
            "what is later than {month:?} is refused: {sent:#}"
        );
    }
    let later: Timestamp = serde_json::from_value(json!("2100-01-01T00:00:00Z")).expect("a time");
    let with_deadline = Message {
        deadline: Some(later),
        ..request(json!({}))
    };
    let sent = asked(&mut stage, &agent, &with_deadline, long).await;
    assert_eq!(time(&sent["deadline"]), later, "its author said so");
    for (message, within) in [
        (request(json!({})), Duration::from_secs(10)),
        (request(json!({})), Duration::from_secs(30)),
        (request(json!({ "deadline": later })), long),
        (
            request(json!({ "callback_url": "https://example.org/done" })),
            long,
        ),
        (message(MessageType::Question, json!({})), long),
    ] {
        let sent = asked(&mut stage, &agent, &message, within).await;
        assert_eq!(sent["deadline"], Value::Null, "{sent:#}");
    }
    agent.close().await.expect("it is closed");
}
