//! Requests: each ends in exactly one of response or error.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concord_testkit::{Agent, Message, TestInstallation, settled, until};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{answer_to, answers_to, becomes, card, facts, names, start, to_coordinator};

fn in_millis(millis: u64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_millis(i64::try_from(now.as_millis()).unwrap()).plus_millis(millis)
}

fn request(from: &str, to: &str, action: &str, parameters: Value) -> Message {
    Message::new(
        "_",
        from,
        to,
        "request",
        json!({ "action": action, "parameters": parameters }),
    )
}

fn response(to: &Value, from: &str) -> Message {
    let asker = to["from_agent"].as_str().unwrap();
    Message::new(
        "_",
        from,
        asker,
        "response",
        json!({ "status": "success", "result": { "done": true } }),
    )
    .with("/correlation_id", to["message_id"].clone())
}

/// An agent that answers every request at once.
async fn eager(installation: &TestInstallation, name: &str) -> Agent {
    let me = name.to_owned();
    Agent::start(installation.client(), name, move |heard| {
        match heard.kind() {
            "request" => vec![response(&heard.body, &me)],
            _ => Vec::new(),
        }
    })
    .await
}

async fn ended(installation: &TestInstallation, fact: &str, count: usize) -> Vec<Value> {
    let found = until(
        format!("{count} requests to be {fact}"),
        PATIENCE,
        async || {
            let facts = facts(installation.client(), "request", fact).await;
            if facts.len() >= count {
                Ok(facts)
            } else {
                Err(format!("{} are", facts.len()))
            }
        },
    );
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_request_ends_with_its_answer_and_one_that_nobody_answers_with_a_timeout() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob, mute] = names(["ann", "bob", "mute"]);
    let _bob = eager(&installation, &bob).await;

    let good = request(&ann, &bob, "run_tests", json!({ "test_suite": "unit" }));
    good.publish(client).await;
    assert_eq!(answer_to(client, &good).await.0, "response");
    let answered = ended(&installation, "answered", 1).await;
    assert_eq!(
        (
            &answered[0]["request"]["request_id"],
            &answered[0]["answer"]["by"]
        ),
        (&json!(good.id()), &json!(bob))
    );

    // Not every dialect's answers say how it went; whoever asked has them already.
    let odd = request(
        &ann,
        &mute,
        "ponder",
        json!({ "about": "the form of answers" }),
    );
    odd.publish(client).await;
    let answer = Message::new(
        "_",
        &mute,
        &ann,
        "response",
        json!({ "content": ["as it is"] }),
    );
    answer
        .with("/correlation_id", json!(odd.id()))
        .publish(client)
        .await;
    let answered = ended(&installation, "answered", 2).await;
    assert_eq!(
        (
            &answered[1]["request"]["request_id"],
            &answered[1]["answer"]["by"]
        ),
        (&json!(odd.id()), &json!(mute))
    );

    let lost = request(&ann, &mute, "ponder", json!({})).with("/deadline", json!(in_millis(700)));
    lost.publish(client).await;
    let (kind, told) = answer_to(client, &lost).await;
    assert_eq!(
        (kind.as_str(), told["error_code"].as_str()),
        ("error", Some("TIMEOUT")),
        "{told}"
    );
    assert!(
        !told["recovery_suggestions"].as_array().unwrap().is_empty(),
        "{told}"
    );
    // The answer comes after all.
    let late = response(
        &json!({ "from_agent": ann, "message_id": lost.id() }),
        &mute,
    );
    late.publish(client).await;
    let recorded = ended(&installation, "answered_late", 1).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_carried_out_fails_at_once_with_its_place() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob, gone, eve] = names(["ann", "bob", "gone", "eve"]);
    let enter = to_coordinator(&gone, "register_agent", card(&gone, &json!({})));
    enter.publish(client).await;
    becomes(&installation, &gone, Some("available")).await;
    Message::new(
        "_",
        &gone,
        "coordinator",
        "status",
        json!({ "status": "unavailable", "why": "retired" }),
    )
    .publish(client)
    .await;
    becomes(&installation, &gone, Some("unavailable")).await;

    for (message, code, pointer) in [
        (
            request(&ann, &bob, "review_code", json!({ "files": [] })),
            "INVALID_REQUEST",
            "/payload/parameters",
        ),
        (
            request(
                &ann,
                &bob,
                "review_code",
                json!({ "files": [], "review_type": "taste" }),
            ),
            "INVALID_REQUEST",
            "/payload/parameters/review_type",
        ),
        (
            request(&ann, &bob, " ", json!({})),
            "INVALID_REQUEST",
            "/payload/action",
        ),
        (
            request(&ann, &bob, "x", json!({})).with("/deadline", json!("2020-01-01T00:00:00Z")),
            "TIMEOUT",
            "/deadline",
        ),
        (
            request(&ann, &bob, "x", json!({}))
                .with("/payload/callback_url", json!("ftp://example.org")),
            "INVALID_REQUEST",
            "/payload/callback_url",
        ),
        (
            request(&ann, &gone, "x", json!({})),
            "AGENT_UNAVAILABLE",
            "/to_agent",
        ),
        (
            request(&ann, &bob, "batch", json!({ "requests": [] })),
            "CAPACITY_EXCEEDED",
            "/payload/parameters/requests",
        ),
    ] {
        message.publish(client).await;
        let (kind, told) = answer_to(client, &message).await;
        assert_eq!(
            (kind.as_str(), told["error_code"].as_str()),
            ("error", Some(code)),
            "{told}"
        );
        assert_eq!(told["details"]["pointer"], pointer, "{told}");
        assert!(
            !told["recovery_suggestions"].as_array().unwrap().is_empty(),
            "{told}"
        );
    }
    // Whoever was not asked cannot end it.
    let open = request(&ann, &bob, "x", json!({}));
    open.publish(client).await;
    ended(&installation, "opened", 1).await;
    let meddled = response(&json!({ "from_agent": ann, "message_id": open.id() }), &eve);
    meddled.publish(client).await;
    let (kind, told) = answer_to(client, &meddled).await;
    assert_eq!(
        (kind.as_str(), told["error_code"].as_str()),
        ("error", Some("UNAUTHORIZED")),
        "{told}"
    );
    response(&json!({ "from_agent": ann, "message_id": open.id() }), &bob)
        .publish(client)
        .await;
    ended(&installation, "answered", 1).await;
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_registers_actions_and_what_does_not_fit_them_is_refused_at_its_place() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let translate = json!({
        "name": "translate", "description": "Translates a text.", "result": { "type": "object" },
        "parameters": {
            "type": "object", "required": ["text", "to"], "additionalProperties": false,
            "properties": { "text": { "type": "string", "minLength": 1 }, "to": { "enum": ["de", "fr"] } },
        },
    });
    let register = |actions: Value| {
        to_coordinator(
            &bob,
            "register_agent",
            card(&bob, &json!({ "actions": actions })),
        )
    };
    for (actions, pointer) in [
        (
            json!([{ "name": "run_tests", "parameters": {} }]),
            "/payload/parameters/actions/0/name",
        ),
        (
            json!([{ "name": "x", "parameters": { "properties": { "a": { "pattern": "(a+)+$" } } } }]),
            "/payload/parameters/actions/0/parameters/properties/a/pattern",
        ),
    ] {
        let refused = register(actions);
        refused.publish(client).await;
        let (kind, told) = answer_to(client, &refused).await;
        assert_eq!(
            (kind.as_str(), told["error_code"].as_str()),
            ("error", Some("INVALID_REQUEST")),
            "{told}"
        );
        assert_eq!(told["details"]["pointer"], pointer, "{told}");
    }
    let enters = register(json!([translate]));
    enters.publish(client).await;
    assert_eq!(answer_to(client, &enters).await.0, "response");
    becomes(&installation, &bob, Some("available")).await;
    let listed = installation
        .ask(Service::Coordinator, "agents", &Value::Null)
        .await
        .unwrap();
    let listed = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["agent_id"] == json!(bob))
        .unwrap();
    assert_eq!(
        listed["actions"],
        json!([translate]),
        "it is kept as it was written"
    );

    for (action, parameters, pointer) in [
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
            json!({ "requests": [{ "action": "translate", "parameters": { "text": 1, "to": "de" } }] }),
            "/payload/parameters/requests/0/parameters/text",
        ),
    ] {
        let wrong = request(&ann, &bob, action, parameters);
        wrong.publish(client).await;
        let (kind, told) = answer_to(client, &wrong).await;
        assert_eq!(
            (kind.as_str(), told["error_code"].as_str()),
            ("error", Some("INVALID_REQUEST")),
            "{told}"
        );
        assert_eq!(told["details"]["pointer"], pointer, "{told}");
    }
    // What fits is asked, and what the card does not name is between the agents.
    for good in [
        request(
            &ann,
            &bob,
            "translate",
            json!({ "text": "Hello", "to": "de" }),
        ),
        request(&ann, &bob, "ponder", json!({ "text": 1 })),
    ] {
        good.publish(client).await;
        ended(&installation, "opened", 1).await;
        response(&json!({ "from_agent": ann, "message_id": good.id() }), &bob)
            .publish(client)
            .await;
        assert_eq!(answer_to(client, &good).await.0, "response");
    }
    ended(&installation, "answered", 2).await;
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_callback_is_acknowledged_and_its_completion_is_told() {
    let installation = start().await;
    let client = installation.client();
    let [ann, bob] = names(["ann", "bob"]);
    let slow = request(&ann, &bob, "train", json!({}))
        .with("/payload/callback_url", json!("https://example.org/done"));
    slow.publish(client).await;
    ended(&installation, "opened", 1).await;
    let acknowledged = Message::new("_", &bob, &ann, "acknowledgement", json!({}))
        .with("/correlation_id", json!(slow.id()));
    acknowledged.publish(client).await;
    ended(&installation, "acknowledged", 1).await;
    response(&json!({ "from_agent": ann, "message_id": slow.id() }), &bob)
        .publish(client)
        .await;
    let completed = until("the completion to be told", PATIENCE, async || {
        let answers = answers_to(client, &slow).await;
        answers
            .into_iter()
            .find(|(kind, _)| kind == "notification")
            .ok_or_else(|| "it is not".to_owned())
    });
    let (_, told) = completed.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (
            told["event"].as_str(),
            &told["data"]["payload"]["result"]["done"]
        ),
        (Some("request_completed"), &json!(true))
    );
    installation.holds(PATIENCE).await;
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
    let _bob = eager(&installation, &bob).await;
    let mut sent = Vec::new();
    for number in 0..REQUESTS {
        let to = if number % 3 == 0 { &mute } else { &bob };
        let message = request(&ann, to, "x", json!({ "number": number }))
            .with("/deadline", json!(in_millis(3_000)));
        message.publish(client).await;
        sent.push((message, to == &mute));
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
    let all = until(
        "every request to have ended",
        Duration::from_secs(120),
        async || {
            let answered = facts(client, "request", "answered").await.len();
            let failed = facts(client, "request", "failed").await.len();
            if answered + failed == REQUESTS {
                Ok((answered, failed))
            } else {
                Err(format!("{answered} and {failed}"))
            }
        },
    );
    let (answered, failed) = all.await.unwrap_or_else(|error| panic!("{error}"));
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
        assert_eq!(
            kinds,
            [if *unanswered { "error" } else { "response" }],
            "{}",
            message.id()
        );
    }
    installation.holds(PATIENCE).await;
}
