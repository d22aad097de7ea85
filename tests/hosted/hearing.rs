//! The parties of a debate hear each other's answers; being told is no question.

use std::sync::{Arc, Mutex};

use concord_testkit::{Agent, Message, message_bodies, unique};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Server, Stage};

type Heard = Arc<Mutex<Vec<Value>>>;

/// An agent that keeps its position, remembers what it is told, and answers even that.
async fn talkative(stage: &Stage, name: &str, risk: u32, heard: &Heard) -> Agent {
    let (client, heard) = (stage.installation.client(), Arc::clone(heard));
    Agent::start(client, name, move |message| match message.kind() {
        "task_assignment" => vec![message.finding(
            json!({ "summary": "So I see it.", "risk_score": risk }),
            0.8,
        )],
        "question" => vec![message.answer("disagreement", json!({ "reasoning": "I stay." }))],
        "agreement" | "disagreement" => {
            heard.lock().expect("no panic").push(message.body.clone());
            let told = message.body["message_id"].as_str().expect("an id");
            let words = json!({ "reasoning": "I heard you." });
            vec![Message::answer(
                message.case(),
                &message.agent,
                "disagreement",
                told,
                words,
            )]
        }
        _ => Vec::new(),
    })
    .await
}

/// The parties that an agent has heard of, with what it was told.
fn told(heard: &Heard) -> Vec<(String, String, u64)> {
    let mut told: Vec<_> = heard
        .lock()
        .expect("no panic")
        .iter()
        .map(|body| {
            let payload = &body["payload"];
            assert_eq!(body["from_agent"], "debate-facilitator");
            assert!(body["requires_response"] == false && body["reply_to"].is_null());
            assert!(payload["confidence"].is_number() && payload["reasoning"].is_string());
            (
                payload["answered_by"].as_str().expect("a party").to_owned(),
                body["message_type"].as_str().expect("a type").to_owned(),
                body["round"].as_u64().expect("a round"),
            )
        })
        .collect();
    told.sort();
    told.dedup();
    told
}

/// What a party is told that hears both others disagree in both rounds.
fn expected(others: [&str; 2]) -> Vec<(String, String, u64)> {
    let mut rows: Vec<_> = others
        .iter()
        .flat_map(|other| {
            [1, 2].map(|round| ((*other).to_owned(), "disagreement".to_owned(), round))
        })
        .collect();
    rows.sort();
    rows
}

/// The notifications that it was sent, by event.
fn notifications(server: &Server) -> Vec<Value> {
    let calls = server.received().into_iter().map(|call| call.body);
    let mut told: Vec<Value> = calls
        .filter(|body| body["message_type"] == "notification")
        .collect();
    told.sort_by_key(|body| body["payload"]["event"].to_string());
    told
}

/// Waits until it was told how its debate has ended, which may be after the decision, and what was decided.
async fn wait_for_the_end(server: &Server) {
    let end = "the hosted agent to be told how its debate has ended and what was decided";
    concord_testkit::wait_for(end, PATIENCE, async || match notifications(server).len() {
        0 | 1 => Err("not yet".to_owned()),
        _ => Ok(()),
    })
    .await;
}

/// It was told once what its case has decided, and once how its debate has ended, which the parties have voted on.
fn check_end(server: &Server, case: &str) {
    let told = notifications(server);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["payload"]["event"], "case_decided");
    let decision = &told[0]["payload"]["data"]["decision"];
    assert_eq!(
        (&told[0]["case_id"], decision.is_object()),
        (&json!(case), true)
    );
    let told = &told[1..];
    let (event, status) = (
        &told[0]["payload"]["event"],
        &told[0]["payload"]["data"]["outcome"]["status"],
    );
    assert_eq!((event, status), (&json!("debate_resolved"), &json!("vote")));
    assert_eq!(told[0]["priority"], "high");
}

#[tokio::test]
async fn parties_hear_each_other_and_a_hosted_agent_is_not_called_by_that() {
    let server = Server::start(|received| async move {
        let (kind, payload) = match received.body["message_type"].as_str() {
            Some("task_assignment") => (
                "finding",
                json!({ "summary": "In between.", "risk_score": 50 }),
            ),
            _ => ("disagreement", json!({ "reasoning": "So do I." })),
        };
        let metadata = json!({ "confidence": 0.7 });
        let answer = json!({ "message_type": kind, "payload": payload, "metadata": metadata });
        (200, answer.to_string())
    })
    .await;
    let [low, high, hosted] = ["low", "high", "hosted"].map(unique);
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{hosted}\"\nhttp = {{ url = \"{}/agent\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let [heard_low, heard_high] = [Heard::default(), Heard::default()];
    let _low = talkative(&stage, &low, 10, &heard_low).await;
    let _high = talkative(&stage, &high, 90, &heard_high).await;
    let opening = json!({
        "participants": [low, high, hosted], "task": { "type": "t", "title": "t", "input": {} },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let case = stage.installation.open_case(&opening).await;
    stage.installation.decision(&case, PATIENCE).await;

    let both = "each party to hear both others in both rounds";
    concord_testkit::wait_for(both, PATIENCE, async || {
        let (low_heard, high_heard) = (told(&heard_low), told(&heard_high));
        if low_heard == expected([&high, &hosted]) && high_heard == expected([&low, &hosted]) {
            Ok(())
        } else {
            Err(format!("{low_heard:?} {high_heard:?}"))
        }
    })
    .await;

    wait_for_the_end(&server).await;
    stage.wait_until_done(&hosted).await;
    let client = stage.installation.client();
    let said = message_bodies(client, &format!("concord.v1.msg.{case}.*.{hosted}.*")).await;
    let kinds: Vec<_> = said
        .expect("the messages")
        .iter()
        .map(|body| body["message_type"].clone())
        .collect();
    let count = |kind: &str| kinds.iter().filter(|one| **one == kind).count();
    assert_eq!(
        (count("question"), count("disagreement")),
        (2, 4),
        "{kinds:?}"
    );
    let calls: Vec<_> = server
        .received()
        .iter()
        .map(|call| call.body["message_type"].clone())
        // It is told how the debate has ended, and what was decided.
        .filter(|kind| *kind != "notification")
        .collect();
    assert_eq!(calls, ["task_assignment", "question", "question"]);
    check_end(&server, case.as_str());
    stage.installation.holds(PATIENCE).await;
}
