//! Shared memory.

use async_nats::Client;
use concord_agent::payload::Remember;
use concord_agent::{Agent, AgentId, CaseId};
use concord_testkit::{Message, TestInstallation, wait_for};
use concord_wire::Token;
use serde_json::{Value, json};

use crate::together::{PATIENCE, all_kept, asks, case_of, command, granted, refused};

fn put(case: &str, from: &str, topic: &str, value: Value) -> Message {
    let parameters =
        json!({ "topic": topic, "value": value, "importance": 0.9, "confidence": 0.7 });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

/// What memory holds, asked for under a name.
async fn read(client: &Client, name: &str, asked: Value) -> Value {
    asks(client, name, "memory", asked)
        .await
        .expect("it is read")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_answers_the_same_for_ever_however_much_is_written_later() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = case_of(&installation, &["ann", "ben"]).await;

    let kept = granted(
        client,
        &put(&case, "ann", "margin", json!({ "estimate": 0.25 })),
    )
    .await;
    assert_eq!(
        (&kept["topic"], &kept["version"]),
        (&json!("margin"), &json!(1))
    );
    let asked = json!({ "agent": "ann", "topic": "margin" });
    let then = read(client, "ben", asked.clone()).await;
    assert_eq!(then["entries"][0]["value"]["estimate"], 0.25);
    assert_eq!(then["entries"][0]["since"], kept["since"]);
    let snapshot = then["as_of"].as_str().expect("a snapshot").to_owned();

    // More versions than a stream of a topic once had room for.
    for n in 0..70 {
        put(&case, "ann", "margin", json!(n)).publish(client).await;
    }
    wait_for("all of them", PATIENCE, async || {
        let held = read(client, "ben", asked.clone()).await;
        let version = held["entries"][0]["version"].as_u64().unwrap_or_default();
        (version == 71)
            .then_some(())
            .ok_or_else(|| format!("version {version}"))
    })
    .await;
    let last = granted(client, &put(&case, "ann", "margin", json!("last"))).await;
    assert_eq!(last["version"], 72);
    let as_of = json!({ "agent": "ann", "topic": "margin", "as_of": snapshot });
    assert_eq!(read(client, "ben", as_of).await, then);
    let history = json!({ "agent": "ann", "topic": "margin", "history": true });
    let versions = read(client, "ben", history).await["entries"].clone();
    assert_eq!(versions.as_array().map(Vec::len), Some(72));

    // Who is not in the case sees nothing of it.
    let peeped = read(client, "mallory", asked).await;
    assert_eq!(peeped["entries"], json!([]));
    let peeped = asks(client, "mallory", "memory", json!({ "case_id": case })).await;
    assert_eq!(peeped.unwrap_err()["error_code"], "UNAUTHORIZED");

    check_command(&installation, &case, &snapshot);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_on_the_subject_of_a_case_belongs_to_it_also_where_it_names_none() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = case_of(&installation, &["ann", "ben"]).await;
    let mut message = put(&case, "ann", "margin", json!(0.25));
    let named = message.body.as_object_mut().expect("an object");
    assert!(named.remove("case_id").is_some());
    granted(client, &message).await;
    let asked = json!({ "agent": "ann", "topic": "margin" });
    let seen = read(client, "ben", asked.clone()).await;
    assert_eq!(seen["entries"][0]["value"], 0.25);
    let peeped = read(client, "mallory", asked).await;
    assert_eq!(peeped["entries"], json!([]));
}

fn check_command(installation: &TestInstallation, case: &str, snapshot: &str) {
    let run = |arguments: &[&str]| command(installation, arguments);
    let got = run(&["memory", "get", "ann", "margin"]).unwrap();
    assert_eq!(got["entries"][0]["value"], "last");
    let then = run(&["memory", "as-of", snapshot, "ann", "margin"]).unwrap();
    assert_eq!(then["entries"][0]["version"], 1);
    let history = run(&["memory", "history", "ann", "margin", "--after", "70"]).unwrap();
    assert_eq!(history["entries"].as_array().map(Vec::len), Some(2));
    let by_ben = [
        "memory",
        "put",
        "rate",
        "0.04",
        "--by",
        "ben",
        "--importance",
        "0.4",
        "--case",
        case,
        "--evidence",
        "minutes of the board",
        "--tag",
        "rates",
    ];
    let put = run(&by_ben).unwrap();
    assert_eq!(put["data"]["entry"]["value"], 0.04, "{put}");
    let listed = run(&["memory", "list", "--case", case]).unwrap();
    let topics: Vec<&Value> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["topic"])
        .collect();
    assert_eq!(topics, ["margin", "rate"]);
    assert_eq!(
        run(&["memory", "list"]).unwrap()["agents"],
        json!(["ann", "ben"])
    );
    let early = run(&["memory", "as-of", "snap_999999999", "ann"]).unwrap_err();
    assert!(early.contains("There is no snap_999999999"), "{early}");
    let odd = run(&["memory", "as-of", "yesterday", "ann"]).unwrap_err();
    assert!(odd.contains("snap_<number>"), "{odd}");
    let much = run(&[
        "memory",
        "put",
        "x",
        "1",
        "--by",
        "ben",
        "--importance",
        "1.5",
    ])
    .unwrap_err();
    assert!(much.contains("1.5 is no importance"), "{much}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_what_is_remembered_is_said_and_the_message_is_kept() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    // Nothing at all has happened: the first snapshot is that.
    let empty = command(&installation, &["memory", "list", "ann"]).unwrap();
    assert_eq!(empty["as_of"], "snap_0", "{empty}");
    let nothing = command(&installation, &["memory", "get", "ann", "margin"]).unwrap_err();
    assert!(nothing.contains("nothing under margin"), "{nothing}");
    let case = case_of(&installation, &["ann", "ben"]).await;
    let place = |field: &str| format!("/payload/parameters/{field}");
    let foreign = put(&case, "ben", "margin", json!(1)).with("/payload/parameters/agent", "ann");
    let why = refused(client, &foreign, "UNAUTHORIZED", &place("agent")).await;
    assert!(why.contains("the memory of ann"), "{why}");
    let large = put(&case, "ann", "margin", json!("v".repeat(100_000)));
    refused(client, &large, "CAPACITY_EXCEEDED", &place("value")).await;
    let much = put(&case, "ann", "margin", json!(1)).with("/payload/parameters/importance", 1.2);
    refused(client, &much, "INVALID_REQUEST", &place("importance")).await;
    let dotted = put(&case, "ann", "a.b", json!(1));
    refused(client, &dotted, "INVALID_REQUEST", &place("topic")).await;
    let stale = put(&case, "ann", "margin", json!(1)).with("/payload/parameters/based_on", 3);
    refused(client, &stale, "INVALID_REQUEST", &place("based_on")).await;
    let stranger = put(&case, "mallory", "margin", json!(1));
    refused(client, &stranger, "UNAUTHORIZED", "/from_agent").await;
    let unknown = put("_", "mallory", "margin", json!(1));
    refused(client, &unknown, "UNAUTHORIZED", "/from_agent").await;
    all_kept(client, 7).await;
    let nobody = asks(client, "ann", "memory", json!({ "topic": "margin" })).await;
    assert_eq!(nobody.unwrap_err()["details"]["pointer"], "/agent");
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_library_remembers_and_looks_into_the_memory_of_others() {
    let installation = TestInstallation::start_without_adapter().await;
    let server = installation.server_url();
    let skill = |name: &str| serde_json::from_value(json!({ "name": name })).expect("a skill");
    let connect = async |name: &str| {
        let builder = Agent::builder(name).skill(skill("economy"));
        builder.connect(server).await.expect("it connects")
    };
    let (ann, ben) = (connect("ann").await, connect("ben").await);
    let topic = Token::new("regime").unwrap();
    let entry = |value: Value| Remember {
        agent: None,
        topic: topic.clone(),
        value,
        importance: 0.9,
        confidence: Some(0.85),
        evidence: vec!["minutes".into()],
        tags: vec!["macro".into()],
        based_on: None,
    };
    let first = ann
        .memory()
        .put(&entry(json!("BULL_LOW_RATES")), None)
        .await
        .unwrap();
    let second = ann
        .memory()
        .put(&entry(json!("BEAR_HIGH_RATES")), None)
        .await
        .unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    let whose = AgentId::new("ann").unwrap();
    let now = ben
        .memory()
        .get(&whose, &topic, None)
        .await
        .unwrap()
        .expect("it is there");
    assert_eq!(
        (now.value, now.evidence),
        (json!("BEAR_HIGH_RATES"), vec!["minutes".to_owned()])
    );
    let then = ben
        .memory()
        .get(&whose, &topic, Some(first.since))
        .await
        .unwrap();
    assert_eq!(then.expect("it was there").value, "BULL_LOW_RATES");
    let versions = ben.memory().history(&whose, &topic).await.unwrap();
    assert_eq!(versions.len(), 2);
    let listed = ben.memory().list(Some(&whose), None, None).await.unwrap();
    assert_eq!(listed.entries.len(), 1);
    assert!(listed.as_of >= second.since);
    let nowhere = CaseId::new("case-nowhere").unwrap();
    let refused = ann
        .memory()
        .put(&entry(json!(1)), Some(&nowhere))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("no such case"), "{refused}");
}
