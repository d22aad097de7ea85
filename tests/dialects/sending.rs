//! A message to an agent that is known to speak a dialect is sent in that dialect.

use concord_runtime::Broker;
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::{TestInstallation, messages};
use concord_wire::header::DIALECT;
use concord_wire::{Dialect, Envelope};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_dialect_is_known_is_written_to_in_it() {
    let installation = TestInstallation::start_without_adapter().await;
    let settings = BrokerSettings {
        servers: installation.server_url().to_owned(),
        ..BrokerSettings::default()
    };
    let broker = Broker::connect("test", &settings, &StorageSettings::default(), false)
        .await
        .expect("a connection");
    broker.write_by_cards(Box::new(|agent| {
        Dialect::parse(agent.as_str()).map(Into::into)
    }));
    for to in ["panel", "session", "concord", "nobody"] {
        let question: Envelope = serde_json::from_value(json!({
            "message_id": format!("q-{to}"), "timestamp": "2026-01-01T00:00:00Z", "from_agent": "debate-facilitator",
            "to_agent": to, "message_type": "question", "case_id": "c-1", "correlation_id": "d-1", "round": 2,
            "requires_response": true, "payload": { "debate_id": "d-1" },
        }))
        .expect("an envelope");
        broker
            .clone()
            .publish(&question, None)
            .await
            .expect("it is stored");
    }
    let sent = messages(installation.client(), "concord.v1.msg.c-1.>")
        .await
        .expect("the stream can be read");
    let [panel, session, concord, nobody] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(
        [panel, session, concord, nobody].map(|sent| sent.header(DIALECT)),
        ["panel", "session", "", ""]
    );
    let body = panel.json();
    let content: Value =
        serde_json::from_str(body["content"].as_str().unwrap_or_default()).expect("JSON");
    assert_eq!(
        (&body["messageType"], &body["round"], &content["debate_id"]),
        (&json!("question"), &json!(2), &json!("d-1"))
    );
    assert_eq!(session.json()["interaction_type"], "QUESTION");
    assert_eq!(concord.json()["payload"]["debate_id"], "d-1");
}
