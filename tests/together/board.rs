//! The board of a case.

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, wait_for};
use serde_json::{Value, json};

use crate::together::{PATIENCE, all_kept, asks, case_of, command, granted, refused, told};

fn put(case: &str, from: &str, name: &str, based_on: u64, value: Value) -> Message {
    let parameters = json!({ "name": name, "based_on": based_on, "value": value });
    let payload = json!({ "action": "board_put", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload).with("/metadata/confidence", 0.8)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_share_a_board_and_none_overwrites_what_it_has_not_read() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = case_of(&installation, &["ann", "ben"]).await;

    let first = put(&case, "ann", "plan", 0, json!({ "steps": ["read", "ask"] }));
    let result = granted(client, &first).await;
    assert_eq!(result, json!({ "name": "plan", "version": 1 }));
    let news = told(client, (&case, "_all"), "board_changed", |_| true).await;
    let entry = &news["entry"];
    assert_eq!(
        (&entry["author"], &entry["confidence"]),
        (&json!("ann"), &json!(0.8))
    );
    assert!(news.to_string().find("steps").is_none(), "no value: {news}");

    // Ben has not read it, and is told what stands; he reads it under his own name, and writes on it.
    let based_on = "/payload/parameters/based_on";
    let blind = put(&case, "ben", "plan", 0, json!("mine"));
    let why = refused(client, &blind, "INVALID_REQUEST", based_on).await;
    assert!(why.contains("version 1, which ann wrote"), "{why}");
    let read = asks(
        client,
        "ben",
        "board",
        json!({ "case_id": case, "name": "plan" }),
    )
    .await;
    let read = read.expect("ben is in the case");
    assert_eq!(read["entries"][0]["value"]["steps"][1], "ask");
    let version = read["entries"][0]["version"].as_u64().unwrap();
    let second = put(&case, "ben", "plan", version, json!("ours"));
    assert_eq!(granted(client, &second).await["version"], 2);
    let again = put(&case, "ann", "plan", 1, json!("mine after all"));
    refused(client, &again, "INVALID_REQUEST", based_on).await;
    // The same message twice is one version.
    second.publish(client).await;

    // Who is not in the case neither writes nor reads.
    let stranger = put(&case, "mallory", "plan", 2, json!("hers"));
    refused(client, &stranger, "UNAUTHORIZED", "/from_agent").await;
    let peeped = asks(client, "mallory", "board", json!({ "case_id": case })).await;
    assert_eq!(peeped.unwrap_err()["error_code"], "UNAUTHORIZED");

    check_briefing(client, &case).await;
    check_commands(&installation, &case, &first);
    installation.holds(PATIENCE).await;
}

/// Who comes late is told where the case is, and nobody else is.
async fn check_briefing(client: &Client, case: &str) {
    let briefing = asks(client, "ben", "briefing", json!({ "case_id": case }))
        .await
        .unwrap();
    assert_eq!(briefing["so_far"], "0 of 2 findings are there.");
    assert_eq!(briefing["board"][0]["version"], 2);
    assert!(
        asks(client, "mallory", "briefing", json!({ "case_id": case }))
            .await
            .is_err()
    );
}

/// The command shows the whole, with its history and its threads, and writes.
fn check_commands(installation: &TestInstallation, case: &str, first: &Message) {
    let shown = command(installation, &["board", "show", case]).unwrap();
    assert_eq!(shown["entries"][0]["version"], 2);
    assert_eq!(shown["entries"][0]["value"], "ours");
    let history = command(installation, &["board", "show", case, "plan", "--history"]).unwrap();
    let authors: Vec<&Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["author"])
        .collect();
    assert_eq!(authors, ["ann", "ben"]);
    let by_command = ["board", "put", case, "risk", "0.7", "--by", "ann"];
    let put = command(installation, &by_command).unwrap();
    assert_eq!(
        (&put["became"], &put["data"]["value"]),
        (&json!("recorded"), &json!(0.7))
    );
    let stale = command(installation, &by_command).unwrap_err();
    assert!(stale.contains("which ann wrote"), "{stale}");
    let tree = command(installation, &["case", "transcript", case, "--tree"]).unwrap();
    let answered = tree["messages"].as_array().unwrap();
    let of_first = answered
        .iter()
        .find(|one| one["answers"] == first.id())
        .unwrap();
    assert_eq!(
        (&of_first["depth"], &of_first["body"]["message_type"]),
        (&json!(1), &json!("response"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_entry_is_said_and_the_message_is_kept() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let agents = ["ann", "ben", "cyd", "dan"];
    let case = case_of(&installation, &agents).await;
    let place = |field: &str| format!("/payload/parameters/{field}");
    let megabyte = put(&case, "ann", "large", 0, json!("v".repeat(1_000_000)));
    refused(client, &megabyte, "CAPACITY_EXCEEDED", &place("value")).await;
    let unheard = put(&case, "ann", "plan", 7, json!(1));
    refused(client, &unheard, "INVALID_REQUEST", &place("based_on")).await;
    let blank = put(&case, "ann", " ", 0, json!(1));
    refused(client, &blank, "INVALID_REQUEST", &place("name")).await;
    let negative = put(&case, "ann", "plan", 0, json!(1)).with("/payload/parameters/based_on", -1);
    refused(client, &negative, "INVALID_REQUEST", &place("based_on")).await;
    let nowhere = put("case-nowhere", "ann", "plan", 0, json!(1));
    refused(client, &nowhere, "INVALID_REQUEST", "/case_id").await;
    let outside = put("_", "ann", "plan", 0, json!(1));
    refused(client, &outside, "INVALID_REQUEST", "/case_id").await;
    // One more than there is room for. Each author begins a share of the entries.
    for n in 0..256 {
        let author = agents[n / 64];
        put(&case, author, &format!("n-{n}"), 0, json!(n))
            .publish(client)
            .await;
    }
    wait_for("a full board", PATIENCE, async || {
        let board = asks(client, "ann", "board", json!({ "case_id": case })).await;
        let entries = board.map_err(|error| error.to_string())?["entries"].clone();
        let count = entries.as_array().map_or(0, Vec::len);
        (count == 256)
            .then_some(())
            .ok_or_else(|| format!("{count} entries"))
    })
    .await;
    let last = put(&case, "ben", "n-0", 1, json!("an entry that there is"));
    granted(client, &last).await;
    let more = put(&case, "ben", "one more", 0, json!(1));
    refused(client, &more, "CAPACITY_EXCEEDED", &place("name")).await;
    all_kept(client, 7).await;
}
