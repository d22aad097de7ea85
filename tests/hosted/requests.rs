//! Requests to hosted agents: acknowledged when they have a callback, ended once, and not carried out when they are refused.

use concord_testkit::{
    Message, event_data, events, http_post, message_bodies, settled, unique, wait_for,
};
use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Server, Stage, callback_settings};

const DONE: &str =
    r#"{"message_type":"response","payload":{"status":"success","result":{"done":true}}}"#;

/// Starts a stage with one agent that is a server.
async fn start_hosting(agent: &str, server: &Server) -> Stage {
    let url = &server.url;
    let settings =
        format!("[[service.agents]]\nagent_id = \"{agent}\"\nhttp = {{ url = \"{url}/x\" }}\n");
    Stage::start(1, &settings).await
}

fn request(stage: &Stage, agent: &str, payload: Value) -> Message {
    Message::new("_", &stage.asker, agent, "request", payload)
}

/// A deadline that passes before the agents of these tests answer, and after everything else that is asked of them.
fn soon() -> Timestamp {
    let now = concord_runtime::service::clock::now().unix_millis();
    Timestamp::from_unix_millis(now + 8_000)
}

/// Each answer that the asker was given: its type, and the message that it answers.
async fn answers(stage: &Stage) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answers = stage.answers().await.unwrap();
    answers
        .iter()
        .map(|answer| (text(&answer["message_type"]), text(&answer["reply_to"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_callback_is_acknowledged_before_the_agent_answers() {
    let (release, released) = tokio::sync::watch::channel(false);
    let server = Server::start(move |_| {
        let mut released = released.clone();
        async move {
            let _ = released.wait_for(|released| *released).await;
            (200, DONE.to_owned())
        }
    })
    .await;
    let agent = unique("slow");
    let stage = start_hosting(&agent, &server).await;
    let client = stage.installation.client();
    let payload =
        json!({ "action": "train", "parameters": {}, "callback_url": "https://example.org/done" });
    let slow = request(&stage, &agent, payload);
    slow.publish(client).await;
    wait_for("it to be acknowledged", PATIENCE, async || {
        // Each type has a consumer of its own, so the request may be heard after its acknowledgement.
        let count = events(client, "request.*.acknowledged").await?.len()
            + events(client, "request.*.heard_early").await?.len();
        if count == 1 {
            Ok(())
        } else {
            Err(format!("{count}"))
        }
    })
    .await;
    assert_eq!(
        answers(&stage).await,
        [("acknowledgement".to_owned(), slow.id().to_owned())]
    );
    release.send(true).unwrap();
    let given = wait_for("the completion to be told", PATIENCE, async || {
        let given = answers(&stage).await;
        if given.iter().any(|(kind, _)| kind == "notification") {
            Ok(given)
        } else {
            Err(format!("{given:?}"))
        }
    })
    .await;
    assert_eq!(
        given.iter().filter(|(kind, _)| kind == "response").count(),
        1,
        "{given:?}"
    );
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_coordinator_ends_is_ended_once_and_what_it_refuses_is_not_carried_out() {
    let server = Server::start(|received| async move {
        if received.body["payload"]["action"] == "ponder" {
            std::future::pending::<()>().await;
        }
        (200, DONE.to_owned())
    })
    .await;
    let agent = unique("bob");
    let stage = start_hosting(&agent, &server).await;
    let client = stage.installation.client();
    // The deadline in the payload, as specification 5 has it.
    let due = soon();
    let late = request(
        &stage,
        &agent,
        json!({ "action": "ponder", "parameters": {}, "deadline": due }),
    );
    late.publish(client).await;
    let error = stage.answer(late.id()).await;
    assert_eq!(error["payload"]["error_code"], "TIMEOUT", "{error}");
    let wrong = request(
        &stage,
        &agent,
        json!({ "action": "run_tests", "parameters": {} }),
    );
    wrong.publish(client).await;
    let error = stage.answer(wrong.id()).await;
    assert_eq!(error["payload"]["error_code"], "INVALID_REQUEST", "{error}");
    let good = request(
        &stage,
        &agent,
        json!({ "action": "run_tests", "parameters": { "test_suite": "unit" } }),
    );
    good.publish(client).await;
    assert_eq!(stage.answer(good.id()).await["message_type"], "response");
    settled(client, PATIENCE).await.unwrap();
    let ended = |message: &Message, kind: &str| (kind.to_owned(), message.id().to_owned());
    assert_eq!(
        answers(&stage).await,
        [
            ended(&late, "error"),
            ended(&wrong, "error"),
            ended(&good, "response")
        ]
    );
    let given: Vec<_> = server
        .received()
        .iter()
        .map(|received| received.body["message_id"].clone())
        .collect();
    assert_eq!(given, [late.id(), good.id()]);
    assert_eq!(
        server.received()[0].body["deadline"],
        json!(due),
        "the agent knows until when"
    );
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_taken_apart_and_answered_together() {
    let server = Server::start(|received| async move {
        match received.body["payload"]["action"].as_str() {
            Some("ponder") => std::future::pending().await,
            Some("break") => (404, String::new()),
            Some("later") => (202, String::new()),
            _ => (200, DONE.to_owned()),
        }
    })
    .await;
    let agent = unique("dan");
    let url = &server.url;
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{agent}\"\ninstances = 4\nhttp = {{ url = \"{url}/x\" }}\n"
    );
    let stage = Stage::start(1, &settings).await;
    let client = stage.installation.client();
    let actions = ["build", "break", "ponder", "later", "build"];
    let requests = actions.map(|action| json!({ "action": action, "parameters": {} }));
    let payload =
        json!({ "action": "batch", "parameters": { "requests": requests }, "deadline": soon() });
    let batch = request(&stage, &agent, payload);
    batch.publish(client).await;
    let answer = stage.answer(batch.id()).await;
    assert_eq!(answer["payload"]["status"], "partial", "{answer}");
    let responses = answer["payload"]["result"]["responses"].as_array().unwrap();
    let ended: Vec<_> = responses
        .iter()
        .map(|part| match &part["error"] {
            Value::Null => part["result"].clone(),
            error => error["error_code"].clone(),
        })
        .collect();
    let done = json!({ "done": true });
    assert_eq!(
        ended,
        [
            done.clone(),
            json!("INTERNAL_ERROR"),
            json!("TIMEOUT"),
            json!("INTERNAL_ERROR"),
            done
        ],
        "{answer:#}"
    );
    // Each request came by itself, and they are told apart.
    let mut asked: Vec<_> = server
        .received()
        .iter()
        .map(|one| {
            one.body["message_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    asked.sort();
    let parts: Vec<_> = (0..5)
        .map(|place| format!("{}-part-{place}", batch.id()))
        .collect();
    assert_eq!(asked, parts);
    settled(client, PATIENCE).await.unwrap();
    let ended = ("response".to_owned(), batch.id().to_owned());
    assert_eq!(answers(&stage).await, [ended]);
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_by_the_result_of_a_task_or_a_refusal_as_well() {
    let server = Server::start(|received| async move {
        let kind = received.body["payload"]["action"].clone();
        let payload = match kind.as_str() {
            Some("refuse") => json!({ "why": "Not my field." }),
            _ => json!({ "status": "success", "result": { "done": true } }),
        };
        let answer = json!({ "message_type": kind, "payload": payload });
        (200, answer.to_string())
    })
    .await;
    let agent = unique("words");
    let stage = start_hosting(&agent, &server).await;
    let client = stage.installation.client();
    let mut given = Vec::new();
    for (kind, status) in [("task_result", "success"), ("refuse", "failure")] {
        let asked = request(&stage, &agent, json!({ "action": kind, "parameters": {} }));
        asked.publish(client).await;
        let ended = wait_for("the request to end", PATIENCE, async || {
            let mut ended = event_data(client, "request.*.answered").await?;
            ended.retain(|one| one["request"]["request_id"] == asked.id());
            ended.pop().ok_or_else(|| "it has not".to_owned())
        })
        .await;
        assert_eq!(ended["answer"]["status"], status, "{ended}");
        given.push((kind.to_owned(), asked.id().to_owned()));
    }
    assert_eq!(answers(&stage).await, given);
    stage.installation.holds(PATIENCE).await;
}

/// A program that waits for a file, and then answers or ends.
const HELD: &str = r#"import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    if asked["payload"]["action"] == "fail":
        sys.exit(1)
    print(json.dumps({"message_type": "response", "payload": {"status": "success", "result": {"after": "all"}}}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_says_or_fails_after_the_time_is_recorded_and_whoever_asked_is_told_once() {
    let agent = unique("held");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("go");
    let settings = format!(
        "[[service.agents]]\nagent_id = {agent:?}\ninstances = 2\ncommand = [\"python3\", \"-c\", {HELD:?}, {file:?}]\n"
    );
    let stage = Stage::start(1, &settings).await;
    let client = stage.installation.client();
    let [says, fails] = ["ponder", "fail"].map(|action| {
        request(
            &stage,
            &agent,
            json!({ "action": action, "parameters": {}, "deadline": soon() }),
        )
    });
    for asked in [&says, &fails] {
        asked.publish(client).await;
    }
    for asked in [&says, &fails] {
        let error = stage.answer(asked.id()).await;
        assert_eq!(error["payload"]["error_code"], "TIMEOUT", "{error}");
    }
    std::fs::write(&file, "").unwrap();
    stage.wait_until_done(&agent).await;
    settled(client, PATIENCE).await.unwrap();
    let mut given = answers(&stage).await;
    given.sort();
    let mut once = [&says, &fails].map(|asked| ("error".to_owned(), asked.id().to_owned()));
    once.sort();
    assert_eq!(given, once);
    let late = event_data(client, "request.*.answered_late").await.unwrap();
    let [late] = &late[..] else {
        panic!("{} answers are recorded as late", late.len())
    };
    let answer = &late["answer"];
    assert_eq!(
        (&answer["by"], &answer["form"]),
        (&json!(agent), &json!("response")),
        "{answer}"
    );
    let notices = format!("concord.v1.msg._.{agent}.coordinator.notification");
    let kept = message_bodies(client, &notices).await.unwrap();
    let [kept] = &kept[..] else {
        panic!("{} notifications of the coordinator", kept.len())
    };
    assert_eq!(kept["message_id"], answer["message_id"]);
    assert_eq!(
        kept["payload"]["data"]["message"]["payload"]["result"]["after"], "all",
        "what it said is kept"
    );
    stage.installation.holds(PATIENCE).await;
}

/// A program that prints a line before it is asked, and names in each answer the request that it answers.
const CHATTY: &str = r#"import json, sys
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"message_type": "response", "payload": {"status": "success", "result": {"to": asked["message_id"]}}}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_says_something_unasked_answers_nobody_with_what_was_for_another() {
    let agent = unique("chatty");
    let settings = format!(
        "[[service.agents]]\nagent_id = {agent:?}\ninstances = 1\ncommand = [\"python3\", \"-c\", {CHATTY:?}]\n"
    );
    let stage = Stage::start(1, &settings).await;
    for _ in 0..4 {
        let asked = stage.ask(&agent, None, "normal").await;
        let answer = stage.answer(&asked).await;
        assert_eq!(
            (&answer["message_type"], &answer["payload"]["error_code"]),
            (&json!("error"), &json!("INTERNAL_ERROR")),
            "{answer}"
        );
    }
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_action_reaches_a_hosted_agent() {
    let server = Server::start(|received| async move {
        let result = json!({ "asked": received.body["payload"] });
        let payload = json!({ "status": "success", "result": result });
        let answer = json!({ "message_type": "response", "payload": payload });
        (200, answer.to_string())
    })
    .await;
    let agent = unique("reader");
    let stage = start_hosting(&agent, &server).await;
    let client = stage.installation.client();
    let id = unique("m");
    // As specification 2 has it: a request knows no action, and its content is anything.
    let message = json!({
        "id": id, "sender_id": stage.asker, "receiver_id": agent, "message_type": "REQUEST", "metadata": {},
        "content": "Please summarise the contract.",
    });
    let subject = format!("concord.v1.msg._.{}.{agent}.request", stage.asker);
    client
        .publish(subject, message.to_string().into())
        .await
        .unwrap();
    let answer = stage.answer(&id).await;
    let parameters = json!({ "content": "Please summarise the contract." });
    assert_eq!(
        answer["content"]["result"]["asked"],
        json!({ "action": "ask", "parameters": parameters }),
        "{answer}"
    );
    stage.installation.holds(PATIENCE).await;
}

/// The address is one under a path that no proxy takes away.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_has_nothing_to_say_may_say_so_later() {
    let (posted, mut statuses) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |received| {
        let url = received.headers["concord-callback-url"].to_str();
        let (url, posted) = (url.expect("an address").to_owned(), posted.clone());
        tokio::spawn(async move { posted.send(http_post(&url, "{}").await) });
        async { (202, String::new()) }
    })
    .await;
    let agent = unique("eve");
    let under = callback_settings().replace("\"\nsecret", "/callback\"\nsecret");
    let url = &server.url;
    let settings = format!(
        "{under}[[service.agents]]\nagent_id = \"{agent}\"\nhttp = {{ url = \"{url}/x\" }}\n"
    );
    let stage = Stage::start(1, &settings).await;
    stage.ask(&agent, Some(600_000), "normal").await;
    let asked = tokio::time::timeout(PATIENCE, statuses.recv()).await;
    let status = asked.expect("it is asked").expect("it posts");
    assert_eq!(status.expect("the adapter answers"), 200);
    // Long before the time for the answer is over.
    stage.wait_until_done(&agent).await;
    assert_eq!(stage.answers().await, Ok(Vec::new()));
}
