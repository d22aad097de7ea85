//! Messages that travel compressed: read wherever they come from, written only to who reads them.

use async_nats::{Client, HeaderMap};
use concord_protocol::header::CONTENT_ENCODING;
use concord_protocol::stream::StreamKind;
use concord_protocol::subject::Service;
use concord_testkit::{Message, Stored, TestInstallation, settled, stored, unique, until};
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{answer_to, becomes, card, facts, names, start, to_coordinator};

/// A text that is long, and short when it is compressed.
fn long() -> String {
    "The liability is not capped. ".repeat(2_000)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    concord_encoding::gzip(body).unwrap()
}

/// A zstd frame with one block, as it is.
fn zstd(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    let block = (length << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], length.to_le_bytes().as_slice(), &block[..3], body].concat()
}

async fn publish(client: &Client, message: &Message, encoding: &str, body: Vec<u8>) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, encoding);
    client.publish_with_headers(message.subject(), headers, body.into()).await.unwrap();
    client.flush().await.unwrap();
}

async fn messages(client: &Client, filter: &str) -> Vec<Stored> {
    stored(client, StreamKind::Messages, filter).await.unwrap()
}

fn request(from: &str, to: &str) -> Message {
    Message::new("_", from, to, "request", json!({ "action": "read", "parameters": { "text": long() } }))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compressed_is_read_and_what_cannot_be_is_refused_with_the_reason() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    for (number, encoding) in ["gzip", "zstd"].into_iter().enumerate() {
        let asked = request(&ann, &bob);
        let body = if encoding == "gzip" { gzip(&asked.bytes()) } else { zstd(&asked.bytes()) };
        publish(client, &asked, encoding, body).await;
        let answer =
            Message::new("_", &bob, &ann, "response", json!({ "status": "success", "result": { "read": true } }))
                .with("/correlation_id", json!(asked.id()));
        publish(client, &answer, "gzip", gzip(&answer.bytes())).await;
        let answered = until(format!("{encoding} to be answered"), PATIENCE, async || {
            let answered = facts(client, "request", "answered").await;
            if answered.len() > number { Ok(answered) } else { Err("it is not".to_owned()) }
        });
        let answered = answered.await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(answered[number]["request"]["request_id"], asked.id());
        assert_eq!(answered[number]["answer"]["message_id"], answer.id());
    }
    // To a service as well, whose answer names what it answers.
    let enters =
        to_coordinator(&ann, "register_agent", card(&ann, &json!({ "description": "Reads.", "encodings": ["gzip"] })));
    publish(client, &enters, "gzip", gzip(&enters.bytes())).await;
    assert_eq!(answer_to(client, &enters).await.0, "response");

    let whole = request(&ann, &bob).bytes();
    for (encoding, body, says) in [
        ("gzip", gzip(&vec![b' '; 64 << 20]), "more than 1048576 bytes"),
        ("gzip", gzip(&whole)[..100].to_vec(), "cannot be expanded as"),
        ("gzip", whole.clone(), "cannot be expanded as gzip"),
        ("zstd", zstd(&whole)[..100].to_vec(), "cannot be expanded as"),
        ("br", whole.clone(), "names no encoding that is read here: \"br\""),
    ] {
        for to in [bob.as_str(), "coordinator"] {
            let eve = unique("eve");
            let message = Message::new("_", &eve, to, "request", Value::Null);
            publish(client, &message, encoding, body.clone()).await;
            let told = until(format!("{eve} to be told about {encoding}"), PATIENCE, async || {
                let told = messages(client, &format!("concord.v1.msg.*.coordinator.{eve}.error")).await;
                told.first().map(Stored::json).ok_or_else(|| "it is not".to_owned())
            });
            let told = told.await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(told["payload"]["error_code"], "INVALID_REQUEST", "{told:#}");
            assert!(told["payload"]["error_message"].as_str().unwrap().contains(says), "{says}: {told:#}");
        }
    }
    settled(client, PATIENCE).await.unwrap();
    // What could not be read is kept as it came, and can be sent again as it came.
    let kept = stored(client, StreamKind::Dead, ">").await.unwrap();
    let unknown: Vec<&Stored> = kept.iter().filter(|letter| letter.header(CONTENT_ENCODING) == "br").collect();
    assert_eq!(unknown.len(), 2);
    assert!(unknown.iter().all(|letter| letter.payload == whole), "byte for byte");
    assert_eq!(kept.len(), 10);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_compresses_what_is_large_for_who_reads_it_and_for_nobody_else() {
    let installation = TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    let [ann, bob, eve] = names(["ann", "bob", "eve"]);
    for (agent, more) in [(&ann, json!({ "encodings": ["zstd", "gzip"] })), (&bob, json!({ "encodings": ["zstd"] }))] {
        to_coordinator(agent, "register_agent", card(agent, &more)).publish(client).await;
        becomes(&installation, agent, Some("available")).await;
    }
    let open = async |text: &str| {
        let case = unique("case");
        let task = json!({ "type": "test", "input": { "text": text } });
        let opening = json!({
            "case_id": case, "participants": [ann, bob, eve], "task": task, "policy": { "finding_timeout_ms": 600_000 },
        });
        installation.open_case(&opening).await;
        let told = until("all to be told", PATIENCE, async || {
            let told = messages(client, &format!("concord.v1.msg.{case}.coordinator.*.task_assignment")).await;
            if told.len() == 3 { Ok(told) } else { Err(format!("{} are", told.len())) }
        });
        let told = told.await.unwrap_or_else(|error| panic!("{error}"));
        // It says the same to each.
        assert!(told.iter().all(|one| one.json()["payload"]["task"]["input"] == task["input"]));
        [&ann, &bob, &eve].map(|agent| {
            let to = told.iter().find(|one| one.subject.contains(agent.as_str())).unwrap();
            to.header(CONTENT_ENCODING).to_owned()
        })
    };
    assert_eq!(open(&long()).await, ["gzip", "", ""], "bob reads only what services do not write; eve is a stranger");
    assert_eq!(open("short").await, ["", "", ""]);
    installation.holds(PATIENCE).await;
}
