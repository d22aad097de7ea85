//! Handlers that wait for answers or that panic, and agents whose first connection fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use concord_agent::{Agent, AgentId, Card, Error, MessageType, Recipient};
use concord_events::topology::Layout;
use concord_wire::subject::Lane;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::clients::conformance::WireMessage;
use crate::clients::python::Driver;
use crate::clients::stage::Stage;

/// An agent is sent so many requests: more than a durable inbox works on at a time.
const MANY: usize = 40;
/// A durable inbox works on so many messages at a time.
const SEATS: usize = 32;

/// Sends ann a request on the normal lane.
pub(crate) async fn ask(stage: &Stage, id: &str, action: &str) {
    ask_on(stage, Lane::Normal, id, action).await;
}

async fn ask_on(stage: &Stage, lane: Lane, id: &str, action: &str) {
    let priority = if lane == Lane::Urgent {
        "critical"
    } else {
        "normal"
    };
    let message = json!({
        "message_id": id, "from_agent": "zoe", "to_agent": "ann", "message_type": "request", "requires_response": true,
        "priority": priority, "payload": { "action": action, "parameters": {} },
    });
    let subject = format!("concord.v1.{}._.zoe.ann.request", lane.as_str());
    let request = WireMessage {
        subject,
        message,
        ..WireMessage::default()
    };
    stage.send(&request, json!({})).await;
}

/// Makes the durable inbox of ann with these bounds, as somebody else may: the library takes it as it is.
async fn make_inbox(stage: &Stage, bounds: pull::Config) {
    let layout = Layout::default();
    let (stream, name, filter_subject) = layout.agent_inbox(Lane::Normal, &AgentId::fixed("ann"));
    let config = pull::Config {
        durable_name: Some(name),
        filter_subject,
        ack_policy: AckPolicy::Explicit,
        ..bounds
    };
    let context = jetstream::new(stage.client.clone());
    context
        .create_consumer_on_stream(config, layout.stream_name(stream))
        .await
        .expect("the consumer is made");
}

/// The next message of ann to this recipient: its type and its body.
pub(crate) async fn next_to(stage: &mut Stage, to: &str) -> (String, Value) {
    loop {
        let (subject, message) = stage.next("an answer").await;
        if message["to_agent"] == to {
            return (
                subject.rsplit('.').next().expect("a type").to_owned(),
                message,
            );
        }
    }
}

/// Asks until there is an answer: without a durable inbox nothing says when the broker has read the subscriptions of an agent that
/// has just connected, and what is sent before that is lost to it.
async fn ask_until_heard(stage: &mut Stage, action: &str) -> (String, Value) {
    let mut number = 0;
    loop {
        number += 1;
        ask(stage, &format!("r-{number}"), action).await;
        let answer = tokio::time::timeout(Duration::from_secs(3), next_to(stage, "zoe")).await;
        if let Ok(answer) = answer {
            return answer;
        }
        assert!(number < 20, "nobody answers");
    }
}

/// Each handler asks ben, who answers none before all seats are taken; an urgent request is answered meanwhile. In the end all
/// requests are answered.
async fn check_all_are_answered(stage: &mut Stage) {
    for number in 0..MANY {
        ask(stage, &format!("r-{number}"), "think").await;
    }
    let success = json!({ "message_type": "response", "payload": { "status": "success", "result": { "x": 1 } } });
    let mut asked = Vec::new();
    while asked.len() < SEATS {
        asked.push(next_to(stage, "ben").await.1);
    }
    ask_on(stage, Lane::Urgent, "r-urgent", "answer").await;
    let (_, urgent) = next_to(stage, "zoe").await;
    assert_eq!(urgent["reply_to"], "r-urgent", "{urgent:#}");
    for request in &asked {
        stage.answer(request, &success).await;
    }
    let mut answered = 0;
    while answered < MANY {
        let (_, message) = stage.next("an answer").await;
        if message["to_agent"] == "ben" {
            stage.answer(&message, &success).await;
        } else {
            // The answer for which a request waits is given to no other handler, which would report it.
            assert_eq!(message["message_type"], "response", "{message:#}");
            answered += 1;
        }
    }
    // This request comes after all others.
    ask(stage, "r-last", "answer").await;
    let (_, last) = next_to(stage, "zoe").await;
    assert_eq!(last["reply_to"], "r-last", "{last:#}");
}

