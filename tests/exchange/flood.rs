//! An agent that sends too much is told so; all others are served as always, and no message is lost.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::Client;
use concord_testkit::{
    Agent, Message, TestInstallation, event_data, message_bodies, settled, wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{names, request, response, to_coordinator};

/// The number of messages that each agent may send at once; after them it may send one a second.
pub(crate) const BURST: usize = 100;
/// The flooding agent sends so many requests to the coordinator, and as many messages of another type.
const FLOOD: usize = 1_500;
/// It sends so many requests to another agent.
const TO_BOB: usize = 300;
/// Each of the other agents sends at least so many requests meanwhile.
const OF_EACH_QUIET: usize = 20;
/// More seconds than the test takes; each lets one more message in.
const SECONDS: usize = 60;

/// The bodies of all messages to an agent.
pub(crate) async fn messages_to(client: &Client, agent: &str) -> Vec<Value> {
    message_bodies(client, &format!("concord.v1.msg.*.*.{agent}.*"))
        .await
        .unwrap()
}

/// The codes of the errors among these messages, by the id of the message that each error answers.
pub(crate) fn codes(messages: &[Value]) -> BTreeMap<&str, Vec<&str>> {
    let mut codes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_answer = |one: &&Value| {
        one["message_type"] == "error" && one["payload"]["details"]["refused"].is_null()
    };
    for one in messages.iter().filter(is_answer) {
        let code = one["payload"]["error_code"].as_str().unwrap();
        codes
            .entry(one["correlation_id"].as_str().unwrap())
            .or_default()
            .push(code);
    }
    codes
}

/// Publishes without waiting for the broker, so that many messages come at once.
pub(crate) async fn post(client: &Client, message: &Message) {
    client
        .publish(message.subject(), message.bytes().into())
        .await
        .unwrap();
}

/// The ids of what was sent.
#[derive(Default)]
struct SentIds {
    /// Requests of the flooding agent to the coordinator.
    requests: Vec<String>,
    /// Its messages that nobody answers.
    news: BTreeSet<String>,
    /// Its requests to bob.
    to_bob: BTreeSet<String>,
    /// Requests of the other agents, by agent.
    quiet: BTreeMap<String, Vec<String>>,
}

/// Sends the flood, and between its messages those of the quiet agents.
async fn send_flood(client: &Client, flooder: &str, bob: &str, quiet: &[String]) -> SentIds {
    let mut sent = SentIds::default();
    for number in 0..FLOOD {
        let message = to_coordinator(flooder, "no_such_action", json!({ "number": number }));
        post(client, &message).await;
        sent.requests.push(message.id().to_owned());
        let payload = json!({ "content": number });
        let message = Message::new("_", flooder, "coordinator", "info_update", payload);
        post(client, &message).await;
        sent.news.insert(message.id().to_owned());
        if number < TO_BOB {
            let message = request(flooder, bob, "x", json!({}));
            post(client, &message).await;
            sent.to_bob.insert(message.id().to_owned());
        }
        if number % (FLOOD / OF_EACH_QUIET) == 0 {
            for agent in quiet {
                let message = to_coordinator(agent, "no_such_action", json!({}));
                post(client, &message).await;
                let ids = sent.quiet.entry(agent.clone()).or_default();
                ids.push(message.id().to_owned());
            }
        }
    }
    client.flush().await.unwrap();
    sent
}

/// Waits until every request to bob has ended and nothing is under way.
async fn wait_for_end(client: &Client) {
    wait_for("every request to bob to have ended", PATIENCE, async || {
        let answered = event_data(client, "request.*.answered").await?.len();
        let failed = event_data(client, "request.*.failed").await?.len();
        if answered + failed == TO_BOB {
            Ok(())
        } else {
            Err(format!("{} have", answered + failed))
        }
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
}

/// Each request of the quiet agents has the one answer that it always has.
async fn check_quiet_agents(client: &Client, sent: &SentIds) {
    for (agent, ids) in &sent.quiet {
        let messages = messages_to(client, agent).await;
        let codes = codes(&messages);
        assert!(ids.len() >= OF_EACH_QUIET);
        for id in ids {
            assert_eq!(
                codes.get(id.as_str()),
                Some(&vec!["INVALID_REQUEST"]),
                "{agent}"
            );
        }
    }
}

/// Checks that few of the flood's requests are worked on, and few have an error of their own that says why they are not.
/// Returns how many requests have an answer of their own.
fn check_own_answers(messages: &[Value], sent: &SentIds) -> usize {
    let codes = codes(messages);
    let answered: Vec<&Vec<&str>> = sent
        .requests
        .iter()
        .filter_map(|id| codes.get(id.as_str()))
        .collect();
    assert!(
        answered.iter().all(|codes| codes.len() == 1),
        "one answer each"
    );
    let refused = answered
        .iter()
        .filter(|codes| codes[..] == ["CAPACITY_EXCEEDED"])
        .count();
    assert!((1..=SECONDS).contains(&refused), "{refused}");
    let is_over_rate = |one: &&Value| one["payload"]["details"]["limit"] == "agent_rate";
    let one = messages.iter().find(is_over_rate).unwrap();
    let advice = &one["payload"]["recovery_suggestions"][0];
    assert!(
        advice.as_str().unwrap().contains("at most 1 a second"),
        "{one}"
    );
    assert_eq!(one["payload"]["details"]["retry_after_ms"], 1_000, "{one}");
    answered.len()
}

/// Checks the notices about all other messages: one a second says how many were refused, and names the first of them. No
/// message is missing.
fn check_notices(messages: &[Value], sent: &SentIds, answered: usize) {
    let refused = |one: &Value| one["payload"]["details"]["refused"].as_u64();
    let notices: Vec<&Value> = messages
        .iter()
        .filter(|one| refused(one).is_some())
        .collect();
    let refused: u64 = notices.iter().filter_map(|one| refused(one)).sum();
    let told_of = answered + usize::try_from(refused).unwrap();
    let worked_on_silently = 2 * FLOOD - told_of;
    assert!(
        worked_on_silently <= BURST + SECONDS,
        "{told_of} of {}",
        2 * FLOOD
    );
    let is_of_flood = |one: &&Value| {
        let first = one["correlation_id"].as_str().unwrap().to_owned();
        sent.news.contains(&first) || sent.requests.contains(&first)
    };
    assert!(notices.iter().all(is_of_flood), "{notices:?}");
    assert!(notices.len() < FLOOD / 10, "{} notices", notices.len());
}

/// A request to another agent ends at once, and once; an answer that comes nevertheless is recorded as late.
async fn check_requests_to_bob(client: &Client, messages: &[Value], sent: &SentIds) {
    let codes = codes(messages);
    let failed = event_data(client, "request.*.failed").await.unwrap();
    assert!(failed.len() >= TO_BOB - BURST - SECONDS, "{}", failed.len());
    let is_over_capacity = |one: &Value| one["error_code"] == "CAPACITY_EXCEEDED";
    assert!(failed.iter().all(is_over_capacity), "{failed:?}");
    let failed: BTreeSet<&str> = failed
        .iter()
        .map(|one| one["request"]["request_id"].as_str().unwrap())
        .collect();
    let errors: BTreeSet<&str> = sent
        .to_bob
        .iter()
        .map(String::as_str)
        .filter(|id| codes.contains_key(id))
        .collect();
    assert_eq!(failed, errors);
    assert!(errors.iter().all(|id| codes[id] == ["CAPACITY_EXCEEDED"]));
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
    let [flooder, bob] = names(["flooder", "bob"]);
    let quiet = names(["ann", "cleo", "dan"]);
    let _bob = Agent::start(client, &bob, |heard| match heard.kind() {
        "request" => vec![response(&heard.body, &heard.agent)],
        _ => Vec::new(),
    })
    .await;

    let sent = send_flood(client, &flooder, &bob, &quiet).await;
    wait_for_end(client).await;

    check_quiet_agents(client, &sent).await;
    let messages = messages_to(client, &flooder).await;
    let answered = check_own_answers(&messages, &sent);
    check_notices(&messages, &sent, answered);
    check_requests_to_bob(client, &messages, &sent).await;
    installation.holds(PATIENCE).await;
}
