//! Requests of agents to agents: each ends in exactly one of response or error.

use std::time::Duration;

use async_nats::Client;
use concord_testkit::{Agent, Message, TestInstallation, event_data, settled, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{
    answer_to, answers_to, card, fails, fails_at, in_millis, names, register, request,
    requests_with, response, to_coordinator, wait_for_status,
};

/// The response of `from` to a request that `asker` sent.
fn answer(asker: &str, asked: &Message, from: &str) -> Message {
    let request = json!({ "from_agent": asker, "message_id": asked.id() });
    response(&request, from)
}

/// Starts an agent that answers every request at once.
async fn start_eager(client: &Client, name: &str) -> Agent {
    Agent::start(client, name, |heard| match heard.kind() {
        "request" => vec![response(&heard.body, &heard.agent)],
        _ => Vec::new(),
    })
    .await
}

fn has_suggestions(error: &Value) -> bool {
    !error["recovery_suggestions"].as_array().unwrap().is_empty()
}

/// The recorded answer is that of `by` to this request.
fn check_answered(event: &Value, asked: &Message, by: &str) {
    assert_eq!(
        (&event["request"]["request_id"], &event["answer"]["by"]),
        (&json!(asked.id()), &json!(by))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_request_ends_with_its_answer_and_one_that_nobody_answers_with_a_timeout() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob, mute] = names(["ann", "bob", "mute"]);
    let _bob = start_eager(client, &bob).await;

    let good = request(&ann, &bob, "run_tests", json!({ "test_suite": "unit" }));
    good.publish(client).await;
    assert_eq!(answer_to(client, &good).await.0, "response");
    let answered = requests_with(&installation, "answered", 1).await;
    check_answered(&answered[0], &good, &bob);

    // The answers of some dialects do not say how it went; the asker has them already.
    let odd = request(&ann, &mute, "ponder", json!({ "about": "forms" }));
    odd.publish(client).await;
    let payload = json!({ "content": ["as it is"] });
    Message::new("_", &mute, &ann, "response", payload)
        .with("/correlation_id", json!(odd.id()))
        .publish(client)
        .await;
    let answered = requests_with(&installation, "answered", 2).await;
    check_answered(&answered[1], &odd, &mute);
    // Nor need they be called so.
    for (place, kind) in ["task_result", "refuse"].into_iter().enumerate() {
        let asked = request(&ann, &mute, "ponder", json!({ "as": kind }));
        asked.publish(client).await;
        Message::new("_", &mute, &ann, kind, json!({ "why": "As it is." }))
            .with("/reply_to", json!(asked.id()))
            .publish(client)
            .await;
        let answered = requests_with(&installation, "answered", 3 + place).await;
        check_answered(&answered[2 + place], &asked, &mute);
    }

    let lost = request(&ann, &mute, "ponder", json!({})).with("/deadline", json!(in_millis(700)));
    let error = fails(client, &lost, "TIMEOUT").await;
    assert!(has_suggestions(&error), "{error}");
    // The answer comes after all.
    let late = answer(&ann, &lost, &mute);
    late.publish(client).await;
    let recorded = requests_with(&installation, "answered_late", 1).await;
    assert_eq!(recorded[0]["answer"]["message_id"], json!(late.id()));

    settled(client, PATIENCE).await.unwrap();
    for message in [&good, &lost] {
        let from_others =
            answers_to(client, message).await.len() - usize::from(message.id() == lost.id());
        assert_eq!(
            from_others, 1,
            "each has one ending, besides the late answer"
        );
    }
    installation.holds(PATIENCE).await;
}

/// Requests that fail at once, each with the code of the error and the place that it names.
fn impossible(ann: &str, bob: &str, gone: &str) -> [(Message, &'static str, &'static str); 8] {
    let too_many = vec![json!({ "action": "x" }); 101];
    let plain = || request(ann, bob, "x", json!({}));
    let review = |parameters: Value| request(ann, bob, "review_code", parameters);
    let past = json!("2020-01-01T00:00:00Z");
    let strange = json!("ftp://example.org");
    [
        (
            review(json!({ "files": [] })),
            "INVALID_REQUEST",
            "/payload/parameters/review_type",
        ),
        (
            review(json!({ "files": [], "review_type": "taste" })),
            "INVALID_REQUEST",
            "/payload/parameters/review_type",
        ),
        (
            request(ann, bob, " ", json!({})),
            "INVALID_REQUEST",
            "/payload/action",
        ),
        (plain().with("/deadline", past), "TIMEOUT", "/deadline"),
        (
            plain().with("/payload/callback_url", strange),
            "INVALID_REQUEST",
            "/payload/callback_url",
        ),
        (
            request(ann, gone, "x", json!({})),
            "AGENT_UNAVAILABLE",
            "/to_agent",
        ),
        (
            request(ann, bob, "batch", json!({ "requests": [] })),
            "INVALID_REQUEST",
            "/payload/parameters/requests",
        ),
        (
            request(ann, bob, "batch", json!({ "requests": too_many })),
            "CAPACITY_EXCEEDED",
            "/payload/parameters/requests",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_carried_out_fails_at_once_with_its_place() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob, gone, eve] = names(["ann", "bob", "gone", "eve"]);
    register(&installation, &gone, &json!({})).await;
    let retires = json!({ "status": "unavailable", "why": "retired" });
    Message::new("_", &gone, "coordinator", "status", retires)
        .publish(client)
        .await;
    wait_for_status(&installation, &gone, Some("unavailable")).await;

    for (message, code, pointer) in impossible(&ann, &bob, &gone) {
        let error = fails_at(client, &message, code, pointer).await;
        assert!(has_suggestions(&error), "{error}");
    }
    // An agent that was not asked cannot end a request.
    let open = request(&ann, &bob, "x", json!({}));
    open.publish(client).await;
    requests_with(&installation, "opened", 1).await;
    fails(client, &answer(&ann, &open, &eve), "UNAUTHORIZED").await;
    answer(&ann, &open, &bob).publish(client).await;
    requests_with(&installation, "answered", 1).await;
    installation.holds(PATIENCE).await;
}

/// An action that an agent names on its card, with the schema of its parameters.
fn translate() -> Value {
    json!({
        "name": "translate", "description": "Translates a text.", "result": { "type": "object" },
        "parameters": {
            "type": "object", "required": ["text", "to"], "additionalProperties": false,
            "properties": { "text": { "type": "string", "minLength": 1 }, "to": { "enum": ["de", "fr"] } },
        },
    })
}

/// Lists of actions that no card may have, each with the place of the fault in the request that brings the card.
fn bad_actions() -> [(Value, &'static str); 2] {
    let slow = json!({ "properties": { "a": { "pattern": "(a+)+$" } } });
    [
        (
            json!([{ "name": "run_tests", "parameters": {} }]),
            "/payload/parameters/actions/0/name",
        ),
        (
            json!([{ "name": "x", "parameters": slow }]),
            "/payload/parameters/actions/0/parameters/properties/a/pattern",
        ),
    ]
}

/// Requests whose parameters do not fit [`translate`], each with the place of the fault.
fn bad_parameters() -> [(&'static str, Value, &'static str); 5] {
    let batched = json!({ "action": "translate", "parameters": { "text": 1, "to": "de" } });
    [
        (
            "translate",
            json!({ "text": "Hello" }),
            "/payload/parameters",
        ),
        (
            "translate",
            json!({ "text": "Hello", "to": "it" }),
            "/payload/parameters/to",
        ),
        (
            "translate",
            json!({ "text": "", "to": "de" }),
            "/payload/parameters/text",
        ),
        (
            "translate",
            json!({ "text": "Hello", "to": "de", "tone": "kind" }),
            "/payload/parameters/tone",
        ),
        (
            "batch",
            json!({ "requests": [batched] }),
            "/payload/parameters/requests/0/parameters/text",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_registers_actions_and_what_does_not_fit_them_is_refused_at_its_place() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let register = |actions: Value| {
        let card = card(&bob, &json!({ "actions": actions }));
        to_coordinator(&bob, "register_agent", card)
    };
    for (actions, pointer) in bad_actions() {
        fails_at(client, &register(actions), "INVALID_REQUEST", pointer).await;
    }
    let enters = register(json!([translate()]));
    enters.publish(client).await;
    assert_eq!(answer_to(client, &enters).await.0, "response");
    wait_for_status(&installation, &bob, Some("available")).await;
    let listed = installation
        .ask(Service::Coordinator, "agents", &Value::Null)
        .await
        .unwrap();
    let mut listed = listed.as_array().unwrap().iter();
    let listed = listed.find(|one| one["agent_id"] == json!(bob)).unwrap();
    assert_eq!(
        listed["actions"],
        json!([translate()]),
        "it is kept as it was written"
    );

    for (action, parameters, pointer) in bad_parameters() {
        let wrong = request(&ann, &bob, action, parameters);
        fails_at(client, &wrong, "INVALID_REQUEST", pointer).await;
    }
    // A request that fits reaches the agent; actions that the card does not name are between the agents.
    let fitting = json!({ "text": "Hello", "to": "de" });
    for good in [
        request(&ann, &bob, "translate", fitting),
        request(&ann, &bob, "ponder", json!({ "text": 1 })),
    ] {
        good.publish(client).await;
        requests_with(&installation, "opened", 1).await;
        answer(&ann, &good, &bob).publish(client).await;
        assert_eq!(answer_to(client, &good).await.0, "response");
    }
    requests_with(&installation, "answered", 2).await;
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_callback_is_acknowledged_and_its_completion_is_told() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let slow = request(&ann, &bob, "train", json!({}))
        .with("/payload/callback_url", json!("https://example.org/done"));
    slow.publish(client).await;
    requests_with(&installation, "opened", 1).await;
    Message::new("_", &bob, &ann, "acknowledgement", json!({}))
        .with("/correlation_id", json!(slow.id()))
        .publish(client)
        .await;
    requests_with(&installation, "acknowledged", 1).await;
    answer(&ann, &slow, &bob).publish(client).await;
    let (_, notification) = wait_for("the completion to be told", PATIENCE, async || {
        let answers = answers_to(client, &slow).await;
        let mut notifications = answers
            .into_iter()
            .filter(|(kind, _)| kind == "notification");
        notifications.next().ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let result = &notification["data"]["payload"]["result"];
    assert_eq!(
        (notification["event"].as_str(), &result["done"]),
        (Some("request_completed"), &json!(true))
    );
    installation.holds(PATIENCE).await;
}

/// Sends so many requests, each third to an agent that never answers, and kills processes meanwhile: the requests, and
/// whether nobody answers them.
async fn send_under_kills(
    installation: &TestInstallation,
    count: usize,
    [ann, bob, mute]: [&str; 3],
) -> Vec<(Message, bool)> {
    let mut sent = Vec::new();
    for number in 0..count {
        // Who answers does so at once; a slow machine may still need longer than nobody's answer is waited for.
        let (to, millis) = match number % 3 {
            0 => (mute, 3_000),
            _ => (bob, 12_000),
        };
        let message = request(ann, to, "x", json!({ "number": number }))
            .with("/deadline", json!(in_millis(millis)));
        message.publish(installation.client()).await;
        sent.push((message, to == mute));
        if number % 40 == 20 {
            let service = if number % 80 == 20 {
                Service::Coordinator
            } else {
                Service::EscalationTimer
            };
            let replica = number / 40 % 2;
            installation.kill(service, replica).unwrap();
            installation.launch(service, replica).unwrap();
        }
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_ends_once_whoever_is_killed_meanwhile() {
    const REQUESTS: usize = 200;
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_replicas(Service::Coordinator, 2)
            .with_replicas(Service::EscalationTimer, 2)
    })
    .await;
    let client = installation.client();
    let [ann, bob, mute] = names(["ann", "bob", "mute"]);
    let _bob = start_eager(client, &bob).await;
    let sent = send_under_kills(&installation, REQUESTS, [&ann, &bob, &mute]).await;

    let what = "every request to have ended";
    let (answered, failed) = wait_for(what, Duration::from_secs(120), async || {
        let answered = event_data(client, "request.*.answered").await?.len();
        let failed = event_data(client, "request.*.failed").await?.len();
        if answered + failed == REQUESTS {
            Ok((answered, failed))
        } else {
            Err(format!("{answered} and {failed}"))
        }
    })
    .await;
    let expected = sent.iter().filter(|(_, unanswered)| *unanswered).count();
    assert_eq!(
        (answered, failed),
        (REQUESTS - expected, expected),
        "who answered in time has answered"
    );
    settled(client, PATIENCE).await.unwrap();
    for (message, unanswered) in &sent {
        let answers = answers_to(client, message).await;
        let kinds: Vec<&str> = answers.iter().map(|(kind, _)| kind.as_str()).collect();
        let expected = if *unanswered { "error" } else { "response" };
        assert_eq!(kinds, [expected], "{}", message.id());
    }
    installation.holds(PATIENCE).await;
}
