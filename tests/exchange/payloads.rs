//! Messages that travel compressed, and payloads that travel by the object store.

use async_nats::{Client, HeaderMap};
use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, TestInstallation, settled, stored, unique, until};
use concord_wire::header::CONTENT_ENCODING;
use concord_wire::subject::Service;
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
    [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xa0],
        length.to_le_bytes().as_slice(),
        &block[..3],
        body,
    ]
    .concat()
}

async fn publish(client: &Client, message: &Message, encoding: &str, body: Vec<u8>) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, encoding);
    client
        .publish_with_headers(message.subject(), headers, body.into())
        .await
        .unwrap();
    client.flush().await.unwrap();
}

async fn messages(client: &Client, filter: &str) -> Vec<Stored> {
    stored(client, StreamKind::Messages, filter).await.unwrap()
}

fn request(from: &str, to: &str) -> Message {
    Message::new(
        "_",
        from,
        to,
        "request",
        json!({ "action": "read", "parameters": { "text": long() } }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compressed_is_read_and_what_cannot_be_is_refused_with_the_reason() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    for (number, encoding) in ["gzip", "zstd"].into_iter().enumerate() {
        let asked = request(&ann, &bob);
        let body = if encoding == "gzip" {
            gzip(&asked.bytes())
        } else {
            zstd(&asked.bytes())
        };
        publish(client, &asked, encoding, body).await;
        let answer = Message::new(
            "_",
            &bob,
            &ann,
            "response",
            json!({ "status": "success", "result": { "read": true } }),
        )
        .with("/correlation_id", json!(asked.id()));
        publish(client, &answer, "gzip", gzip(&answer.bytes())).await;
        let answered = until(format!("{encoding} to be answered"), PATIENCE, async || {
            let answered = facts(client, "request", "answered").await;
            if answered.len() > number {
                Ok(answered)
            } else {
                Err("it is not".to_owned())
            }
        });
        let answered = answered.await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(answered[number]["request"]["request_id"], asked.id());
        assert_eq!(answered[number]["answer"]["message_id"], answer.id());
    }
    // To a service as well, whose answer names what it answers.
    let enters = to_coordinator(
        &ann,
        "register_agent",
        card(
            &ann,
            &json!({ "description": "Reads.", "encodings": ["gzip"] }),
        ),
    );
    publish(client, &enters, "gzip", gzip(&enters.bytes())).await;
    assert_eq!(answer_to(client, &enters).await.0, "response");

    let whole = request(&ann, &bob).bytes();
    for (encoding, body, says) in [
        (
            "gzip",
            gzip(&vec![b' '; 64 << 20]),
            "more than 1048576 bytes",
        ),
        (
            "gzip",
            gzip(&whole)[..100].to_vec(),
            "cannot be expanded as",
        ),
        ("gzip", whole.clone(), "cannot be expanded as gzip"),
        (
            "zstd",
            zstd(&whole)[..100].to_vec(),
            "cannot be expanded as",
        ),
        (
            "br",
            whole.clone(),
            "names no encoding that is read here: \"br\"",
        ),
    ] {
        for to in [bob.as_str(), "coordinator"] {
            let eve = unique("eve");
            let message = Message::new("_", &eve, to, "request", Value::Null);
            publish(client, &message, encoding, body.clone()).await;
            let told = until(
                format!("{eve} to be told about {encoding}"),
                PATIENCE,
                async || {
                    let told =
                        messages(client, &format!("concord.v1.msg.*.coordinator.{eve}.error"))
                            .await;
                    told.first()
                        .map(Stored::json)
                        .ok_or_else(|| "it is not".to_owned())
                },
            );
            let told = told.await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(told["payload"]["error_code"], "INVALID_REQUEST", "{told:#}");
            assert!(
                told["payload"]["error_message"]
                    .as_str()
                    .unwrap()
                    .contains(says),
                "{says}: {told:#}"
            );
        }
    }
    settled(client, PATIENCE).await.unwrap();
    // What could not be read is kept as it came, and can be sent again as it came.
    let kept = stored(client, StreamKind::Dead, ">").await.unwrap();
    let unknown: Vec<&Stored> = kept
        .iter()
        .filter(|letter| letter.header(CONTENT_ENCODING) == "br")
        .collect();
    assert_eq!(unknown.len(), 2);
    assert!(
        unknown.iter().all(|letter| letter.payload == whole),
        "byte for byte"
    );
    assert_eq!(kept.len(), 10);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_compresses_what_is_large_for_who_reads_it_and_for_nobody_else() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    let [ann, bob, eve] = names(["ann", "bob", "eve"]);
    for (agent, more) in [
        (&ann, json!({ "encodings": ["zstd", "gzip"] })),
        (&bob, json!({ "encodings": ["zstd"] })),
    ] {
        to_coordinator(agent, "register_agent", card(agent, &more))
            .publish(client)
            .await;
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
            let told = messages(
                client,
                &format!("concord.v1.msg.{case}.coordinator.*.task_assignment"),
            )
            .await;
            if told.len() == 3 {
                Ok(told)
            } else {
                Err(format!("{} are", told.len()))
            }
        });
        let told = told.await.unwrap_or_else(|error| panic!("{error}"));
        // It says the same to each.
        assert!(
            told.iter()
                .all(|one| one.json()["payload"]["task"]["input"] == task["input"])
        );
        [&ann, &bob, &eve].map(|agent| {
            let to = told
                .iter()
                .find(|one| one.subject.contains(agent.as_str()))
                .unwrap();
            to.header(CONTENT_ENCODING).to_owned()
        })
    };
    assert_eq!(
        open(&long()).await,
        ["gzip", "", ""],
        "bob reads only what services do not write; eve is a stranger"
    );
    assert_eq!(open("short").await, ["", "", ""]);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_over_a_megabyte_is_read_where_it_is_and_what_is_not_as_it_says_is_refused() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let actions = json!({ "actions": [{ "name": "read", "parameters": parameters }] });
    to_coordinator(&bob, "register_agent", card(&bob, &actions))
        .publish(client)
        .await;
    becomes(&installation, &bob, Some("available")).await;
    let store = async_nats::jetstream::new(client.clone())
        .get_object_store("CONCORD_PAYLOADS")
        .await;
    let store = store.expect("the services have made the bucket");
    let put = async |payload: &Value| {
        let (name, bytes) = (unique("object"), payload.to_string().into_bytes());
        let info = store
            .put(name.as_str(), &mut bytes.as_slice())
            .await
            .unwrap();
        json!({ "bucket": "CONCORD_PAYLOADS", "object": name, "size": info.size, "digest": info.digest })
    };
    let asks = |reference: &Value| {
        Message::new(
            "_",
            &ann,
            &bob,
            "request",
            json!({ "payload_reference": reference }),
        )
    };
    let text = "The liability is not capped. ".repeat(80_000);
    let good = put(&json!({ "action": "read", "parameters": { "text": text } })).await;
    let asked = asks(&good);
    asked.publish(client).await;
    let opened = until("the request to be known", PATIENCE, async || {
        let opened = facts(client, "request", "opened").await;
        opened
            .into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    });
    let opened = opened.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (&opened["request_id"], &opened["action"]),
        (&json!(asked.id()), &json!("read"))
    );
    let answer = Message::new(
        "_",
        &bob,
        &ann,
        "response",
        json!({ "status": "success", "result": {} }),
    )
    .with("/correlation_id", json!(asked.id()));
    answer.publish(client).await;

    let changed = |field: &str, to: Value| {
        let mut changed = good.clone();
        changed[field] = to;
        changed
    };
    let at = |field: &str| format!("/payload/payload_reference/{field}");
    let wrong = put(&json!({ "action": "read", "parameters": { "text": 1, "more": text } })).await;
    for (reference, code, pointer) in [
        (
            changed("object", json!("nothing")),
            "INVALID_REQUEST",
            at("object"),
        ),
        (
            changed("digest", json!("SHA-256=")),
            "INVALID_REQUEST",
            at("digest"),
        ),
        (changed("size", json!(100)), "INVALID_REQUEST", at("size")),
        (
            changed("size", json!(1_u64 << 40)),
            "CAPACITY_EXCEEDED",
            at("size"),
        ),
        (
            changed("bucket", json!("OTHER")),
            "INVALID_REQUEST",
            at("bucket"),
        ),
        (
            wrong,
            "INVALID_REQUEST",
            "/payload/parameters/text".to_owned(),
        ),
    ] {
        let message = asks(&reference);
        message.publish(client).await;
        let (kind, told) = answer_to(client, &message).await;
        assert_eq!(
            (kind.as_str(), told["error_code"].as_str()),
            ("error", Some(code)),
            "{reference}: {told}"
        );
        assert_eq!(told["details"]["pointer"], pointer, "{told}");
    }
    // A service is asked in the same way, and goes on afterwards.
    let parameters = json!({ "agent_id": bob, "why": "done" });
    let leaves = json!({ "action": "deregister_agent", "parameters": parameters, "context": { "text": text } });
    let reference = put(&leaves).await;
    let leaves = Message::new(
        "_",
        &bob,
        "coordinator",
        "request",
        json!({ "payload_reference": reference }),
    );
    leaves.publish(client).await;
    assert_eq!(answer_to(client, &leaves).await.0, "response");
    becomes(&installation, &bob, None).await;
    installation.holds(PATIENCE).await;
}
