//! Payloads over 1 MB: both libraries put them into the object store and fetch them from it.

use std::process::Stdio;
use std::time::Duration;

use concord_agent::{Agent, AgentId, Error, Message, MessageType};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::python::python;
use crate::stage::{BUCKET, PATIENCE, Stage};

/// An agent that answers a request with its parameters.
async fn echo(url: &str) -> Agent {
    let builder =
        Agent::builder("bob").on(MessageType::Request, |agent, asked: Message| async move {
            let payload: Value = asked.payload()?;
            agent.respond(&asked, &payload["parameters"]).await
        });
    builder.connect(url).await.expect("it connects")
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

async fn exchanged(stage: &mut Stage) {
    let ann = Agent::builder("ann")
        .connect(&stage.broker.url())
        .await
        .expect("it connects");
    let bob = AgentId::new("bob").expect("a name");
    let large = json!({ "text": "The liability is not capped. ".repeat(80_000) });
    let answered = ann
        .request(bob.clone(), "echo", &large)
        .await
        .expect("an answer");
    assert!(answered == large, "it comes back as it went");
    let (_, said) = stage.next("the request").await;
    let reference = &said["payload"]["payload_reference"];
    let size = json!({ "action": "echo", "parameters": large })
        .to_string()
        .len();
    assert_eq!(
        (&reference["bucket"], &reference["size"]),
        (&json!(BUCKET), &json!(size)),
        "{said:#}"
    );
    let info = stage
        .store
        .info(reference["object"].as_str().expect("a name"))
        .await
        .expect("the object is there");
    assert_eq!(json!(info.digest), reference["digest"]);

    // Whatever is wrong with a reference is told.
    let change = |field: &str, to: Value| {
        let mut changed = said["payload"].clone();
        changed["payload_reference"][field] = to;
        changed
    };
    for (payload, code) in [
        (change("object", json!("nothing")), "INVALID_REQUEST"),
        (
            change(
                "digest",
                json!("SHA-256=RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o="),
            ),
            "INVALID_REQUEST",
        ),
        (change("size", json!(size - 1)), "INVALID_REQUEST"),
        (change("size", json!(size + 1)), "INVALID_REQUEST"),
        (change("size", json!(100_000_000)), "CAPACITY_EXCEEDED"),
        (change("bucket", json!("OTHER")), "INVALID_REQUEST"),
        (change("more", json!(1)), "INVALID_REQUEST"),
    ] {
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
    let bob = echo(&stage.broker.url()).await;
    exchanged(&mut stage).await;
    bob.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_is_sent_and_sends_what_is_over_a_megabyte() {
    let mut stage = Stage::start().await;
    let program = ECHO.replace("URL", &stage.broker.url());
    let mut bob = python()
        .arg("-c")
        .arg(program)
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut log = BufReader::new(bob.stderr.take().expect("its log")).lines();
    let listening = tokio::time::timeout(PATIENCE, async {
        while let Some(line) = log.next_line().await.expect("its log can be read") {
            if line.contains("bob listens") {
                return;
            }
        }
        panic!("the Python agent has ended");
    });
    listening.await.expect("the Python agent listens");
    let drained = tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    exchanged(&mut stage).await;
    bob.kill().await.expect("it is ended");
    drained.abort();
}
