//! Handlers that wait for answers, that panic, and an agent whose first connection fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use concord_agent::{Agent, AgentId, Card, Error, MessageType};
use serde_json::{Value, json};

use crate::conformance::Said;
use crate::python::Driver;
use crate::stage::Stage;

/// More than a durable inbox works on at a time.
const MANY: usize = 40;
/// As many as it does.
const SEATS: usize = 32;

async fn ask(stage: &Stage, id: &str, action: &str) {
    let message = json!({
        "message_id": id, "from_agent": "zoe", "to_agent": "ann", "message_type": "request", "requires_response": true,
        "payload": { "action": action, "parameters": {} },
    });
    stage
        .say(&Said { subject: "concord.v1.msg._.zoe.ann.request".into(), message, ..Said::default() }, json!({}))
        .await;
}

/// What ann says next, to whom: the type and the message.
async fn said(stage: &mut Stage, to: &str) -> (String, Value) {
    loop {
        let (subject, message) = stage.next("an answer").await;
        if message["to_agent"] == to {
            return (subject.rsplit('.').next().expect("a type").to_owned(), message);
        }
    }
}

/// Every handler asks ben, who answers nobody before all have a seat.
async fn all_are_answered(stage: &mut Stage) {
    for number in 0..MANY {
        ask(stage, &format!("r-{number}"), "think").await;
    }
    let success = json!({ "message_type": "response", "payload": { "status": "success", "result": { "x": 1 } } });
    let mut asked = Vec::new();
    while asked.len() < SEATS {
        asked.push(said(stage, "ben").await.1);
    }
    for request in &asked {
        stage.answer(request, &success).await;
    }
    let mut answered = 0;
    while answered < MANY {
        let (_, message) = stage.next("an answer").await;
        if message["to_agent"] == "ben" {
            stage.answer(&message, &success).await;
        } else {
            assert_eq!(message["message_type"], "response", "{message:#}");
            answered += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_handlers_that_wait_do_not_keep_out_what_they_wait_for() {
    let mut stage = Stage::start().await;
    let builder = Agent::builder("ann").durable().on(MessageType::Request, |agent, request| async move {
        let result = agent.request(AgentId::fixed("ben"), "help", &json!({})).await?;
        agent.respond(&request, &result).await
    });
    let agent = builder.connect(&stage.broker.url()).await.expect("it connects");
    all_are_answered(&mut stage).await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn python_handlers_that_wait_do_not_keep_out_what_they_wait_for() {
    let mut stage = Stage::start().await;
    let driver = Driver::of("trouble.py", &[&stage.broker.url(), "waiting"]).await;
    all_are_answered(&mut stage).await;
    driver.end().await;
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
        let agent = builder.connect(&stage.broker.url()).await.expect("it connects");
        ask(&stage, "r-1", "panic").await;
        let (kind, error) = said(&mut stage, "zoe").await;
        assert_eq!((kind.as_str(), &error["payload"]["error_code"]), ("error", &json!("INTERNAL_ERROR")), "{error:#}");
        ask(&stage, "r-2", "think").await;
        assert_eq!(said(&mut stage, "zoe").await.0, "response");
        agent.close().await.expect("it is closed");
    }
}

/// The coordinator refuses the first registration and takes the second.
async fn refuses_once(stage: &mut Stage) {
    let refusal =
        json!({ "message_type": "error", "payload": { "error_code": "INTERNAL_ERROR", "error_message": "No." } });
    let success = json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
    for answer in [refusal, success] {
        let (_, request) = said(stage, "coordinator").await;
        assert_eq!(request["payload"]["action"], "register_agent");
        stage.answer(&request, &answer).await;
    }
}

/// Each request is handled once: the first connection listens no longer.
async fn hears_once(stage: &mut Stage) {
    for number in 1..=5 {
        ask(stage, &format!("r-{number}"), "think").await;
        let (_, message) = said(stage, "zoe").await;
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
    let (url, counted) = (stage.broker.url(), Arc::clone(&heard));
    let connecting = tokio::spawn(async move {
        let builder = || {
            let counted = Arc::clone(&counted);
            Agent::builder("ann").card(Card::new(AgentId::fixed("ann"))).on(
                MessageType::Request,
                move |agent, request| {
                    let heard = counted.fetch_add(1, Ordering::SeqCst) + 1;
                    async move { agent.respond(&request, &json!({ "heard": heard })).await }
                },
            )
        };
        let refused = builder().connect(&url).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        builder().connect(&url).await
    });
    refuses_once(&mut stage).await;
    let agent = connecting.await.expect("it runs").expect("it connects");
    hears_once(&mut stage).await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_agent_that_could_not_register_listens_no_longer() {
    let mut stage = Stage::start().await;
    let url = stage.broker.url();
    let arguments = [&*url, "retry"];
    let (driver, ()) = tokio::join!(Driver::of("trouble.py", &arguments), refuses_once(&mut stage));
    hears_once(&mut stage).await;
    driver.end().await;
}
