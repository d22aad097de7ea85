//! While a flood waits to be read, the messages of others are answered before it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::{self, stream::Stream};
use concord_testkit::{Message, TestInstallation, settled, wait_for};
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::flood::{BURST, codes, messages_to, post};
use crate::exchange::stage::{answer_to, http_answers, names, register, to_coordinator};

/// The flooding agent sends so many messages: far more than can be read in the time that an answer takes.
const BACKLOG: usize = 30_000;
/// Each of the others sends so many requests after them.
const AFTER_BACKLOG: usize = 5;
/// With so many messages waiting a service is not ready, unless they are a flood.
const LAG_MAX: usize = 2_000;
const LAG: &str = "concord_consumer_lag{consumer=\"coordinator-inbox\"}";
const INBOX: &str = "coordinator-inbox";
const COORDINATORS: (Service, usize) = (Service::Coordinator, 2);

async fn start() -> TestInstallation {
    TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(COORDINATORS.0, COORDINATORS.1)
            .with_setting("work.agent_rate_max=50")
            // Both read, and say so.
            .with_setting("work.standby=false")
            .with_setting(format!("http.ready_lag_max={LAG_MAX}"))
            .with_setting(format!("work.agent_burst_max={BURST}"))
    })
    .await
}

/// Sends the flood and then the requests of the others, while the coordinators read nothing: the ids of these requests.
async fn send_while_nothing_is_read(
    installation: &TestInstallation,
    inbox: &Stream,
    flooder: &str,
    others: [&String; 3],
) -> BTreeSet<String> {
    let client = installation.client();
    let later = time::OffsetDateTime::now_utc() + Duration::from_secs(600);
    inbox.pause_consumer(INBOX, later).await.unwrap();
    for number in 0..BACKLOG {
        let payload = json!({ "content": number });
        let message = Message::new("_", flooder, "coordinator", "info_update", payload);
        post(client, &message).await;
    }
    let mut sent = BTreeSet::new();
    for agent in others {
        for _ in 0..AFTER_BACKLOG {
            let message = to_coordinator(agent, "no_such_action", json!({}));
            post(client, &message).await;
            sent.insert(message.id().to_owned());
        }
    }
    client.flush().await.unwrap();
    inbox.resume_consumer(INBOX).await.unwrap();
    sent
}

/// The messages of the flood that wait do not make a replica unready; each replica says that they wait.
async fn check_readiness(installation: &TestInstallation) {
    let lag = |text: &String| -> Option<usize> {
        let line = text.lines().find_map(|line| line.strip_prefix(LAG))?;
        line.trim().parse().ok().filter(|lag| *lag > LAG_MAX)
    };
    let what = "the replicas to say that they are flooded";
    let ready = wait_for(what, PATIENCE, async || {
        let metrics = http_answers(installation, COORDINATORS, "/metrics").await;
        let lags: Vec<usize> = metrics.iter().filter_map(lag).collect();
        let ready = http_answers(installation, COORDINATORS, "/readyz").await;
        let noted = ready
            .iter()
            .filter(|text| text.contains("\"a flood waits in coordinator-inbox"))
            .count();
        if lags.len() == 2 && noted == 2 {
            Ok(ready)
        } else {
            Err(format!("{lags:?} {ready:?}"))
        }
    })
    .await;
    assert!(
        ready.iter().all(|text| text.contains("\"ready\":true")),
        "{ready:?}"
    );
}

/// Whoever is behind works all the same: an orchestrator that took it for useless would evict it, and wait for the next one in vain.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_noted_and_makes_no_replica_unready() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_setting("http.ready_lag_max=1")
    })
    .await;
    let client = installation.client();
    let stream = jetstream::new(client.clone());
    let stream = stream.get_stream("CONCORD_MESSAGES").await.unwrap();
    let later = time::OffsetDateTime::now_utc() + Duration::from_secs(600);
    stream.pause_consumer(INBOX, later).await.unwrap();
    for agent in names(["ann", "dan", "eve"]) {
        post(client, &to_coordinator(&agent, "no_such_action", json!({}))).await;
    }
    client.flush().await.unwrap();
    let coordinator = (Service::Coordinator, 1);
    let ready = wait_for("the backlog to be noted", PATIENCE, async || {
        let ready = http_answers(&installation, coordinator, "/readyz").await;
        let noted = ready[0].contains(" messages wait in the consumer coordinator-inbox");
        noted.then(|| ready[0].clone()).ok_or(ready[0].clone())
    })
    .await;
    assert!(ready.contains("\"ready\":true"), "{ready}");
}

/// All these requests are answered while messages of the flood still wait.
async fn check_answered_first(inbox: &Stream, errors: &mut Subscriber, sent: &BTreeSet<String>) {
    let mut waiting = sent.clone();
    let answered = async {
        while !waiting.is_empty() {
            let error = errors.next().await.unwrap();
            let error: Value = serde_json::from_slice(&error.payload).unwrap();
            waiting.remove(error["correlation_id"].as_str().unwrap_or_default());
        }
    };
    tokio::time::timeout(PATIENCE, answered)
        .await
        .unwrap_or_else(|_| panic!("some were not answered"));
    let unread = inbox.consumer_info(INBOX).await.unwrap().num_pending;
    assert!(
        unread > 0,
        "the flood had been read before the others were answered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_send_is_answered_before_the_flood_has_been_read() {
    let installation = start().await;
    let client = installation.client();
    let [flooder, ann, dan, eve] = names(["flooder", "ann", "dan", "eve"]);
    // The coordinators know ann by a message (one replica of the two), dan by his card, and eve not at all.
    let hello = to_coordinator(&ann, "no_such_action", json!({}));
    post(client, &hello).await;
    answer_to(client, &hello).await;
    register(&installation, &dan, &json!({})).await;
    let mut errors = client
        .subscribe("concord.v1.msg.*.coordinator.*.error")
        .await
        .unwrap();
    let inbox = jetstream::new(client.clone())
        .get_stream("CONCORD_MESSAGES")
        .await
        .unwrap();

    let others = [&ann, &dan, &eve];
    let sent = send_while_nothing_is_read(&installation, &inbox, &flooder, others).await;
    // At the same time: on a slow machine either would leave the flood too much time to be read before the other has looked.
    futures::join!(
        check_readiness(&installation),
        check_answered_first(&inbox, &mut errors, &sent)
    );

    // So many take a slow machine long.
    settled(client, 3 * PATIENCE).await.unwrap();
    // The replica that reads a message a second time, when its turn comes, sends no second answer.
    for agent in others {
        let messages = messages_to(client, agent).await;
        let codes = codes(&messages);
        let own: Vec<_> = codes.iter().filter(|(id, _)| sent.contains(**id)).collect();
        assert_eq!(own.len(), AFTER_BACKLOG, "{agent}");
        let is_usual = |(_, codes): &(&&str, &Vec<&str>)| codes[..] == ["INVALID_REQUEST"];
        assert!(own.iter().all(is_usual), "{own:?}");
    }
    installation.holds(PATIENCE).await;
}
