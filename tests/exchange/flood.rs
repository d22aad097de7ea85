//! An agent that floods: it is told so, nobody else is, and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_testkit::{Agent, Message, TestInstallation, settled, stored, until};
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{answer_to, becomes, card, facts, names, read, to_coordinator};

/// Each agent may send so many at once, and next to none after them.
const BURST: usize = 100;
const FLOOD: usize = 1_500;
const TO_BOB: usize = 300;
const OF_EACH_QUIET: usize = 20;
/// More than it takes; each lets one more message in.
const SECONDS: usize = 60;

/// Far more than can be read in the time that an answer takes.
const BACKLOG: usize = 30_000;
const AFTER_BACKLOG: usize = 5;
/// With so many waiting a service is not ready, unless they are a flood.
const LAG_MAX: usize = 2_000;
const LAG: &str = "concord_consumer_lag{consumer=\"coordinator-inbox\"}";

/// What was said to an agent, as bodies.
async fn told(client: &Client, agent: &str) -> Vec<Value> {
    let said = stored(
        client,
        StreamKind::Messages,
        &format!("concord.v1.msg.*.*.{agent}.*"),
    )
    .await
    .unwrap();
    said.iter().map(|one| one.json()).collect()
}

/// The codes of the errors that answer each message.
fn codes(told: &[Value]) -> BTreeMap<&str, Vec<&str>> {
    let mut codes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in told.iter().filter(|one| {
        one["message_type"] == "error" && one["payload"]["details"]["refused"].is_null()
    }) {
        let code = one["payload"]["error_code"].as_str().unwrap();
        codes
            .entry(one["correlation_id"].as_str().unwrap())
            .or_default()
            .push(code);
    }
    codes
}

