//! After SIGTERM a process ends its current work, leaves the rest to others at once, and exits with 0.

use std::time::{Duration, Instant};

use async_nats::{Subscriber, jetstream};
use concord_testkit::{SERVICES, TestInstallation, settled, wait_for};
use concord_wire::Token;
use concord_wire::subject::{Service, Subject, SubjectSpace};
use futures::StreamExt;
use futures::future::join;
use serde_json::Value;

use crate::kill::agents::{Agents, store};
use crate::kill::blows::{REPLICAS, start};
use crate::kill::cases::{self, AGENTS, opening, wait_for_decisions};
use crate::kill::order::{self, Record};
use crate::kill::storm;

const CASES: usize = 60;
/// How much is asked at once.
const REQUESTS: usize = 3_000;
/// The documented time of draining, `work.drain_ms`.
const DRAIN: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(90);
/// After this time the broker delivers to another process what one did not acknowledge.
const ACK_WAIT: Duration = Duration::from_secs(120);

/// Sends SIGTERM to a process and waits until it has exited with 0.
async fn terminate(installation: &TestInstallation, service: Service, replica: usize) {
    let pid = installation.pid(service, replica).expect("it runs");
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &pid.to_string()])
        .status()
        .expect("kill runs");
    assert!(asked.success(), "the process is there");
    let begun = Instant::now();
    let what = format!("{service}-{replica} to end");
    let status = wait_for(what, DRAIN + Duration::from_secs(5), async || {
        let ended = installation
            .exited()
            .into_iter()
            .find(|(s, r, _)| (*s, *r) == (service, replica));
        ended
            .map(|(_, _, status)| status)
            .ok_or_else(|| "it runs".to_owned())
    })
    .await;
    assert_eq!(status.code(), Some(0), "{service}: {status}");
    println!(
        "{service} has drained in {:.2} s",
        begun.elapsed().as_secs_f64()
    );
}

/// The messages that a drained process had fetched are handled, by it or by another, long before the broker would deliver them
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_drained_process_leaves_nothing_that_has_to_be_missed_first() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_setting(format!("work.ack_wait_ms={}", ACK_WAIT.as_millis()));
        let plan = SERVICES
            .iter()
            .fold(plan, |plan, service| plan.with_replicas(*service, 2));
        plan.with_replicas(Service::AgentAdapter, 0)
    })
    .await;
    installation.free_openers().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS, cases::answers);
    for number in 0..CASES {
        store(&jetstream, &opening(number)).await;
    }
    let begun = Instant::now();
    for service in SERVICES
        .into_iter()
        .filter(|service| *service != Service::AgentAdapter)
    {
        terminate(&installation, service, 0).await;
    }
    wait_for_decisions(&client, CASES, PATIENCE).await;
    assert!(begun.elapsed() < ACK_WAIT, "it took {:?}", begun.elapsed());
}

/// Each process of an installation is asked to stop and started again, one after the other, while further cases are opened. What each
/// agent is told in each case is as promised: what the stream has, and what a subscription hears.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_loses_doubles_and_reorders_nothing_within_a_case() {
    /// Cases that are opened right before each restart.
    const EACH: usize = 6;
    let installation = start().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let agents = &AGENTS[..4];
    let subscription = order::subscribe(&client).await;
    let _agents = Agents::start(&client, agents, cases::answers);
    let mut opened = 0;
    for service in SERVICES {
        for replica in 0..REPLICAS {
            for number in opened..opened + EACH {
                store(&jetstream, &opening(number)).await;
            }
            opened += EACH;
            terminate(&installation, service, replica).await;
            let started = installation.restart(service, replica).await;
            started.unwrap_or_else(|error| panic!("{service}: {error}"));
        }
    }
    wait_for_decisions(&client, opened, PATIENCE).await;
    let all_done = settled(&client, PATIENCE).await;
    all_done.unwrap_or_else(|error| panic!("{error}"));
    storm::check(&installation).await;
    let stored = Record::stored(&client, agents).await;
    let heard = Record::heard(&client, subscription, agents).await;
    stored.check(opened, agents.len(), &heard);
    heard.check(opened, agents.len(), &stored);
}

/// A process that is asked to stop answers what it was asked before.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_was_asked_before_it_ends_is_answered() {
    let installation = TestInstallation::start_with(|plan| {
        let others = SERVICES.iter().filter(|one| **one != Service::Coordinator);
        others.fold(plan, |plan, service| plan.with_replicas(*service, 0))
    })
    .await;
    let client = installation.client();
    let subject = SubjectSpace::default().build(&Subject::Api {
        service: Service::Coordinator,
        verb: Token::fixed("find_agents"),
        caller: None,
    });
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.expect("subscribed");
    for _ in 0..REQUESTS {
        let asked = client.publish_with_reply(subject.clone(), inbox.clone(), "{}".into());
        asked.await.expect("sent");
    }
    // The first answer says that the broker has begun; the process is far from having answered all of them.
    let one = async |answers: &mut Subscriber| {
        let answer = tokio::time::timeout(PATIENCE, answers.next()).await;
        let answer = answer.expect("each is answered").expect("subscribed");
        assert!(answer.status.is_none(), "{answer:?}");
    };
    one(&mut answers).await;
    let all = async {
        for _ in 1..REQUESTS {
            one(&mut answers).await;
        }
    };
    let end = async {
        let known = installation.ask(Service::Coordinator, "status", &Value::Null);
        known.await.expect("all were sent to it before this");
        terminate(&installation, Service::Coordinator, 0).await;
    };
    join(all, end).await;
}
