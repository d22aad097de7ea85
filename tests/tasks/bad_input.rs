//! What is wrong gets an error that says so, is kept as a dead letter, and changes nothing.

use concord_events::dead_letter::header;
use concord_testkit::{Message, TestInstallation, dead_letters, event_data, unique, wait_for};
use serde_json::json;

use crate::tasks::PATIENCE;
use crate::tasks::stage::{
    ask, assignment, hears, nth_answer, opening, register, reply, to_coordinator,
};

/// Messages that are refused, each with the code and the place that the error names.
fn refused() -> [(Message, &'static str, &'static str); 8] {
    let only = |name: &str| json!({ "agents": [name] });
    [
        (
            opening("telepathy", &json!({})),
            "INVALID_REQUEST",
            "/payload/parameters/strategy",
        ),
        (
            opening("poll", &json!({ "criteria": only("zoe") })),
            "AGENT_UNAVAILABLE",
            "/payload/parameters/criteria",
        ),
        (
            opening("broadcast", &json!({ "criteria": { "agents": [] } })),
            "INVALID_REQUEST",
            "/payload/parameters/criteria/agents",
        ),
        (
            to_coordinator(
                "olga",
                "find_agents",
                json!({ "criteria": { "agents": [] } }),
            ),
            "INVALID_REQUEST",
            "/payload/parameters/criteria/agents",
        ),
        (
            opening("poll", &json!({ "quorum": 9 })),
            "INVALID_REQUEST",
            "/payload/parameters/quorum",
        ),
        (
            opening("poll", &json!({ "criteria": only("olga") })),
            "AGENT_UNAVAILABLE",
            "/payload/parameters/criteria",
        ),
        (
            to_coordinator("olga", "cancel_task", json!({ "task_id": "none" })),
            "INVALID_REQUEST",
            "/payload/parameters/task_id",
        ),
        (
            Message::new(
                "_",
                "ann",
                "coordinator",
                "bid",
                json!({ "price": 1.0, "time_ms": 1, "confidence": 1.0 }),
            ),
            "INVALID_REQUEST",
            "/reply_to",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_is_told_what_is_wrong_and_where() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    for name in ["ann", "ben"] {
        register(client, name, json!({})).await;
    }
    let refused = refused();
    let count = refused.len();
    for (message, code, pointer) in refused {
        let (kind, error) = ask(client, &message).await;
        assert_eq!(
            (kind.as_str(), &error["error_code"]),
            ("error", &json!(code)),
            "{error}"
        );
        assert_eq!(error["details"]["pointer"], pointer, "{error}");
        assert!(
            !error["recovery_suggestions"][0]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    installation.holds(PATIENCE).await;
    assert_eq!(dead_letters(client).await.unwrap().len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn bids_and_answers_that_do_not_count_change_nothing() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    for name in ["ann", "ben"] {
        register(client, name, json!({})).await;
    }
    let only = |name: &str| json!({ "agents": [name] });
    let mut count = 0;
    let net = opening(
        "contract_net",
        &json!({ "task_id": "n-1", "criteria": only("ann") }),
    );
    ask(client, &net).await;
    let call = hears(client, "ann", |body| {
        body["message_type"] == "call_for_proposals"
    })
    .await;
    let bid = json!({ "price": -1.0, "time_ms": 1, "confidence": 1.0 });
    let fair = json!({ "price": 1.0, "time_ms": 1, "confidence": 1.0 });
    for (message, pointer) in [
        (reply("ann", &call, "bid", bid), "/payload/price"),
        (reply("ben", &call, "bid", fair.clone()), "/reply_to"),
        (
            reply("ann", &call, "task_result", json!({ "result": 1 })),
            "/reply_to",
        ),
    ] {
        let (_, error) = ask(client, &message).await;
        assert_eq!(error["details"]["pointer"], pointer, "{error}");
        count += 1;
    }
    reply("ann", &call, "bid", fair).publish(client).await;
    let award = assignment(client, "ann", "n-1").await;
    let itself = reply("ann", &award, "handoff", json!({ "to": "ann" }));
    let (_, error) = ask(client, &itself).await;
    assert_eq!(error["details"]["pointer"], "/payload/to", "{error}");
    let stranger = to_coordinator("ben", "cancel_task", json!({ "task_id": "n-1" }));
    let (_, error) = ask(client, &stranger).await;
    assert_eq!(error["error_code"], "UNAUTHORIZED");
    let done = reply("ann", &award, "task_result", json!({ "result": 1 }));
    done.publish(client).await;
    // The same message again is nothing new; another answer is refused once there is one.
    done.publish(client).await;
    nth_answer(client, &net, 1).await;
    let again = done.with("/message_id", unique("again"));
    let (_, error) = ask(client, &again).await;
    assert_eq!(error["details"]["pointer"], "/reply_to", "{error}");
    count += 3;
    installation.holds(PATIENCE).await;
    assert_eq!(dead_letters(client).await.unwrap().len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_contents_under_the_same_id_are_refused_and_the_first_stay() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let refused = async |message: &Message| {
        let (kind, error) = nth_answer(client, message, 1).await;
        assert_eq!(kind, "error", "{error}");
        assert_eq!(error["details"]["pointer"], "/message_id", "{error}");
    };
    let card = json!({ "agent_id": "ann", "description": "Reads leases." });
    let first = to_coordinator("ann", "register_agent", card);
    assert_eq!(ask(client, &first).await.0, "response");
    let field = "/payload/parameters/description";
    first.publish(client).await;
    first
        .clone()
        .with(field, "Reads wills.")
        .publish(client)
        .await;
    refused(&first).await;

    let open = opening("round_robin", &json!({ "task_id": "t-1" }));
    ask(client, &open).await;
    let asked = assignment(client, "ann", "t-1").await;
    let partial = json!({ "status": "partial", "result": 1 });
    let part = reply("ann", &asked, "task_result", partial);
    part.publish(client).await;
    part.publish(client).await;
    // What comes at the same time is worked on at the same time: the first is the one that is recorded first.
    wait_for("the part to be recorded", PATIENCE, async || {
        let reported = event_data(client, "task.t-1.reported").await?;
        let first = reported.first().map(|_| ());
        first.ok_or_else(|| "nothing".to_owned())
    })
    .await;
    let other = part.clone().with("/payload/result", 2);
    let (_, error) = ask(client, &other).await;
    assert_eq!(error["details"]["pointer"], "/message_id", "{error}");
    let failed = json!({ "status": "failure", "why": "No more of it." });
    reply("ann", &asked, "task_result", failed)
        .publish(client)
        .await;
    let (_, ended) = nth_answer(client, &open, 1).await;
    installation.holds(PATIENCE).await;
    let kept = dead_letters(client).await.unwrap();
    let why: Vec<_> = kept.iter().map(|one| one.header(header::ERROR)).collect();
    assert_eq!(why.len(), 2, "{why:?} {ended}");
}
