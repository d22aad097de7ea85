//! An agent with nothing but a NATS client, which sends what the cases expect.

use std::collections::BTreeMap;
use std::time::Duration;

use concord_testkit::round_trip;
use futures::StreamExt;
use futures::stream::select_all;
use serde_json::Value;

use crate::clients::conformance::{self, Case};
use crate::clients::stage::{Stage, completed, plain, publish};

#[tokio::test(flavor = "multi_thread")]
async fn raw_nats_conforms() {
    let mut stage = Stage::start().await;
    let client = stage.broker.client().await;
    let conformance = conformance::read();
    let cases: BTreeMap<String, Case> = conformance
        .cases
        .into_iter()
        .map(|case| (case.name.clone(), case))
        .collect();
    let mut inboxes = Vec::new();
    for lane in ["msg", "urgent"] {
        let subject = format!("concord.v1.{lane}.*.*.{}.*", conformance.agent);
        inboxes.push(client.subscribe(subject).await.expect("a subscription"));
    }
    round_trip(&client).await;
    let mut inbox = select_all(inboxes);
    let agent = tokio::spawn(async move {
        while let Some(message) = inbox.next().await {
            let input: Value = serde_json::from_slice(&plain(&message).0).expect("JSON");
            if !is_as_its_subject_says(&message.subject, &input) {
                continue;
            }
            let Some(case) = input["metadata"]["conformance"]
                .as_str()
                .and_then(|name| cases.get(name))
            else {
                continue;
            };
            for output in &case.output {
                publish(&client, &output.subject, completed(&output.message), output).await;
                if case.answer.is_some() && output.message["message_type"] == "request" {
                    inbox.next().await.expect("an answer");
                } else if case.call == "request" && output.message["message_type"] == "request" {
                    let none = tokio::time::timeout(Duration::from_millis(200), inbox.next()).await;
                    assert!(none.is_err(), "nobody answers");
                }
            }
        }
    });
    conformance::play(&mut stage).await;
    agent.abort();
}

/// Whether the body names the sender, recipient, type and case that the subject names: the broker looks at the subject alone.
fn is_as_its_subject_says(subject: &str, body: &Value) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    let [_, _, _, case, from, to, kind] = tokens[..] else {
        return false;
    };
    let said_in = body["case_id"].as_str();
    body["from_agent"] == from
        && body["to_agent"] == to
        && body["message_type"] == kind
        && said_in.is_none_or(|said_in| said_in == case && case != "_")
}
