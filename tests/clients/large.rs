//! Payloads over 1 MB: both libraries put them into the object store, and fetch them from it.

use std::time::Duration;

use concord_agent::{Agent, AgentId, Error, Message, MessageType};
use serde_json::{Value, json};

use crate::clients::python::Program;
use crate::clients::stage::{BUCKET, Stage, is_heard};

/// Connects an agent that answers a request with its parameters.
async fn connect_echo(url: &str) -> Agent {
    let builder =
        Agent::builder("bob").on(MessageType::Request, |agent, asked: Message| async move {
            let payload: Value = asked.payload()?;
            agent.respond(&asked, &payload["parameters"]).await
        });
    let bob = builder.connect(url).await.expect("it connects");
    is_heard(&bob).await;
    bob
}

/// The same in Python.
const ECHO: &str = r#"
import logging
from concord_agent import Agent
logging.basicConfig(level="INFO")
agent = Agent("bob")

@agent.on("request")
async def echo(asked):
    await agent.respond(asked, asked.payload["parameters"])

agent.run("URL")
"#;

/// Sends bob a large request, which comes back whole: the payload of the request, which is a reference, and the size.
async fn check_large_request(stage: &mut Stage, ann: &Agent, bob: &AgentId) -> (Value, usize) {
    let large = json!({ "text": "The liability is not capped. ".repeat(80_000) });
    let answered = ann
        .request(bob.clone(), "echo", &large)
        .await
        .expect("an answer");
    assert!(answered == large, "it comes back as it went");
    let (_, request) = stage.next("the request").await;
    let reference = &request["payload"]["payload_reference"];
    let whole = json!({ "action": "echo", "parameters": large });
    let size = whole.to_string().len();
    assert_eq!(
        (&reference["bucket"], &reference["size"]),
        (&json!(BUCKET), &json!(size)),
        "{request:#}"
    );
    let info = stage
        .store
        .info(reference["object"].as_str().expect("a name"))
        .await
        .expect("the object is there");
    assert_eq!(json!(info.digest), reference["digest"]);
    (request["payload"].clone(), size)
}

/// Payloads whose reference differs from a good one, each with the code of the error.
fn wrong_references(good: &Value, size: usize) -> [(Value, &'static str); 7] {
    let changed = |field: &str, to: Value| {
        let mut changed = good.clone();
        changed["payload_reference"][field] = to;
        changed
    };
    let other_digest = "SHA-256=RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o=";
    [
        (changed("object", json!("nothing")), "INVALID_REQUEST"),
        (changed("digest", json!(other_digest)), "INVALID_REQUEST"),
        (changed("size", json!(size - 1)), "INVALID_REQUEST"),
        (changed("size", json!(size + 1)), "INVALID_REQUEST"),
        (changed("size", json!(100_000_000)), "CAPACITY_EXCEEDED"),
        (changed("bucket", json!("OTHER")), "INVALID_REQUEST"),
        (changed("more", json!(1)), "INVALID_REQUEST"),
    ]
}

/// Exchanges large payloads with bob, an agent that answers a request with its parameters.
async fn check_exchange(stage: &mut Stage) {
    let ann = Agent::builder("ann")
        .connect(&stage.broker.url())
        .await
        .expect("it connects");
    let bob = AgentId::new("bob").expect("a name");
    let (payload, size) = check_large_request(stage, &ann, &bob).await;
    for (payload, code) in wrong_references(&payload, size) {
        let message = ann
            .message(bob.clone().into(), MessageType::Request, &payload)
            .expect("a message");
        match ann.ask(message, Duration::from_secs(30)).await {
            Err(Error::Refused(report)) => {
                assert_eq!(report.error_code.as_str(), code, "{payload}")
            }
            Err(other) => panic!("{payload}: {other}"),
            Ok(_) => panic!("{payload} is accepted"),
        }
    }
    let huge = json!({ "text": "x".repeat(9 << 20) });
    assert!(
        matches!(ann.request(bob, "echo", &huge).await, Err(Error::Fault(_))),
        "it is not even sent"
    );
    ann.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_is_sent_and_sends_what_is_over_a_megabyte() {
    let mut stage = Stage::start().await;
    let bob = connect_echo(&stage.broker.url()).await;
    check_exchange(&mut stage).await;
    bob.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_is_sent_and_sends_what_is_over_a_megabyte() {
    let mut stage = Stage::start().await;
    let program = ECHO.replace("URL", &stage.broker.url());
    let bob = Program::start(&program, "bob").await;
    check_exchange(&mut stage).await;
    bob.kill().await;
}
