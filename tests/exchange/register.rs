//! The register of agents: their cards, and the liveness that their heartbeats show.

use std::time::Duration;

use async_nats::Client;
use concord_agent::{Agent, AgentId, Card};
use concord_testkit::{
    Message, TestInstallation, event_data, message_bodies, round_trip, settled, wait_for,
};
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::exchange::PATIENCE;
use crate::exchange::stage::{
    answer_to, card, fails, fails_at, names, to_coordinator, wait_for_status,
};

/// Publishes a registration: what has changed on the register by it.
async fn change_by(client: &Client, registration: &Message) -> String {
    registration.publish(client).await;
    let (kind, answer) = answer_to(client, registration).await;
    assert_eq!(kind, "response", "{answer}");
    answer["result"]["change"].as_str().unwrap().to_owned()
}

/// Sends heartbeats until the coordinator tells that the agent is busy.
async fn beat_until_busy(installation: &TestInstallation, agent: &str) {
    let subject = format!("concord.v1.beat.{agent}");
    let beat = json!({ "status": "busy" }).to_string();
    let beating = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            installation
                .client()
                .publish(subject.clone(), beat.clone().into())
                .await
                .unwrap();
        }
    };
    tokio::select! {
        () = wait_for_status(installation, agent, Some("busy")) => {}
        () = beating => {}
    }
}

/// Everybody was told of two arrivals and of each change of status.
async fn check_announcements(client: &Client) {
    let announced = message_bodies(client, "concord.v1.msg._.coordinator._all.*")
        .await
        .unwrap();
    let kinds: Vec<String> = announced
        .iter()
        .map(|one| one["message_type"].to_string())
        .collect();
    let count = |word: &str| kinds.iter().filter(|kind| kind.contains(word)).count();
    assert_eq!(count("agent_joined"), 2, "{kinds:?}");
    assert!(count("status") >= 5, "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_registers_itself_is_watched_by_its_heartbeats_and_leaves() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann] = names(["ann"]);
    let register = |more: Value| to_coordinator(&ann, "register_agent", card(&ann, &more));

    let early = to_coordinator(&ann, "update_agent", card(&ann, &json!({})));
    fails(client, &early, "INVALID_REQUEST").await;

    let first = register(json!({ "heartbeat_ms": 200, "skills": [{ "name": "tax" }] }));
    assert_eq!(change_by(client, &first).await, "joined");
    // It promised heartbeats and sends none; then it sends some, and stops again.
    wait_for_status(&installation, &ann, Some("unavailable")).await;
    beat_until_busy(&installation, &ann).await;
    wait_for_status(&installation, &ann, Some("unavailable")).await;

    let skills = json!({ "skills": [{ "name": "tax" }, { "name": "law" }] });
    assert_eq!(
        change_by(client, &register(skills.clone())).await,
        "joined",
        "it was lost, so it is news"
    );
    assert_eq!(change_by(client, &register(skills)).await, "same");

    let status = json!({ "status": "busy", "why": "lunch" });
    Message::new("_", &ann, "coordinator", "status", status)
        .publish(client)
        .await;
    wait_for_status(&installation, &ann, Some("busy")).await;
    let leaves = to_coordinator(&ann, "deregister_agent", json!({ "why": "done" }));
    leaves.publish(client).await;
    assert_eq!(answer_to(client, &leaves).await.0, "response");
    wait_for_status(&installation, &ann, None).await;

    settled(client, PATIENCE).await.unwrap();
    check_announcements(client).await;
    installation.holds(PATIENCE).await;
}

/// Heartbeats of an agent, until something else has happened.
async fn beats_until<T>(client: &Client, agents: &[String], until: impl Future<Output = T>) -> T {
    let beating = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            for agent in agents {
                let subject = format!("concord.v1.beat.{agent}");
                client.publish(subject, "{}".into()).await.unwrap();
            }
        }
    };
    tokio::select! {
        done = until => done,
        () = beating => unreachable!("it beats for ever"),
    }
}

