//! Each strategy once, from the request of an agent to the result.

use std::collections::BTreeMap;

use concord_agent::{Agent, Error};
use concord_testkit::{TestInstallation, settled};
use concord_wire::MessageType;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::tasks::PATIENCE;
use crate::tasks::stage::{
    ask, assignment, hears, opening, register, reply, result, run, to_coordinator, work,
};

/// The payload of a completed task.
async fn completed(installation: &TestInstallation, strategy: &str, more: Value) -> Value {
    let opened = opening(strategy, &more);
    let (kind, payload) = run(installation.client(), &opened).await;
    assert_eq!(kind, "notification", "{payload}");
    assert_eq!(payload["event"], "task_completed");
    payload["data"].clone()
}

/// A library says so where a handler fails, and so may anybody.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_has_failed_at_once_and_the_next_one_is_asked() {
    let installation = TestInstallation::start_without_adapter().await;
    let skilled = || json!({ "skills": [{ "name": "sum" }] });
    let skill = serde_json::from_value(json!({ "name": "sum" })).unwrap();
    let ann = Agent::builder("ann")
        .skill(skill)
        .on(MessageType::TaskAssignment, |_, _| async {
            Err(Error::handler("out of order"))
        })
        .connect(installation.server_url())
        .await
        .unwrap();
    let error = json!({ "error_code": "INTERNAL_ERROR", "error_message": "Out of order." });
    let ben =
        move |kind: &str, _: &Value| (kind == "task_assignment").then(|| ("error", error.clone()));
    let _ben = work(&installation, "ben", skilled(), ben).await;
    let cyd = |kind: &str, _: &Value| match kind {
        "task_assignment" => result(json!("cyd")),
        _ => None,
    };
    let _cyd = work(&installation, "cyd", skilled(), cyd).await;
    let criteria = json!({ "criteria": { "skills": ["sum"] } });
    let done = completed(&installation, "round_robin", criteria).await;
    assert_eq!(done["result"], "cyd");
    ann.close().await.unwrap();
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn round_robin_is_fair_and_broadcast_consensus_and_poll_ask_everybody() {
    let installation = TestInstallation::start_without_adapter().await;
    let mut workers = Vec::new();
    for (name, vote, number) in [("ann", "yes", 100), ("ben", "yes", 101), ("cyd", "no", 7)] {
        let answer =
            move |kind: &str, body: &Value| match body["payload"]["work"]["strategy"].as_str() {
                Some("poll") => result(json!(vote)),
                Some("consensus") => result(json!({ "n": number })),
                Some(_) if kind == "task_assignment" => result(json!(name)),
                _ => None,
            };
        let card = json!({ "skills": [{ "name": "sum" }] });
        workers.push(work(&installation, name, card, answer).await);
    }
    let skilled = json!({ "criteria": { "skills": ["Sum"] } });
    let mut turns: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..6 {
        let done = completed(&installation, "round_robin", skilled.clone()).await;
        *turns
            .entry(done["result"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    assert_eq!(
        turns.values().copied().collect::<Vec<_>>(),
        [2, 2, 2],
        "{turns:?}"
    );

    let done = completed(&installation, "broadcast", skilled.clone()).await;
    assert_eq!(
        done["result"],
        json!({ "ann": "ann", "ben": "ben", "cyd": "cyd" })
    );
    let near = json!({ "criteria": { "skills": ["sum"] }, "tolerance": 0.05, "quorum": 2 });
    let done = completed(&installation, "consensus", near).await;
    assert_eq!(
        done["result"],
        json!({ "result": { "n": 100 }, "votes": 2, "of": 3 })
    );
    let exact = opening("consensus", &json!({ "criteria": { "skills": ["sum"] } }));
    let (kind, error) = run(installation.client(), &exact).await;
    assert_eq!(
        (kind.as_str(), &error["details"]["reason"]),
        ("error", &json!("quorum_not_reached"))
    );
    let done = completed(&installation, "poll", skilled.clone()).await;
    assert_eq!(done["result"]["accepted"], true);
    let unanimous = json!({ "criteria": { "skills": ["sum"] }, "majority": "unanimous" });
    let done = completed(&installation, "poll", unanimous).await;
    assert_eq!(
        (&done["result"]["accepted"], &done["result"]["no"]),
        (&json!(false), &json!(1))
    );
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_do_it_is_found_and_capacity_and_priority_order_what_waits() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let card = json!({ "skills": [{ "name": "vat", "examples": ["who bears the vat"] }], "domains": ["tax"], "capacity": 1 });
    register(client, "ann", card).await;
    register(client, "ben", json!({ "domains": ["law"] })).await;
    for (criteria, expected) in [
        (json!({ "skills": ["VAT"] }), json!(["ann"])),
        (json!({ "domains": ["law"] }), json!(["ben"])),
        (json!({}), json!(["ann", "ben"])),
        (json!({ "skills": ["cooking"] }), json!([])),
    ] {
        let asked = to_coordinator("olga", "find_agents", json!({ "criteria": criteria }));
        let (_, found) = ask(client, &asked).await;
        let found = found["result"]["agents"].as_array().unwrap().clone();
        let names: Vec<_> = found.iter().map(|one| one["agent_id"].clone()).collect();
        assert_eq!(json!(names), expected, "{criteria}");
    }
    // Who has an id of its own for the conversation gets it back, with the answer and with a refusal.
    for (conversation, criteria) in [("cc-1", json!({})), ("cc-2", json!([]))] {
        let asked = to_coordinator("olga", "find_agents", json!({ "criteria": criteria }));
        let asked = asked.with("/correlation_id", conversation);
        asked.publish(client).await;
        let of_it = |body: &Value| body["reply_to"] == asked.id();
        let answer = hears(client, "olga", of_it).await;
        assert_eq!(answer["correlation_id"], conversation, "{answer}");
        assert_eq!(answer["metadata"]["version"], "1.0", "{answer}");
    }
    let asked = json!({ "criteria": { "domains": ["tax"] } });
    let found = installation
        .ask(Service::Coordinator, "find_agents", &asked)
        .await
        .unwrap();
    assert_eq!(found["agents"][0]["capacity"], 1);

    let open = |id: &str, priority: &str| {
        opening(
            "capability",
            &json!({ "task_id": id, "priority": priority, "criteria": { "skills": ["vat"] } }),
        )
    };
    for (id, priority) in [
        ("t-1", "normal"),
        ("t-2", "low"),
        ("t-3", "normal"),
        ("t-4", "high"),
    ] {
        assert_eq!(ask(client, &open(id, priority)).await.0, "response");
    }
    // What is opened is on the worklist a moment after that is answered.
    settled(client, PATIENCE).await.unwrap();
    for (id, next) in [("t-1", "t-4"), ("t-4", "t-3"), ("t-3", "t-2"), ("t-2", "")] {
        let assigned = assignment(client, "ann", id).await;
        let filter = "concord.v1.msg.*.*.ann.task_assignment";
        let given = concord_testkit::message_bodies(client, filter)
            .await
            .unwrap();
        let is_next = |body: &Value| body["payload"]["work"]["task_id"] == next;
        assert!(
            !given.iter().any(is_next),
            "{next} was given before {id} was done"
        );
        reply("ann", &assigned, "task_result", json!({ "result": id }))
            .publish(client)
            .await;
    }
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_registers_with_a_greater_capacity_is_given_what_waits_at_once() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let card = |capacity: u32| json!({ "skills": [{ "name": "sum" }], "capacity": capacity });
    register(client, "ann", card(1)).await;
    let ids = ["t-1", "t-2", "t-3", "t-4", "t-5"];
    for id in ids {
        let who = json!({ "skills": ["sum"] });
        let opened = opening("capability", &json!({ "task_id": id, "criteria": who }));
        let (kind, answer) = ask(client, &opened).await;
        assert_eq!(kind, "response", "{answer}");
    }
    let mut given = vec![assignment(client, "ann", "t-1").await];
    register(client, "ann", card(3)).await;
    for id in ["t-2", "t-3"] {
        given.push(assignment(client, "ann", id).await);
    }
    register(client, "ann", card(1)).await;
    // The worklist hears of the new card a moment after that is answered.
    settled(client, PATIENCE).await.unwrap();
    for (place, next) in [(0, ""), (1, ""), (2, "t-4"), (3, "t-5"), (4, "")] {
        let filter = "concord.v1.msg.*.*.ann.task_assignment";
        let all = concord_testkit::message_bodies(client, filter).await;
        assert_eq!(all.unwrap().len(), given.len(), "before answer {place}");
        let result = json!({ "result": "done" });
        reply("ann", &given[place], "task_result", result)
            .publish(client)
            .await;
        let is_done = |body: &Value| {
            let told = &body["payload"];
            told["event"] == "task_completed" && told["data"]["task_id"] == ids[place]
        };
        hears(client, "olga", is_done).await;
        settled(client, PATIENCE).await.unwrap();
        if !next.is_empty() {
            given.push(assignment(client, "ann", next).await);
        }
    }
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_net_awards_the_best_bid_and_then_the_next() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let mut workers = Vec::new();
    for (name, price) in [("ann", 9.0), ("ben", 1.0), ("cyd", 5.0)] {
        let answer = move |kind: &str, _: &Value| match kind {
            "call_for_proposals" if name == "cyd" => Some(("refuse", json!({ "why": "no time" }))),
            "call_for_proposals" => {
                let bid = json!({ "price": price, "time_ms": 1_000, "confidence": 0.9 });
                Some(("bid", bid))
            }
            "award" if name == "ben" => {
                Some(("task_result", json!({ "status": "failure", "why": "ill" })))
            }
            "award" => result(json!("done")),
            _ => None,
        };
        workers.push(work(&installation, name, json!({}), answer).await);
    }
    let done = completed(&installation, "contract_net", json!({ "bids_ms": 30_000 })).await;
    assert_eq!(
        (&done["result"], &done["by"]),
        (&json!("done"), &json!(["ann"]))
    );
    let rejected = hears(client, "ann", |body| {
        body["payload"]["event"] == "bid_rejected"
    })
    .await;
    assert_eq!(rejected["payload"]["data"]["in_reserve"], true);
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swarm_is_joined_a_task_is_handed_on_and_taken_from_who_leaves() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    for name in ["ann", "ben", "cyd"] {
        register(client, name, json!({})).await;
    }
    let nobody = json!({ "task_id": "s-1", "quorum": 2, "criteria": { "agents": ["zoe"] } });
    let swarm = opening("swarm", &nobody);
    assert_eq!(ask(client, &swarm).await.0, "response");
    // Whoever is not on the register does not join.
    let stranger = to_coordinator("eve", "join_task", json!({ "task_id": "s-1" }));
    let (kind, refused) = ask(client, &stranger).await;
    assert_eq!(
        (kind.as_str(), &refused["details"]["pointer"]),
        ("error", &json!("/from_agent"))
    );
    for name in ["ann", "ben", "cyd"] {
        let join = to_coordinator(name, "join_task", json!({ "task_id": "s-1" }));
        assert_eq!(ask(client, &join).await.0, "response");
    }
    let leave = to_coordinator("cyd", "leave_task", json!({ "task_id": "s-1" }));
    assignment(client, "cyd", "s-1").await;
    assert_eq!(ask(client, &leave).await.0, "response");
    for name in ["ann", "ben"] {
        let assigned = assignment(client, name, "s-1").await;
        reply(name, &assigned, "task_result", json!({ "result": name }))
            .publish(client)
            .await;
    }
    let (_, done) = crate::tasks::stage::nth_answer(client, &swarm, 1).await;
    assert_eq!(
        done["data"]["result"],
        json!({ "ann": "ann", "ben": "ben" })
    );

    let round = opening(
        "round_robin",
        &json!({ "task_id": "r-1", "criteria": { "agents": ["ann", "cyd"] } }),
    );
    assert_eq!(ask(client, &round).await.0, "response");
    let assigned = assignment(client, "ann", "r-1").await;
    let handoff = json!({ "to": "ben", "context": { "read": 3 }, "reason": "not mine" });
    reply("ann", &assigned, "handoff", handoff)
        .publish(client)
        .await;
    let handed = assignment(client, "ben", "r-1").await;
    assert_eq!(
        handed["payload"]["work"]["handed_on"]["context"],
        json!({ "read": 3 })
    );
    hears(client, "olga", |body| {
        body["payload"]["event"] == "task_handed_on"
    })
    .await;
    ask(
        client,
        &to_coordinator("ben", "deregister_agent", json!({})),
    )
    .await;
    let last = assignment(client, "cyd", "r-1").await;
    reply("cyd", &last, "task_result", json!({ "result": 3 }))
        .publish(client)
        .await;
    let (_, done) = crate::tasks::stage::nth_answer(client, &round, 1).await;
    assert_eq!(done["data"]["by"], json!(["cyd"]));
    installation.holds(PATIENCE).await;
}