async fn post(client: &Client, message: &Message) {
    client
        .publish(message.subject(), message.bytes().into())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_answered_with_the_limit_and_everybody_else_as_always() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_setting("work.agent_rate_max=1")
            .with_setting(format!("work.agent_burst_max={BURST}"))
    })
    .await;
    let client = installation.client();
    let [flooder, bob, ann, cleo, dan] = names(["flooder", "bob", "ann", "cleo", "dan"]);
    let me = bob.clone();
    let _bob = Agent::start(client, &bob, move |heard| match heard.kind() {
        "request" => {
            let answer = json!({ "status": "success", "result": {} });
            let asker = heard.body["from_agent"].as_str().unwrap();
            vec![
                Message::new("_", &me, asker, "response", answer)
                    .with("/correlation_id", heard.body["message_id"].clone()),
            ]
        }
        _ => Vec::new(),
    })
    .await;

    let mut flood = Vec::new();
    let mut news = BTreeSet::new();
    let mut to_bob = BTreeSet::new();
    let mut quiet = Vec::new();
    for number in 0..FLOOD {
        let message = to_coordinator(&flooder, "no_such_action", json!({ "number": number }));
        post(client, &message).await;
        flood.push(message.id().to_owned());
        let message = Message::new(
            "_",
            &flooder,
            "coordinator",
            "info_update",
            json!({ "content": number }),
        );
        post(client, &message).await;
        news.insert(message.id().to_owned());
        if number < TO_BOB {
            let message = Message::new(
                "_",
                &flooder,
                &bob,
                "request",
                json!({ "action": "x", "parameters": {} }),
            );
            post(client, &message).await;
            to_bob.insert(message.id().to_owned());
        }
        if number % (FLOOD / OF_EACH_QUIET) == 0 {
            for agent in [&ann, &cleo, &dan] {
                let message = to_coordinator(agent, "no_such_action", json!({}));
                post(client, &message).await;
                quiet.push((agent, message.id().to_owned()));
            }
        }
    }
    client.flush().await.unwrap();
    let ended = until("every request to bob to have ended", PATIENCE, async || {
        let count = facts(client, "request", "answered").await.len()
            + facts(client, "request", "failed").await.len();
        if count == TO_BOB {
            Ok(())
        } else {
            Err(format!("{count} have"))
        }
    });
    ended.await.unwrap_or_else(|error| panic!("{error}"));
    settled(client, PATIENCE).await.unwrap();

    // Nobody else notices anything.
    for agent in [&ann, &cleo, &dan] {
        let told = told(client, agent).await;
        let codes = codes(&told);
        let own: Vec<&String> = quiet
            .iter()
            .filter(|(of, _)| *of == agent)
            .map(|(_, id)| id)
            .collect();
        assert!(own.len() >= OF_EACH_QUIET);
        for id in own {
            assert_eq!(
                codes.get(id.as_str()),
                Some(&vec!["INVALID_REQUEST"]),
                "{agent}"
            );
        }
    }
    let told = told(client, &flooder).await;
    let codes = codes(&told);
    // Of the requests to a service few are worked on, and few have an answer of their own that says why not.
    let of_flood: Vec<&Vec<&str>> = flood
        .iter()
        .filter_map(|id| codes.get(id.as_str()))
        .collect();
    assert!(
        of_flood.iter().all(|codes| codes.len() == 1),
        "one answer each"
    );
    let over = of_flood
        .iter()
        .filter(|codes| codes[..] == ["CAPACITY_EXCEEDED"])
        .count();
    assert!((1..=SECONDS).contains(&over), "{over}");
    let one = told
        .iter()
        .find(|one| one["payload"]["details"]["limit"] == "agent_rate")
        .unwrap();
    assert!(
        one["payload"]["recovery_suggestions"][0]
            .as_str()
            .unwrap()
            .contains("at most 1 a second"),
        "{one}"
    );
    assert_eq!(one["payload"]["details"]["retry_after_ms"], 1_000, "{one}");
    // Of all others one notice a second says how many were refused, and the first of them: no message is missing.
    let notices: Vec<&Value> = told
        .iter()
        .filter(|one| one["payload"]["details"]["refused"].is_u64())
        .collect();
    let refused: u64 = notices
        .iter()
        .map(|one| one["payload"]["details"]["refused"].as_u64().unwrap())
        .sum();
    let told_of = of_flood.len() + usize::try_from(refused).unwrap();
    let worked_on_without_a_word = 2 * FLOOD - told_of;
    assert!(
        worked_on_without_a_word <= BURST + SECONDS,
        "{told_of} of {}",
        2 * FLOOD
    );
    let first = |one: &&Value| one["correlation_id"].as_str().unwrap().to_owned();
    assert!(
        notices
            .iter()
            .map(first)
            .all(|id| news.contains(&id) || flood.contains(&id)),
        "{notices:?}"
    );
    assert!(notices.len() < FLOOD / 10, "{} notices", notices.len());
    // A request to another agent ends at once, and once; what is answered nevertheless is recorded as late.
    let failed = facts(client, "request", "failed").await;
    assert!(failed.len() >= TO_BOB - BURST - SECONDS, "{}", failed.len());
    assert!(
        failed
            .iter()
            .all(|one| one["error_code"] == "CAPACITY_EXCEEDED"),
        "{failed:?}"
    );
    let failed: BTreeSet<&str> = failed
        .iter()
        .map(|one| one["request"]["request_id"].as_str().unwrap())
        .collect();
    let errors: BTreeSet<&str> = to_bob
        .iter()
        .map(String::as_str)
        .filter(|id| codes.contains_key(id))
        .collect();
    assert_eq!(failed, errors);
    assert!(errors.iter().all(|id| codes[id] == ["CAPACITY_EXCEEDED"]));
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_send_is_answered_before_the_flood_has_been_read() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(Service::Coordinator, 2)
            .with_setting("work.agent_rate_max=50")
            .with_setting(format!("http.ready_lag_max={LAG_MAX}"))
            .with_setting(format!("work.agent_burst_max={BURST}"))
    })
    .await;
    let client = installation.client();
    let [flooder, ann, dan, eve] = names(["flooder", "ann", "dan", "eve"]);
    // One was heard before, if by one replica alone; one is registered; of the third nobody has ever heard.
    let hello = to_coordinator(&ann, "no_such_action", json!({}));
    post(client, &hello).await;
    answer_to(client, &hello).await;
    post(
        client,
        &to_coordinator(&dan, "register_agent", card(&dan, &json!({}))),
    )
    .await;
    becomes(&installation, &dan, Some("available")).await;
    let mut answers = client
        .subscribe("concord.v1.msg.*.coordinator.*.error")
        .await
        .unwrap();
    // Nothing is read until all of the flood is there.
    let stream = async_nats::jetstream::new(client.clone())
        .get_stream("CONCORD_MESSAGES")
        .await
        .unwrap();
    let later = time::OffsetDateTime::now_utc() + std::time::Duration::from_secs(600);
    stream
        .pause_consumer("coordinator-inbox", later)
        .await
        .unwrap();
    for number in 0..BACKLOG {
        let message = Message::new(
            "_",
            &flooder,
            "coordinator",
            "info_update",
            json!({ "content": number }),
        );
        post(client, &message).await;
    }
    let mut waiting = BTreeSet::new();
    for agent in [&ann, &dan, &eve] {
        for _ in 0..AFTER_BACKLOG {
            let message = to_coordinator(agent, "no_such_action", json!({}));
            post(client, &message).await;
            waiting.insert(message.id().to_owned());
        }
    }
    client.flush().await.unwrap();
    stream.resume_consumer("coordinator-inbox").await.unwrap();
    // What waits of the flood alone does not make the service unready, and is said.
    let coordinators = (Service::Coordinator, 2);
    let noted = until(
        "the replicas to say that they are flooded",
        PATIENCE,
        async || {
            let lag = |text: &String| {
                let line = text.lines().find_map(|line| line.strip_prefix(LAG))?;
                line.trim()
                    .parse()
                    .ok()
                    .filter(|lag: &usize| *lag > LAG_MAX)
            };
            let lags: Vec<_> = read(&installation, coordinators, "/metrics")
                .await
                .iter()
                .filter_map(lag)
                .collect();
            let ready = read(&installation, coordinators, "/readyz").await;
            let noted = ready
                .iter()
                .filter(|text| text.contains("\"a flood waits in coordinator-inbox"))
                .count();
            if lags.len() == 2 && noted == 2 {
                Ok(ready)
            } else {
                Err(format!("{lags:?} {ready:?}"))
            }
        },
    );
    let noted = noted.await.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        noted.iter().all(|text| text.contains("\"ready\":true")),
        "{noted:?}"
    );
    let asked = waiting.clone();
    let answered = async {
        while !waiting.is_empty() {
            let answer: Value =
                serde_json::from_slice(&answers.next().await.unwrap().payload).unwrap();
            waiting.remove(answer["correlation_id"].as_str().unwrap_or_default());
        }
    };
    tokio::time::timeout(PATIENCE, answered)
        .await
        .unwrap_or_else(|_| panic!("some were not answered"));
    let unread = stream
        .consumer_info("coordinator-inbox")
        .await
        .unwrap()
        .num_pending;
    assert!(
        unread > 0,
        "the flood had been read before the others were answered"
    );

    settled(client, PATIENCE).await.unwrap();
    // Whoever reads the message a second time, in its turn, says nothing more.
    for agent in [&ann, &dan, &eve] {
        let told = told(client, agent).await;
        let codes = codes(&told);
        let own: Vec<_> = codes
            .iter()
            .filter(|(id, _)| asked.contains(**id))
            .collect();
        assert_eq!(own.len(), AFTER_BACKLOG, "{agent}");
        assert!(
            own.iter()
                .all(|(_, codes)| codes[..] == ["INVALID_REQUEST"]),
            "{own:?}"
        );
    }
    installation.holds(PATIENCE).await;
}
