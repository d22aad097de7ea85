//! The completion of a request with a callback is posted to its address, signed, and tried again. An address that the
//! settings do not list is not called.

use std::collections::BTreeSet;

use async_nats::jetstream;
use concord_events::topology::StreamKind;
use concord_testkit::{Message, layout, settled, unique, wait_for};
use serde_json::json;

use crate::notifications::PATIENCE;
use crate::notifications::server::{Server, free_port};
use crate::notifications::stage::{Channels, Stage};

/// The consumer of answered requests.
const ANSWERED: &str = "agent-adapter-completions-request-answered";

fn ask(from: &str, to: &str, url: &str) -> Message {
    let payload = json!({ "action": "train", "parameters": {}, "callback_url": url });
    Message::new("_", from, to, "request", payload)
}

fn answer(to: &Message, from: &str) -> Message {
    let payload = json!({ "status": "success", "result": { "loss": 0.25 } });
    Message::new("_", from, &to.from, "response", payload).with("/correlation_id", json!(to.id()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_is_posted_to_whom_the_settings_allow_until_it_is_taken() {
    let port = free_port();
    let server = Server::webhook(port, "500,204").await;
    let stage = Stage::start(&Channels {
        webhook: Some(port),
        ..Channels::default()
    })
    .await;
    let client = stage.installation.client();
    let [ann, bob] = ["ann", "bob"].map(unique);

    let good = ask(&ann, &bob, &format!("http://127.0.0.1:{port}/done"));
    good.publish(client).await;
    // That it is at work is no completion.
    let progress = json!({ "event": "progress", "data": { "pct": 10 }, "severity": "info" });
    Message::new("_", &bob, &ann, "notification", progress)
        .with("/correlation_id", json!(good.id()))
        .publish(client)
        .await;
    answer(&good, &bob).publish(client).await;
    let first = server.call("request.answered", 500).await;
    let second = server.call("request.answered", 204).await;
    assert_eq!(first["id"], second["id"], "a receiver knows the repetition");
    let body = &second["body"];
    assert_eq!(
        (
            &body["request_id"],
            &body["data"]["payload"]["result"]["loss"]
        ),
        (&json!(good.id()), &json!(0.25))
    );

    // An address inside the network that the settings do not list.
    let bad = ask(&ann, &bob, "http://169.254.169.254/latest/meta-data");
    bad.publish(client).await;
    answer(&bad, &bob).publish(client).await;
    let letter = stage.dead("undeliverable", ANSWERED).await;
    assert!(
        letter
            .header("Concord-Dead-Error")
            .contains("169.254.169.254"),
        "{letter:?}"
    );
    assert_eq!(
        server
            .received()
            .iter()
            .filter(|call| call["body"]["type"] == "request.answered")
            .count(),
        2
    );
}

/// How many completions wait for a slow receiver.
const WAITING: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn however_slow_its_receiver_is_a_completion_that_is_taken_is_posted_once() {
    let port = free_port();
    // The last completion waits for longer than the broker waits for an acknowledgement.
    let server = Server::webhook_with(port, &["--answers", "204", "--takes", "2"]).await;
    let work = "in_flight_max = 1\nack_wait_ms = 6000";
    let stage = Stage::start(&Channels {
        webhook: Some(port),
        work,
        ..Channels::default()
    })
    .await;
    let client = stage.installation.client();
    let [ann, bob] = ["ann", "bob"].map(unique);
    for _ in 0..WAITING {
        let asked = ask(&ann, &bob, &format!("http://127.0.0.1:{port}/done"));
        asked.publish(client).await;
        answer(&asked, &bob).publish(client).await;
    }
    settled(client, PATIENCE).await.unwrap();
    let stream = jetstream::new(client.clone())
        .get_stream(layout().stream_name(StreamKind::Events))
        .await
        .unwrap();
    wait_for("all to be posted", PATIENCE, async || {
        let info = stream
            .consumer_info(ANSWERED)
            .await
            .map_err(|error| error.to_string())?;
        let left = (info.num_pending, info.num_ack_pending);
        if left == (0, 0) && info.delivered.consumer_sequence > 0 {
            Ok(())
        } else {
            Err(format!("{left:?} are left"))
        }
    })
    .await;
    let calls = server.received();
    let ids: BTreeSet<&str> = calls
        .iter()
        .filter_map(|call| call["id"].as_str())
        .collect();
    assert_eq!(
        (ids.len(), calls.len()),
        (WAITING, WAITING),
        "completions, and calls"
    );
}