/// Who was frozen, or had no connection, has not heard the others: nobody is gone because of that.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_was_frozen_takes_nobody_for_gone_who_was_there() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let agents = names(["ann", "ben", "cyd", "dan", "eve"]);
    let register = async |agent: &str, heartbeat_ms: u32| {
        let card = card(agent, &json!({ "heartbeat_ms": heartbeat_ms }));
        let registration = to_coordinator(agent, "register_agent", card);
        assert_eq!(change_by(client, &registration).await, "joined");
    };
    let [zoe] = names(["zoe"]);
    let told = beats_until(client, &agents, async {
        for agent in &agents {
            // Whoever misses three is gone: this process may be slow as well.
            register(agent, 1_000).await;
        }
        installation.freeze(Service::Coordinator, 0).unwrap();
        // What is sent meanwhile, heartbeats too, waits in the frozen process.
        let mut sent = interval(Duration::from_millis(100));
        for _ in 0..50 {
            sent.tick().await;
        }
        installation.thaw(Service::Coordinator, 0).unwrap();
        register(&zoe, 400).await;
        // It sends no heartbeats, so that it is missed, and everybody else has been looked at as well by then.
        wait_for_status(&installation, &zoe, Some("unavailable")).await;
        // The register knows it before everybody is told. The others are still there.
        wait_for("somebody to be told", PATIENCE, async || {
            let told = message_bodies(client, "concord.v1.msg._.coordinator._all.status").await?;
            let is_told = !told.is_empty();
            is_told.then_some(told).ok_or_else(|| "nobody".to_owned())
        })
        .await
    })
    .await;
    let gone: Vec<&Value> = told.iter().map(|one| &one["payload"]["agent_id"]).collect();
    assert_eq!(gone, [&json!(zoe)], "{told:#?}");
}

/// Agents of the Rust library say that their hearts beat more often than when they came, or that they beat at all, and then do so.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_that_its_heart_beats_more_often_is_not_taken_for_gone() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    for (before, agent) in [None, Some(60_000)].into_iter().zip(names(["ann", "ben"])) {
        let mut card = Card::new(AgentId::new(agent.as_str()).unwrap());
        card.heartbeat_ms = before;
        let builder = Agent::builder(&agent).card(card.clone());
        let connected = builder.connect(installation.server_url()).await.unwrap();
        let beats = client.subscribe(format!("concord.v1.beat.{agent}")).await;
        let mut beats = beats.unwrap();
        round_trip(client).await;
        // Whoever misses three is gone: this process may be slow as well.
        card.heartbeat_ms = Some(1_000);
        connected.update(&card).await.unwrap();
        // The first two may come at once; the last comes much later than a silent agent is missed.
        let beating = async {
            for _ in 0..8 {
                beats.next().await;
            }
        };
        tokio::select! {
            () = beating => {}
            () = wait_for_status(&installation, &agent, Some("unavailable")) => {
                panic!("{agent} is taken for gone, with {before:?} before")
            }
        }
        let filter = format!("agent.{agent}.status_changed");
        let changes = event_data(client, &filter).await.unwrap();
        assert!(changes.is_empty(), "with {before:?} before: {changes:?}");
        connected.close().await.unwrap();
    }
}

/// Messages of eve that the register refuses, each with the code of the error and the place that it names.
fn refused(eve: &str, ann: &str) -> [(Message, &'static str, &'static str); 6] {
    let register = |card: Value| to_coordinator(eve, "register_agent", card);
    let skills: Vec<Value> = (0..10_000)
        .map(|n| json!({ "name": format!("s{n}") }))
        .collect();
    let status_of_ann = json!({ "agent_id": ann, "status": "unavailable" });
    [
        (
            register(card(ann, &json!({}))),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
        (
            to_coordinator(eve, "deregister_agent", json!({ "agent_id": ann })),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
        (
            register(card(eve, &json!({ "skills": skills }))),
            "CAPACITY_EXCEEDED",
            "/payload/parameters/skills",
        ),
        (
            register(card(eve, &json!({ "dialect": "latin" }))),
            "INVALID_REQUEST",
            "/payload/parameters/dialect",
        ),
        (
            register(Value::Null),
            "INVALID_REQUEST",
            "/payload/parameters",
        ),
        (
            Message::new("_", eve, "coordinator", "status", status_of_ann),
            "UNAUTHORIZED",
            "/payload/parameters/agent_id",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_registers_another_and_a_bad_card_is_refused_at_its_place() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, eve] = names(["ann", "eve"]);
    for (message, code, pointer) in refused(&eve, &ann) {
        fails_at(client, &message, code, pointer).await;
    }
    // Heartbeats of an agent that is not registered change nothing, nor do bytes that are no heartbeat.
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
    // Heartbeats wait in no consumer: those before a good one are done with when that one has been.
    let [dan] = names(["dan"]);
    let promises = card(&dan, &json!({ "heartbeat_ms": 60_000 }));
    let registration = to_coordinator(&dan, "register_agent", promises);
    assert_eq!(change_by(client, &registration).await, "joined");
    beat_until_busy(&installation, &dan).await;
    settled(client, PATIENCE).await.unwrap();
    for unknown in [&ann, &eve] {
        let events = event_data(client, &format!("agent.{unknown}.*")).await;
        assert_eq!(events.unwrap(), Vec::<Value>::new());
    }
    installation.holds(PATIENCE).await;
}
