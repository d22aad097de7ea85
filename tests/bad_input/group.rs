//! What is said to a group and cannot be read: no recipient tells its sender, so the agent adapter does, once.

use concord_testkit::{Message, dead_letters, with_adapter_settings};
use concord_wire::subject::Service;
use serde_json::json;

use crate::bad_input::stage::{Sent, Stage, invalid, unauthorized};

fn said(to: &str, kind: &str) -> Message {
    Message::new("_", "alice", to, kind, json!({ "content": "Who knows?" }))
}

/// The message with another text in its body.
async fn send_with(stage: &Stage, message: &Message, (from, to): (&str, &str)) -> Sent {
    let whole = String::from_utf8(message.bytes()).expect("JSON is UTF-8");
    assert!(whole.contains(from), "{from} in {whole}");
    let sent = stage.send_bytes(message.subject(), whole.replace(from, to).into());
    sent.await
}

async fn is_refused_once(stage: &Stage, to: &str, kind: &str) {
    let sent = stage
        .send_bytes(said(to, kind).subject(), b"Who knows?".to_vec())
        .await;
    let error = stage.refused("alice", &sent, &invalid("")).await;
    assert_eq!(error["from_agent"], "agent-adapter", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_read_in_a_group_is_refused_once() {
    let stage = Stage::start_with(|plan| {
        with_adapter_settings(plan.with_replicas(Service::AgentAdapter, 1), "")
    })
    .await;
    for to in ["_any", "_all"] {
        for kind in ["group_query", "peer_request"] {
            is_refused_once(&stage, to, kind).await;
        }
        let another = (r#""from_agent":"alice""#, r#""from_agent":"mallory""#);
        let sent = send_with(&stage, &said(to, "group_query"), another).await;
        let expected = unauthorized("/from_agent");
        stage.refused("alice", &sent, &expected).await;
    }
    // It is for ben to say so.
    let of_ben = said("ben", "peer_request").subject();
    let of_ben = stage.send_bytes(of_ben, b"Who knows?".to_vec()).await;
    stage.settled().await;
    assert!(stage.is_alive(&of_ben).await);
    let letters = dead_letters(stage.client()).await.expect("the letters");
    let errors = stage.errors("alice").await;
    assert_eq!((letters.len(), errors.len()), (6, 6), "{errors:#?}");
}
