//! Agents that know one word for all answers, `RESPONSE` or `response`, and answer each message of Concord with it.

use async_nats::{Client, Subscriber};
use concord_testkit::{
    Message, TestInstallation, dead_letters, knows_agents, message_bodies, unique, wait_for,
};
use concord_wire::CaseId;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::dialects::PATIENCE;
use crate::dialects::dialect_message::{Incoming, Outgoing};

/// What an agent answers to a question.
type ToQuestion = fn(&Incoming) -> Value;

/// The payload of a response as specification 5 has it.
fn success(result: Value) -> Value {
    json!({ "status": "success", "result": result, "errors": [], "warnings": [] })
}

async fn inbox_of(client: &Client, name: &str) -> Subscriber {
    let inbox = client
        .subscribe(format!("concord.v1.msg.*.*.{name}.*"))
        .await;
    client
        .flush()
        .await
        .expect("the broker has the subscription");
    inbox.expect("the agent subscribes")
}

/// Registers an agent and lets it answer until the test ends.
async fn start(
    client: &Client,
    dialect: &'static str,
    name: &str,
    score: u32,
    to_question: ToQuestion,
) {
    let mut inbox = inbox_of(client, name).await;
    let card = json!({ "agent_id": name, "dialect": dialect });
    Outgoing::request(dialect, (name, "coordinator"), "register_agent", card)
        .publish(client)
        .await;
    let registered = inbox.next().await.expect("the broker is there");
    assert_eq!(Incoming::new(dialect, &registered).kind, "response");
    let (client, name) = (client.clone(), name.to_owned());
    tokio::spawn(async move {
        while let Some(message) = inbox.next().await {
            let asked = Incoming::new(dialect, &message);
            let (to, content) = match asked.kind.as_str() {
                "task_assignment" if asked.content.get("work").is_some() => {
                    ("coordinator", success(json!({ "sum": 3 })))
                }
                "task_assignment" => (
                    "coordinator",
                    success(json!({ "summary": "Found.", "risk_score": score })),
                ),
                "question" => ("debate-facilitator", to_question(&asked)),
                _ => continue,
            };
            let route = (name.as_str(), to);
            let answer = Outgoing::new(dialect, &asked.case, route, "response", content);
            let reply_to = Some(asked.reply_with.clone());
            Outgoing { reply_to, ..answer }.publish(&client).await;
        }
    });
}

fn agrees(asked: &Incoming) -> Value {
    let peer = &asked.content["other_positions"][0]["agent_id"];
    success(json!({ "agrees_with_peer": true, "agrees_with": peer, "reasoning": null }))
}

fn stays(_: &Incoming) -> Value {
    success(json!({ "agrees_with_peer": false, "reasoning": "I have looked again." }))
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_decide_a_case_and_do_a_task() {
    let installation = TestInstallation::start_without_adapter().await;
    installation.free_openers().await;
    let client = installation.client();
    for dialect in ["collaboration", "exchange"] {
        let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
        start(client, dialect, &ann, 20, stays).await;
        start(client, dialect, &ben, 90, agrees).await;
        // The facilitator asks them in the dialects of their cards.
        knows_agents(&installation, PATIENCE).await;
        let opening = json!({
            "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
            "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
        });
        installation.open_case(&opening).await;
        let case_id = CaseId::new(case.as_str()).expect("a case id");
        let decided = installation.decision(&case_id, PATIENCE).await;
        let decision = &decided["decision"];
        assert_eq!(
            (&decision["reason"], &decision["outcome"]["risk_score"]),
            (&json!("settled"), &json!(20.0)),
            "{dialect}: {decision}"
        );
        let opener = unique("opener");
        let mut inbox = inbox_of(client, &opener).await;
        let terms = json!({ "strategy": "round_robin", "task": { "type": "sum" }, "criteria": { "agents": [ann] } });
        Outgoing::request("exchange", (&opener, "coordinator"), "open_task", terms)
            .publish(client)
            .await;
        // The task is acknowledged, and its end is told.
        let has_result = async {
            loop {
                let message = inbox.next().await.expect("the broker is there");
                let said = Incoming::new("exchange", &message);
                if said.content["data"]["result"] == json!({ "sum": 3 }) {
                    return;
                }
            }
        };
        timeout(PATIENCE, has_result).await.expect("the result");
    }
    installation.holds(PATIENCE).await;
    let letters = dead_letters(client).await.expect("the stream can be read");
    assert!(letters.is_empty(), "{letters:?}");
}

/// Waits for the first error that a service sends to an agent.
async fn error_to(client: &Client, from: &str, agent: &str) -> Value {
    let filter = format!("concord.v1.msg.*.{from}.{agent}.error");
    wait_for("an error", PATIENCE, async || {
        let errors = message_bodies(client, &filter).await?;
        errors.first().cloned().ok_or_else(|| "none".to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_says_nothing_known_is_lost() {
    let installation = TestInstallation::start_without_adapter().await;
    installation.free_openers().await;
    let client = installation.client();
    let [case, ann, ben, cyd] = ["case", "ann", "ben", "cyd"].map(unique);
    start(
        client,
        "exchange",
        &ann,
        20,
        |_| json!({ "stance": "reject" }),
    )
    .await;
    start(client, "exchange", &ben, 90, agrees).await;
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    let error = error_to(client, "debate-facilitator", &ann)
        .await
        .to_string();
    assert!(error.contains("revised_position"), "{error}");
    // A status that is none, and a response that is none of what was asked for.
    for (kind, payload) in [
        (
            "response",
            json!({ "status": "failure", "result": { "accepted": false } }),
        ),
        ("status", json!({ "status": "working" })),
    ] {
        Message::new("_", &cyd, "coordinator", kind, payload)
            .publish(client)
            .await;
    }
    let error = error_to(client, "coordinator", &cyd).await;
    assert_eq!(
        error["payload"]["details"]["pointer"], "/payload/status",
        "{error:#}"
    );
    let error = error.to_string();
    assert!(error.contains("available, busy, unavailable"), "{error}");
}
