//! Whoever is not in a case does not keep it in the streams, whatever they say and ask in it.

use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_testkit::{Message, event_data, stored, unique, wait_for};
use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{concord, decided, find, installation, open, removed};

/// Waits for an event, and gives it.
async fn happened(client: &Client, event: &str) -> Value {
    wait_for(event, PATIENCE, async || {
        let events = event_data(client, event).await?;
        let last = events.into_iter().next_back();
        last.ok_or_else(|| "none".to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_goes_to_the_archive_although_a_stranger_goes_on_speaking_in_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let installation = installation(place.to_str().expect("a text")).await;
    let client = installation.client();
    let case = unique("case");
    for analyst in &open(&installation, &case).await {
        find(&installation, &case, analyst, 40).await;
    }
    decided(&installation, &case).await;
    wait_for("the removal of the case", PATIENCE, async || {
        // More often than a case must be old to be archived.
        for (to, kind) in [("nobody", "status"), ("coordinator", "finding")] {
            let said = Message::new(&case, "mallory", to, kind, json!({}));
            said.store(client).await;
        }
        let filter = format!("concord.v1.event.case.{case}.>");
        let left = stored(client, StreamKind::Events, &filter).await?;
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("{} events are there", left.len())),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_goes_to_the_archive_although_what_a_stranger_asks_in_it_is_open_for_long() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let client = installation.client();
    let [case, zoe] = ["case", "zoe"].map(unique);
    let card = json!({ "action": "register_agent", "parameters": { "agent_id": zoe } });
    let registers = Message::new("_", &zoe, "coordinator", "request", card);
    registers.store(client).await;
    happened(client, &format!("agent.{zoe}.registered")).await;
    let analysts = open(&installation, &case).await;
    let now = concord_runtime::service::clock::now().unix_millis();
    let due = Timestamp::from_unix_millis(now + 20 * 86_400_000);
    let asks = json!({ "action": "sum", "parameters": {}, "deadline": due });
    let asks = Message::new(&case, "mallory", &zoe, "request", asks);
    asks.store(client).await;
    happened(client, "request.*.opened").await;
    for analyst in &analysts {
        find(&installation, &case, analyst, 40).await;
    }
    removed(&installation, &case).await;

    // What was left is answered as if it had been asked in no case.
    let answers = json!({ "status": "success", "result": 3 });
    let answers = Message::new(&case, &zoe, "mallory", "response", answers);
    let answers = answers.with("/reply_to", asks.id());
    answers.store(client).await;
    let answered = happened(client, "request.*.answered").await;
    assert_eq!(answered["answer"]["by"], json!(zoe), "{answered}");
    for (verb, good) in [
        (&["check"][..], "holds"),
        (&["replay", "--all"], "identical"),
    ] {
        let found = concord(&installation, &[verb, &["--archive", archive]].concat()).await;
        assert_eq!(found[good], true, "{found:#}");
    }
}
