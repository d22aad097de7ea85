//! Commitments.

use concord_testkit::{Message, TestInstallation, unique};
use concord_wire::Token;
use serde_json::{Value, json};

use crate::together::{PATIENCE, asks, case_of, command, granted, refused, told};

fn commitment(case: &str, from: &str, act: &str, resource: &str, lease_ms: Value) -> Message {
    let payload = json!({ "act": act, "resource": resource, "lease_ms": lease_ms });
    Message::new(case, from, "coordinator", "commitment", payload)
}

fn request(from: &str, action: &str, parameters: Value) -> Message {
    let payload = json!({ "action": action, "parameters": parameters });
    Message::new("_", from, "coordinator", "request", payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_held_by_one_until_it_is_released_or_its_lease_passes() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = case_of(&installation, &["ann", "ben"]).await;
    let resource = "/payload/resource";

    let lease = granted(
        client,
        &commitment(&case, "ann", "commit", "task/t-7", Value::Null),
    )
    .await;
    assert_eq!(
        (&lease["holder"], &lease["term"]),
        (&json!("ann"), &json!(1))
    );
    let made = told(client, (&case, "_all"), "commitment_made", |_| true).await;
    assert_eq!(made["lease"]["holder"], "ann");
    let second = commitment(&case, "ben", "commit", "task/t-7", Value::Null);
    let why = refused(client, &second, "INVALID_REQUEST", resource).await;
    assert!(why.starts_with("ann holds \"task/t-7\" until"), "{why}");
    let stolen = commitment(&case, "ben", "release", "task/t-7", Value::Null);
    refused(client, &stolen, "UNAUTHORIZED", resource).await;
    let unknown = commitment(&case, "ben", "release", "nothing", Value::Null);
    refused(client, &unknown, "INVALID_REQUEST", resource).await;
    let endless = commitment(&case, "ben", "commit", "other", json!(u64::MAX));
    refused(client, &endless, "CAPACITY_EXCEEDED", "/payload/lease_ms").await;
    let stranger = commitment(&case, "mallory", "commit", "other", Value::Null);
    refused(client, &stranger, "UNAUTHORIZED", "/from_agent").await;

    let leases = asks(client, "ben", "commitments", json!({ "case_id": case }))
        .await
        .unwrap();
    assert_eq!(leases["leases"][0]["holder"], "ann");
    assert!(
        asks(client, "mallory", "commitments", json!({ "case_id": case }))
            .await
            .is_err()
    );
    let listed = command(&installation, &["commitment", "list", &case]).unwrap();
    assert_eq!(listed, leases);

    granted(
        client,
        &commitment(&case, "ann", "release", "task/t-7", Value::Null),
    )
    .await;
    // A lease that nobody renews passes by the escalation timer, and its holder is told.
    let short = commitment(&case, "ben", "commit", "task/t-7", json!(2_500));
    assert_eq!(granted(client, &short).await["term"], 2);
    let ended = told(client, (&case, "ben"), "commitment_ended", |_| true).await;
    assert_eq!(
        (&ended["reason"], &ended["term"]),
        (&json!("expired"), &json!(2))
    );
    let late = commitment(&case, "ben", "renew", "task/t-7", Value::Null);
    refused(client, &late, "INVALID_REQUEST", resource).await;
    let next = commitment(&case, "ann", "commit", "task/t-7", Value::Null);
    assert_eq!(granted(client, &next).await["term"], 3);

    // The case is over, and so is what it shares.
    let cancel = ["case", "cancel", &case, "--by", "olga", "--why", "a test"];
    command(&installation, &cancel).unwrap();
    let over = |data: &Value| data["reason"] == "case_over";
    told(client, (&case, "ann"), "commitment_ended", over).await;
    let after = commitment(&case, "ann", "commit", "task/t-8", Value::Null);
    refused(client, &after, "TIMEOUT", "").await;
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_holds_is_free_when_it_is_gone() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let (cyd, dan) = (unique("cyd"), unique("dan"));
    let build = unique("build");
    let commit = |from: &str| commitment("_", from, "commit", &build, Value::Null);
    refused(client, &commit(&cyd), "UNAUTHORIZED", "/from_agent").await;
    for name in [&cyd, &dan] {
        let card = json!({ "agent_id": name });
        granted(client, &request(name, "register_agent", card)).await;
    }
    assert_eq!(granted(client, &commit(&cyd)).await["holder"], json!(cyd));
    refused(
        client,
        &commit(&dan),
        "INVALID_REQUEST",
        "/payload/resource",
    )
    .await;
    let held = asks(client, &dan, "commitments", json!({ "resource": build }))
        .await
        .unwrap();
    assert_eq!(held["leases"][0]["holder"], json!(cyd));
    granted(client, &request(&cyd, "deregister_agent", Value::Null)).await;
    let gone = |data: &Value| data["reason"] == "holder_gone";
    told(client, ("_", &cyd), "commitment_ended", gone).await;
    assert_eq!(granted(client, &commit(&dan)).await["term"], 2);
    // Who says that it is unavailable loses what it has, and commits to nothing.
    let away = json!({ "status": "unavailable", "why": "lunch" });
    Message::new("_", &dan, "coordinator", "status", away)
        .publish(client)
        .await;
    told(client, ("_", &dan), "commitment_ended", gone).await;
    refused(client, &commit(&dan), "AGENT_UNAVAILABLE", "/from_agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commitment_to_a_task_ends_with_the_task_for_whoever_has_had_it() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [eva, fay] = ["eva", "fay"].map(unique);
    for name in [&eva, &fay] {
        let card = json!({ "agent_id": name });
        granted(client, &request(name, "register_agent", card)).await;
    }
    let open = |id: &str| {
        let terms = json!({ "task_id": id, "strategy": "broadcast", "task": { "type": "sum" }, "criteria": { "agents": [eva] } });
        request("olga", "open_task", terms)
    };
    let commit =
        |from: &str, id: &str| commitment("_", from, "commit", &format!("task/{id}"), Value::Null);
    let [done, others] = ["t-done", "t-others"].map(unique);
    for (id, holder) in [(&done, &eva), (&others, &fay)] {
        granted(client, &open(id)).await;
        granted(client, &commit(holder, id)).await;
        let cancel = request("olga", "cancel_task", json!({ "task_id": id }));
        granted(client, &cancel).await;
    }
    let over = |data: &Value| data["reason"] == "work_done";
    told(client, ("_", &eva), "commitment_ended", over).await;
    granted(client, &commit(&fay, &done)).await;
    // Who was not given the task keeps what it has.
    refused(
        client,
        &commit(&eva, &others),
        "INVALID_REQUEST",
        "/payload/resource",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_with_the_id_of_a_resource_outside_cases_has_nothing_to_do_with_it() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let ann = unique("ann");
    granted(
        client,
        &request(&ann, "register_agent", json!({ "agent_id": ann })),
    )
    .await;
    let own = unique("own");
    let case = Token::derived(&format!("commitment/{own}"));
    let opening =
        json!({ "case_id": case, "participants": ["mallory"], "task": { "type": "test" } });
    installation.open_case(&opening).await;
    let in_case = commitment(case.as_str(), "mallory", "commit", &own, Value::Null);
    granted(client, &in_case).await;

    let act = |act| commitment("_", &ann, act, &own, Value::Null);
    let lease = granted(client, &act("commit")).await;
    assert_eq!((&lease["holder"], &lease["term"]), (&json!(ann), &json!(2)));
    let cancel = [
        "case",
        "cancel",
        case.as_str(),
        "--by",
        "olga",
        "--why",
        "a test",
    ];
    command(&installation, &cancel).unwrap();
    let over = |data: &Value| data["reason"] == "case_over";
    told(client, (case.as_str(), "mallory"), "commitment_ended", over).await;
    let held = asks(client, &ann, "commitments", json!({ "resource": own })).await;
    assert_eq!(held.unwrap()["leases"][0]["holder"], json!(ann));
    assert_eq!(granted(client, &act("renew")).await["term"], 2);
    installation.holds(PATIENCE).await;
}
