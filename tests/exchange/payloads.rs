//! Messages that travel compressed.

use async_nats::{Client, HeaderMap};
use concord_testkit::{
    Message, Stored, TestInstallation, dead_letters, event_data, message_bodies, messages,
    original, settled, unique, wait_for,
};
use concord_wire::header::CONTENT_ENCODING;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{answer_to, card, names, register, request, response, to_coordinator};

/// A text that is long, and short when it is compressed.
fn long_text() -> String {
    "The liability is not capped. ".repeat(2_000)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    concord_encoding::gzip(body).unwrap()
}

/// A zstd frame with one block that holds the body uncompressed.
fn zstd(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    let block = (length << 3 | 1).to_le_bytes();
    [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xa0],
        length.to_le_bytes().as_slice(),
        &block[..3],
        body,
    ]
    .concat()
}

/// Publishes this body under the subject of a message, with a header that names an encoding.
async fn publish(client: &Client, message: &Message, encoding: &str, body: Vec<u8>) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, encoding);
    client
        .publish_with_headers(message.subject(), headers, body.into())
        .await
        .unwrap();
    client.flush().await.unwrap();
}

fn long_request(from: &str, to: &str) -> Message {
    request(from, to, "read", json!({ "text": long_text() }))
}

/// A request in either encoding is read, and so is a compressed response.
async fn check_compressed_requests(client: &Client, ann: &str, bob: &str) {
    type Compress = fn(&[u8]) -> Vec<u8>;
    let encodings: [(&str, Compress); 2] = [("gzip", gzip), ("zstd", zstd)];
    for (number, (encoding, compress)) in encodings.into_iter().enumerate() {
        let asked = long_request(ann, bob);
        publish(client, &asked, encoding, compress(&asked.bytes())).await;
        let answer = response(&asked.body, bob);
        publish(client, &answer, "gzip", gzip(&answer.bytes())).await;
        let what = format!("{encoding} to be answered");
        let answered = wait_for(what, PATIENCE, async || {
            let answered = event_data(client, "request.*.answered").await?;
            if answered.len() > number {
                Ok(answered)
            } else {
                Err("it is not".to_owned())
            }
        })
        .await;
        assert_eq!(answered[number]["request"]["request_id"], asked.id());
        assert_eq!(answered[number]["answer"]["message_id"], answer.id());
    }
}

/// A body that cannot be read is refused: its sender is told why, whoever it was for.
async fn check_refused(client: &Client, to: &str, encoding: &str, body: &[u8], reason: &str) {
    let eve = unique("eve");
    let message = Message::new("_", &eve, to, "request", Value::Null);
    publish(client, &message, encoding, body.to_vec()).await;
    let filter = format!("concord.v1.msg.*.coordinator.{eve}.error");
    let what = format!("{eve} to be told about {encoding}");
    let error = wait_for(what, PATIENCE, async || {
        let errors = message_bodies(client, &filter).await?;
        errors
            .into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let report = &error["payload"];
    assert_eq!(report["error_code"], "INVALID_REQUEST", "{error:#}");
    let message = report["error_message"].as_str().unwrap();
    assert!(message.contains(reason), "{reason}: {error:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compressed_is_read_and_what_cannot_be_is_refused_with_the_reason() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    check_compressed_requests(client, &ann, &bob).await;
    // A service reads it as well, and its answer names the message that it answers.
    let more = json!({ "description": "Reads.", "encodings": ["gzip"] });
    let enters = to_coordinator(&ann, "register_agent", card(&ann, &more));
    publish(client, &enters, "gzip", gzip(&enters.bytes())).await;
    assert_eq!(answer_to(client, &enters).await.0, "response");

    let whole = long_request(&ann, &bob).bytes();
    let too_large = gzip(&vec![b' '; 64 << 20]);
    for (encoding, body, reason) in [
        ("gzip", &too_large[..], "more than 1048576 bytes"),
        ("gzip", &gzip(&whole)[..100], "cannot be expanded as"),
        ("gzip", &whole[..], "cannot be expanded as gzip"),
        ("zstd", &zstd(&whole)[..100], "cannot be expanded as"),
        (
            "br",
            &whole[..],
            "names no encoding that is read here: \"br\"",
        ),
    ] {
        for to in [bob.as_str(), "coordinator"] {
            check_refused(client, to, encoding, body, reason).await;
        }
    }
    settled(client, PATIENCE).await.unwrap();
    // A message that could not be read is kept as it came, and can be sent again as it came.
    let letters = dead_letters(client).await.unwrap();
    let is_unknown = |letter: &&Stored| letter.header(CONTENT_ENCODING) == "br";
    let unknown: Vec<&Stored> = letters.iter().filter(is_unknown).collect();
    assert_eq!(unknown.len(), 2);
    for letter in unknown {
        let kept = original(client, letter).await.unwrap();
        assert!(kept == whole, "byte for byte");
    }
    assert_eq!(letters.len(), 10);
    installation.holds(PATIENCE).await;
}

/// Opens a case with this text in its task: the encodings in which the task is sent to each of these agents.
async fn task_encodings(
    installation: &TestInstallation,
    agents: [&String; 3],
    text: &str,
) -> [String; 3] {
    let case = unique("case");
    let task = json!({ "type": "test", "input": { "text": text } });
    let opening = json!({
        "case_id": case, "participants": agents, "task": task, "policy": { "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    let filter = format!("concord.v1.msg.{case}.coordinator.*.task_assignment");
    let sent = wait_for("all to be told", PATIENCE, async || {
        let sent = messages(installation.client(), &filter).await?;
        if sent.len() == 3 {
            Ok(sent)
        } else {
            Err(format!("{} are", sent.len()))
        }
    })
    .await;
    // The contents are the same for each.
    assert!(
        sent.iter()
            .all(|one| one.json()["payload"]["task"]["input"] == task["input"])
    );
    agents.map(|agent| {
        let mut sent = sent.iter();
        let to_agent = sent.find(|one| one.subject.contains(agent.as_str()));
        to_agent.unwrap().header(CONTENT_ENCODING).to_owned()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_compresses_what_is_large_for_who_reads_it_and_for_nobody_else() {
    let installation = TestInstallation::start_without_adapter().await;
    let [ann, bob, eve] = names(["ann", "bob", "eve"]);
    register(
        &installation,
        &ann,
        &json!({ "encodings": ["zstd", "gzip"] }),
    )
    .await;
    register(&installation, &bob, &json!({ "encodings": ["zstd"] })).await;
    let agents = [&ann, &bob, &eve];
    assert_eq!(
        task_encodings(&installation, agents, &long_text()).await,
        ["gzip", "", ""],
        "bob reads only what services do not write; eve is a stranger"
    );
    assert_eq!(
        task_encodings(&installation, agents, "short").await,
        ["", "", ""]
    );
    installation.holds(PATIENCE).await;
}
