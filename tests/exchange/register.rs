//! Cards and liveness.

use concord_testkit::{Message, settled};
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{answer_to, becomes, card, facts, names, start, to_coordinator};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_registers_itself_is_watched_by_its_heartbeats_and_leaves() {
    let installation = start().await;
    let client = installation.client();
    let [ann] = names(["ann"]);
    let register = |more: Value| to_coordinator(&ann, "register_agent", card(&ann, &more));

    let early = to_coordinator(&ann, "update_agent", card(&ann, &json!({})));
    early.publish(client).await;
    let (kind, told) = answer_to(client, &early).await;
    assert_eq!(
        (kind.as_str(), told["error_code"].as_str()),
        ("error", Some("INVALID_REQUEST"))
    );

    let first = register(json!({ "heartbeat_ms": 200, "skills": [{ "name": "tax" }] }));
    first.publish(client).await;
    let (kind, told) = answer_to(client, &first).await;
    assert_eq!(
        (kind.as_str(), told["result"]["change"].as_str()),
        ("response", Some("joined"))
    );
    // It promised heartbeats and sends none.
    becomes(&installation, &ann, Some("unavailable")).await;
    let beat = |status: &'static str| {
        let (client, subject) = (client.clone(), format!("concord.v1.beat.{ann}"));
        async move {
            client
                .publish(subject, json!({ "status": status }).to_string().into())
                .await
                .unwrap()
        }
    };
    let beating = async {
        let mut every = tokio::time::interval(std::time::Duration::from_millis(100));
        loop {
            every.tick().await;
            beat("busy").await;
        }
    };
    tokio::select! {
        () = becomes(&installation, &ann, Some("busy")) => {}
        () = beating => {}
    }
    // It stops again.
    becomes(&installation, &ann, Some("unavailable")).await;

    let again = register(json!({ "skills": [{ "name": "tax" }, { "name": "law" }] }));
    again.publish(client).await;
    let (_, told) = answer_to(client, &again).await;
    assert_eq!(
        told["result"]["change"], "joined",
        "it was lost, so it is news"
    );
    let same = register(json!({ "skills": [{ "name": "tax" }, { "name": "law" }] }));
    same.publish(client).await;
    let (_, told) = answer_to(client, &same).await;
    assert_eq!(told["result"]["change"], "same");

    let says = Message::new(
        "_",
        &ann,
        "coordinator",
        "status",
        json!({ "status": "busy", "why": "lunch" }),
    );
    says.publish(client).await;
    becomes(&installation, &ann, Some("busy")).await;
    let leaves = to_coordinator(&ann, "deregister_agent", json!({ "why": "done" }));
    leaves.publish(client).await;
    assert_eq!(answer_to(client, &leaves).await.0, "response");
    becomes(&installation, &ann, None).await;

    settled(client, PATIENCE).await.unwrap();
    let told = concord_testkit::stored(
        client,
        concord_events::topology::StreamKind::Messages,
        "concord.v1.msg._.coordinator._all.*",
    );
    let told: Vec<String> = told
        .await
        .unwrap()
        .iter()
        .map(|one| one.json()["message_type"].to_string())
        .collect();
    assert_eq!(
        told.iter()
            .filter(|kind| kind.contains("agent_joined"))
            .count(),
        2,
        "{told:?}"
    );
    assert!(
        told.iter().filter(|kind| kind.contains("status")).count() >= 5,
        "{told:?}"
    );
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_registers_another_and_a_bad_card_is_refused_at_its_place() {
    let installation = start().await;
    let client = installation.client();
    let [ann, eve] = names(["ann", "eve"]);
    let many: Vec<Value> = (0..10_000)
        .map(|n| json!({ "name": format!("s{n}") }))
        .collect();
    for (message, code, pointer) in [
        (
            to_coordinator(&eve, "register_agent", card(&ann, &json!({}))),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
        (
            to_coordinator(&eve, "deregister_agent", json!({ "agent_id": ann })),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
        (
            to_coordinator(
                &eve,
                "register_agent",
                card(&eve, &json!({ "skills": many })),
            ),
            "CAPACITY_EXCEEDED",
            "/payload/parameters/skills",
        ),
        (
            to_coordinator(
                &eve,
                "register_agent",
                card(&eve, &json!({ "dialect": "latin" })),
            ),
            "INVALID_REQUEST",
            "/payload/parameters/dialect",
        ),
        (
            to_coordinator(&eve, "register_agent", Value::Null),
            "INVALID_REQUEST",
            "/payload/parameters",
        ),
        (
            Message::new(
                "_",
                &eve,
                "coordinator",
                "status",
                json!({ "agent_id": ann, "status": "unavailable" }),
            ),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
    ] {
        message.publish(client).await;
        let (kind, told) = answer_to(client, &message).await;
        assert_eq!(
            (kind.as_str(), told["error_code"].as_str()),
            ("error", Some(code)),
            "{told}"
        );
        assert_eq!(told["details"]["pointer"], pointer, "{told}");
    }
    // Heartbeats of nobody, and nonsense, change nothing.
    for (agent, beat) in [
        (&ann, "{}"),
        (&eve, "\u{0}nonsense"),
        (&eve, r#"{"status":7}"#),
    ] {
        client
            .publish(format!("concord.v1.beat.{agent}"), beat.to_owned().into())
            .await
            .unwrap();
    }
    client.flush().await.unwrap();
    settled(client, PATIENCE).await.unwrap();
    assert_eq!(facts(client, "agent", "*").await, Vec::<Value>::new());
    installation.holds(PATIENCE).await;
}
