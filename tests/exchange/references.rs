//! Payloads over 1 MB, which travel by the object store: the message holds a reference.

use async_nats::jetstream::{self, object_store::ObjectStore};
use concord_testkit::{Message, TestInstallation, unique};
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{
    answer_to, fails_at, names, register, requests_with, response, wait_for_status,
};

const BUCKET: &str = "CONCORD_PAYLOADS";

/// Stores a payload: the reference to it.
async fn put(store: &ObjectStore, payload: &Value) -> Value {
    let name = unique("object");
    let bytes = payload.to_string().into_bytes();
    let info = store
        .put(name.as_str(), &mut bytes.as_slice())
        .await
        .unwrap();
    json!({ "bucket": BUCKET, "object": name, "size": info.size, "digest": info.digest })
}

/// A request whose payload is where the reference says.
fn request_by(reference: &Value, from: &str, to: &str) -> Message {
    let payload = json!({ "payload_reference": reference });
    Message::new("_", from, to, "request", payload)
}

/// References that differ in one field from a good one, each with the code of the error and the field that it names.
fn wrong_references(good: &Value) -> [(Value, &'static str, &'static str); 5] {
    let changed = |field: &str, to: Value| {
        let mut changed = good.clone();
        changed[field] = to;
        changed
    };
    [
        (
            changed("object", json!("nothing")),
            "INVALID_REQUEST",
            "object",
        ),
        (
            changed("digest", json!("SHA-256=")),
            "INVALID_REQUEST",
            "digest",
        ),
        (changed("size", json!(100)), "INVALID_REQUEST", "size"),
        (
            changed("size", json!(1_u64 << 40)),
            "CAPACITY_EXCEEDED",
            "size",
        ),
        (
            changed("bucket", json!("OTHER")),
            "INVALID_REQUEST",
            "bucket",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_over_a_megabyte_is_read_where_it_is_and_what_is_not_as_it_says_is_refused() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let actions = json!({ "actions": [{ "name": "read", "parameters": parameters }] });
    register(&installation, &bob, &actions).await;
    let store = jetstream::new(client.clone())
        .get_object_store(BUCKET)
        .await
        .expect("the services have made the bucket");
    let text = "The liability is not capped. ".repeat(80_000);
    let payload = json!({ "action": "read", "parameters": { "text": text } });
    let good = put(&store, &payload).await;
    let asked = request_by(&good, &ann, &bob);
    asked.publish(client).await;
    let opened = requests_with(&installation, "opened", 1).await;
    assert_eq!(
        (&opened[0]["request_id"], &opened[0]["action"]),
        (&json!(asked.id()), &json!("read"))
    );
    response(&asked.body, &bob).publish(client).await;

    for (reference, code, field) in wrong_references(&good) {
        let message = request_by(&reference, &ann, &bob);
        let pointer = format!("/payload/payload_reference/{field}");
        fails_at(client, &message, code, &pointer).await;
    }
    let payload = json!({ "action": "read", "parameters": { "text": 1, "more": text } });
    let message = request_by(&put(&store, &payload).await, &ann, &bob);
    let pointer = "/payload/parameters/text";
    fails_at(client, &message, "INVALID_REQUEST", pointer).await;
    // What would take many times its bytes in memory is not read.
    let digits = json!({ "action": "open_case", "parameters": { "digits": vec![0; 600_000] } });
    let message = request_by(&put(&store, &digits).await, &ann, "coordinator");
    fails_at(client, &message, "CAPACITY_EXCEEDED", "/payload").await;
    // A service reads such a payload as well, and goes on afterwards.
    let parameters = json!({ "agent_id": bob, "why": "done" });
    let payload = json!({ "action": "deregister_agent", "parameters": parameters, "context": { "text": text } });
    let leaves = request_by(&put(&store, &payload).await, &bob, "coordinator");
    leaves.publish(client).await;
    assert_eq!(answer_to(client, &leaves).await.0, "response");
    wait_for_status(&installation, &bob, None).await;
    installation.holds(PATIENCE).await;
}
