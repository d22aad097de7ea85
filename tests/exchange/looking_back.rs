//! Before a request fails, the coordinator looks for an answer that nobody has taken. What two agents said to each other before it was asked
//! is not read again for that.

use std::collections::BTreeMap;

use async_nats::{Client, jetstream};
use concord_testkit::{Message, TestInstallation, settled, wait_for};
use concord_wire::Timestamp;
use futures::future::join_all;
use serde_json::json;

use crate::exchange::PATIENCE;
use crate::exchange::stage::{answer_to, in_millis, names, request, requests_with};

/// So many urgent messages have passed between the two: more than one search looks through.
const BEFORE: usize = 1_100;
/// What is asked of JetStream's API meanwhile, for whatever reason, at most: this test asks, too, as long as it waits. A search through what was said
/// before would ask for each of a thousand messages.
const ASKED_MAX: u64 = 900;
/// As long as a slow machine needs to store three messages, and more.
const ANSWER_MS: u64 = 8_000;
/// More than the clocks of brokers may be apart.
const APART_MS: u64 = 6_000;

/// An urgent response that names what it answers by this.
fn urgent(from: &str, to: &str, correlation: &str) -> Message {
    let payload = json!({ "status": "success", "result": {} });
    Message::new("_", from, to, "response", payload)
        .with("/correlation_id", json!(correlation))
        .with("/priority", json!("critical"))
}

/// A request with a `correlation_id` of its own: what answers it is known by that only when its time is over.
fn asked(from: &str, to: &str, correlation: &str) -> Message {
    request(from, to, "ponder", json!({}))
        .with("/correlation_id", json!(correlation))
        .with("/deadline", json!(in_millis(ANSWER_MS)))
}

/// Waits until it is later than this.
async fn passes(what: &str, time: Timestamp) {
    wait_for(what, PATIENCE, async || {
        let left = time.millis_since(in_millis(0));
        if left == 0 {
            Ok(())
        } else {
            Err(format!("{left} ms are left"))
        }
    })
    .await;
}

/// How often JetStream's API was asked for something.
async fn asked_of_the_broker(client: &Client) -> u64 {
    let account = jetstream::new(client.clone()).query_account().await;
    account.expect("the broker answers").requests.total
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_time_is_over_is_not_looked_up_in_what_was_said_before_it() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let said = (0..BEFORE).map(|number| urgent(&bob, &ann, &format!("before-{number}")));
    let said: Vec<Message> = said.collect();
    join_all(said.iter().map(|message| message.store(client))).await;
    settled(client, PATIENCE).await.unwrap();
    // The clocks of two brokers may be seconds apart, so the search begins a little before the request.
    let old = in_millis(APART_MS);
    passes("what was said to be old", old).await;

    let asked_before = asked_of_the_broker(client).await;
    let [silent, answered] = [asked(&ann, &bob, "silent"), asked(&ann, &bob, "answered")];
    let answer = urgent(&bob, &ann, "answered");
    for message in [&silent, &answered, &answer] {
        message.store(client).await;
    }

    let events = requests_with(&installation, "answered", 1).await;
    assert_eq!(
        (
            &events[0]["request"]["request_id"],
            &events[0]["answer"]["message_id"]
        ),
        (&json!(answered.id()), &json!(answer.id())),
        "{events:?}"
    );
    let (kind, error) = answer_to(client, &silent).await;
    assert_eq!(
        (kind.as_str(), &error["error_code"]),
        ("error", &json!("TIMEOUT"))
    );
    let times = asked_of_the_broker(client).await - asked_before;
    assert!(times < ASKED_MAX, "the broker was asked {times} times");
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_stored_before_what_it_answers_is_found_by_the_correlation_of_both() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    // Bob heard the request before the broker had stored it, and urgent messages have a stream of their own.
    let answers = [urgent(&bob, &ann, "work"), urgent(&bob, &ann, "work")];
    let [first, second] = [asked(&ann, &bob, "work"), asked(&ann, &bob, "work")];
    for message in [&answers[0], &first, &second, &answers[1]] {
        message.store(client).await;
        // Times of the broker are told to the millisecond.
        passes("a moment", in_millis(3)).await;
    }

    let events = requests_with(&installation, "answered", 2).await;
    let answered: BTreeMap<&str, &str> = events
        .iter()
        .map(|event| {
            (
                &event["request"]["request_id"],
                &event["answer"]["message_id"],
            )
        })
        .filter_map(|(request, answer)| Some((request.as_str()?, answer.as_str()?)))
        .collect();
    let expected = BTreeMap::from([
        (first.id(), answers[0].id()),
        (second.id(), answers[1].id()),
    ]);
    assert_eq!(answered, expected, "{events:#?}");
    installation.holds(PATIENCE).await;
}