/// Connects an agent of the Rust library whose handlers wait for ben, and checks that all requests are answered.
async fn rust_handlers_wait(stage: &mut Stage) {
    let builder =
        Agent::builder("ann")
            .durable()
            .on(MessageType::Request, |agent, request| async move {
                let payload: Value = request.payload()?;
                if payload["action"] == "think" {
                    agent
                        .request(AgentId::fixed("ben"), "help", &json!({}))
                        .await?;
                }
                agent.respond(&request, &json!({})).await
            });
    let builder = builder.on_other(|agent, message| async move {
        let stray = json!({ "stray": message.message_id });
        let zoe = Recipient::Agent(AgentId::fixed("zoe"));
        agent
            .publish(&agent.message(zoe, MessageType::InfoUpdate, &stray)?)
            .await
    });
    let agent = builder
        .connect(&stage.broker.url())
        .await
        .expect("it connects");
    check_all_are_answered(stage).await;
    agent.close().await.expect("it is closed");
}

/// Does the same with the Python library.
async fn python_handlers_wait(stage: &mut Stage) {
    let driver = Driver::of("trouble.py", &[&stage.broker.url(), "waiting"]).await;
    check_all_are_answered(stage).await;
    driver.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_handlers_that_wait_do_not_keep_out_what_they_wait_for() {
    rust_handlers_wait(&mut Stage::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_handlers_that_wait_do_not_keep_out_what_they_wait_for() {
    python_handlers_wait(&mut Stage::start().await).await;
}

/// Bounds by which the broker delivers no more messages than there are seats. Its usual bound, a thousand, can be reached as
/// well, by messages that waited while the agent was away.
fn tight_bounds() -> pull::Config {
    pull::Config {
        max_ack_pending: i64::try_from(SEATS).expect("a number"),
        ..pull::Config::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_handlers_have_their_answers_when_the_broker_gives_out_no_more() {
    let mut stage = Stage::start().await;
    make_inbox(&stage, tight_bounds()).await;
    rust_handlers_wait(&mut stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_handlers_have_their_answers_when_the_broker_gives_out_no_more() {
    let mut stage = Stage::start().await;
    make_inbox(&stage, tight_bounds()).await;
    python_handlers_wait(&mut stage).await;
}

/// Sends ann many requests that wait in her inbox and are delivered once: one that she takes and does not begin is lost.
async fn send_many(stage: &Stage) {
    make_inbox(
        stage,
        pull::Config {
            max_deliver: 1,
            ..pull::Config::default()
        },
    )
    .await;
    for number in 0..MANY {
        ask(stage, &format!("r-{number}"), "hold").await;
    }
}

/// Waits until handlers have begun with so many requests; `begun` holds their ids.
async fn wait_until_begun(stage: &mut Stage, begun: &mut BTreeSet<String>, count: usize) {
    while begun.len() < count {
        let (_, message) = next_to(stage, "observer").await;
        begun.insert(message["payload"]["begun"].to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rust_agent_has_not_begun_when_it_goes_stays_with_the_broker() {
    let mut stage = Stage::start().await;
    send_many(&stage).await;
    let gate = Arc::new(Semaphore::new(0));
    let mut begun = BTreeSet::new();
    for count in [SEATS, MANY] {
        let held = Arc::clone(&gate);
        let builder =
            Agent::builder("ann")
                .durable()
                .on(MessageType::Request, move |agent, request| {
                    let held = Arc::clone(&held);
                    async move {
                        let observer = Recipient::Agent(AgentId::fixed("observer"));
                        let begun = json!({ "begun": request.message_id });
                        agent
                            .publish(&agent.message(observer, MessageType::InfoUpdate, &begun)?)
                            .await?;
                        held.acquire().await.map(|_| ()).map_err(Error::handler)
                    }
                });
        let agent = builder
            .connect(&stage.broker.url())
            .await
            .expect("it connects");
        wait_until_begun(&mut stage, &mut begun, count).await;
        // The agent closes first, and then its handlers end.
        let (closed, ()) = tokio::join!(agent.close(), async { gate.add_permits(MANY) });
        closed.expect("it is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_python_agent_has_not_begun_when_it_is_killed_stays_with_the_broker() {
    let mut stage = Stage::start().await;
    send_many(&stage).await;
    let mut begun = BTreeSet::new();
    for count in [SEATS, MANY] {
        let driver = Driver::of("trouble.py", &[&stage.broker.url(), "holding"]).await;
        wait_until_begun(&mut stage, &mut begun, count).await;
        driver.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_is_told_of_and_the_others_go_on() {
    for durable in [false, true] {
        let mut stage = Stage::start().await;
        let builder = Agent::builder("ann").on(MessageType::Request, |agent, request| async move {
            let payload: Value = request.payload()?;
            assert_eq!(payload["action"], "think", "as the test wants it");
            agent.respond(&request, &json!({})).await
        });
        let builder = if durable { builder.durable() } else { builder };
        let agent = builder
            .connect(&stage.broker.url())
            .await
            .expect("it connects");
        let (kind, error) = ask_until_heard(&mut stage, "panic").await;
        assert_eq!(
            (kind.as_str(), &error["payload"]["error_code"]),
            ("error", &json!("INTERNAL_ERROR")),
            "{error:#}"
        );
        ask(&stage, "r-think", "think").await;
        // A request from before may have been heard late.
        while next_to(&mut stage, "zoe").await.0 != "response" {}
        agent.close().await.expect("it is closed");
    }
}

/// Plays the coordinator, which refuses the first registration and takes the second.
async fn refuse_once(stage: &mut Stage) {
    let refusal = json!({ "message_type": "error", "payload": { "error_code": "INTERNAL_ERROR", "error_message": "No." } });
    let success =
        json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
    for answer in [refusal, success] {
        let (_, request) = next_to(stage, "coordinator").await;
        assert_eq!(request["payload"]["action"], "register_agent");
        stage.answer(&request, &answer).await;
    }
}

/// Checks that each request is handled once: the first connection listens no longer.
async fn check_handled_once(stage: &mut Stage) {
    for number in 1..=5 {
        ask(stage, &format!("r-{number}"), "think").await;
        let (_, message) = next_to(stage, "zoe").await;
        assert_eq!(
            (&message["payload"]["result"]["heard"], &message["reply_to"]),
            (&json!(number), &json!(format!("r-{number}")))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_that_could_not_register_listens_no_longer() {
    let mut stage = Stage::start().await;
    let heard = Arc::new(AtomicUsize::new(0));
    let url = stage.broker.url();
    let counted = Arc::clone(&heard);
    let connecting = tokio::spawn(async move {
        let builder = || {
            let counted = Arc::clone(&counted);
            Agent::builder("ann")
                .card(Card::new(AgentId::fixed("ann")))
                .on(MessageType::Request, move |agent, request| {
                    let heard = counted.fetch_add(1, Ordering::SeqCst) + 1;
                    async move { agent.respond(&request, &json!({ "heard": heard })).await }
                })
        };
        let refused = builder().connect(&url).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        builder().connect(&url).await
    });
    refuse_once(&mut stage).await;
    let agent = connecting.await.expect("it runs").expect("it connects");
    check_handled_once(&mut stage).await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_that_could_not_register_listens_no_longer() {
    let mut stage = Stage::start().await;
    let url = stage.broker.url();
    let arguments = [&*url, "retry"];
    let (driver, ()) = tokio::join!(
        Driver::of("trouble.py", &arguments),
        refuse_once(&mut stage)
    );
    check_handled_once(&mut stage).await;
    driver.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_that_connects_again_is_available_and_its_heart_beats() {
    let mut stage = Stage::start().await;
    let url = stage.broker.url();
    let arguments = [&*url, "again"];
    let registered = async {
        for _ in 0..2 {
            let (_, request) = next_to(&mut stage, "coordinator").await;
            assert_eq!(request["payload"]["action"], "register_agent");
            let success = json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
            stage.answer(&request, &success).await;
            let mut beats = 0;
            // The first heartbeat comes at once, and two more as long as the agent stays.
            while beats < 3 {
                let (_, message) = stage.next("a heartbeat, or that it goes").await;
                match (
                    message["status"].as_str(),
                    message["payload"]["action"].as_str(),
                ) {
                    (Some("available"), None) => beats += 1,
                    (Some("unavailable"), None) => {}
                    (None, Some("deregister_agent")) => break,
                    _ => panic!("{message}"),
                }
            }
        }
    };
    let (driver, ()) = tokio::join!(Driver::of("trouble.py", &arguments), registered);
    driver.end().await;
}
