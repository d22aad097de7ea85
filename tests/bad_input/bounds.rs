//! What one agent may cause is bounded in bytes: tasks for many participants, bodies that expand, messages as large as the broker
//! takes. The agent is told, the others are served, and nothing is lost.

use concord_testkit::{
    self as testkit, CommandOutput, Message, dead_letters, messages, patient, unique, wait_for,
};
use concord_wire::header::CONTENT_ENCODING;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::bad_input::stage::{
    PATIENCE, Sent, Stage, finding, invalid, opening, over_capacity, request_to_open,
};

/// The agent that sends too much.
const FLOODER: &str = "mallory";

/// A request to open a case with a task of so many bytes for so many participants.
fn large_case(participants: usize, bytes: usize) -> Message {
    let crowd: Vec<String> = (0..participants).map(|n| format!("a{n}")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    let mut parameters = opening(&unique("case"), &crowd, json!({}));
    parameters["task"]["input"] = json!("x".repeat(bytes));
    request_to_open(FLOODER, &parameters)
}

/// How many of the flooder's messages it was told of: each by itself, or several in one error.
fn told(errors: &[Value]) -> u64 {
    let refused = |error: &Value| error["payload"]["details"]["refused"].as_u64();
    errors.iter().map(|error| refused(error).unwrap_or(1)).sum()
}

/// Waits until the flooder was told of so many messages: the errors.
async fn told_of(stage: &Stage, count: u64) -> Vec<Value> {
    wait_for("the flooder to be told", PATIENCE, async || {
        let errors = stage.errors(FLOODER).await;
        let told = told(&errors);
        if told >= count {
            Ok(errors)
        } else {
            Err(format!("it was told of {told}"))
        }
    })
    .await
}

/// The task goes to each participant, so what counts is its size times their number.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_are_too_large_for_so_many_participants() {
    let stage = Stage::start().await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(stage.send(&large_case(64, 600_000)).await);
    }
    stage.decides_a_good_case().await;
    let expected = over_capacity("/payload/parameters/task");
    for sent in &sent {
        stage.refused(FLOODER, sent, &expected).await;
    }
    let assigned = "concord.v1.msg.*.coordinator.*.task_assignment";
    let assigned = messages(stage.client(), assigned).await.expect("a stream");
    assert_eq!(assigned.len(), 2, "those of the good case");
    stage.goes_on().await;
}

/// Each of the cases may be opened, but not all of them at once: the messages are few and small, what they cause is not.
#[tokio::test(flavor = "multi_thread")]
async fn cases_that_cause_more_bytes_than_their_opener_may() {
    const CASES: u64 = 20;
    let stage = Stage::start_with(|plan| {
        // So few that no minute is long enough for another case.
        plan.with_setting("work.agent_bytes_max=10")
            .with_setting("work.agent_bytes_burst_max=4000000")
    })
    .await;
    for _ in 0..CASES {
        stage.send(&large_case(32, 60_000)).await;
    }
    // Two fit into four megabytes, each with its messages.
    let errors = told_of(&stage, CASES - 2).await;
    for error in &errors {
        let report = &error["payload"];
        assert_eq!(report["error_code"], "CAPACITY_EXCEEDED", "{report}");
        let message = report["error_message"].as_str().expect("a text");
        assert!(message.contains("more than 10 bytes"), "{report}");
    }
    stage.settled().await;
    let opened = "concord.v1.msg.*.coordinator.mallory.response";
    let opened = messages(stage.client(), opened).await.expect("a stream");
    assert_eq!(opened.len(), 2, "what was admitted was done");
    assert_eq!(told(&stage.errors(FLOODER).await), CASES - 2);
    stage.goes_on().await;
}

/// A few bytes let an agent into a case, and it is sent the whole task twice: with its briefing and to find something.
#[tokio::test(flavor = "multi_thread")]
async fn agents_let_into_a_case_with_a_large_task() {
    const ADDED: u64 = 10;
    let stage = Stage::start_with(|plan| {
        plan.with_setting("work.agent_bytes_max=1000")
            .with_setting("work.agent_bytes_burst_max=900000")
    })
    .await;
    let opened = large_case(1, 100_000);
    stage.send(&opened).await;
    stage.settled().await;
    let case = &opened.body["payload"]["parameters"]["case_id"];
    let case = case.as_str().expect("an id").to_owned();
    for number in 0..ADDED {
        let parameters = json!({ "agent_id": format!("late-{number}") });
        let request = json!({ "action": "add_participant", "parameters": parameters });
        let add = Message::new(&case, FLOODER, "coordinator", "request", request);
        stage.send(&add).await;
    }
    // Two hundred kilobytes each: four fit beside the case itself, the last of them on credit.
    let errors = told_of(&stage, ADDED - 4).await;
    for error in &errors {
        let report = &error["payload"];
        assert_eq!(report["error_code"], "CAPACITY_EXCEEDED", "{report}");
    }
    stage.settled().await;
    let assigned = format!("concord.v1.msg.{case}.coordinator.*.task_assignment");
    let assigned = messages(stage.client(), &assigned).await.expect("a stream");
    assert_eq!(assigned.len(), 5, "the first participant's and four more");
    stage.goes_on().await;
}

/// Asks the coordinator under the flooder's name: whether it is granted, or why not.
async fn flooder_asks(stage: &Stage, verb: &str, parameters: &Value) -> Result<(), Value> {
    let subject = format!("concord.v1.api.coordinator.{verb}.{FLOODER}");
    let asked = parameters.to_string().into();
    let answer = stage.client().request(subject, asked).await;
    let headers = answer.expect("an answer").headers.unwrap_or_default();
    match headers.get("Nats-Service-Error") {
        Some(error) => Err(serde_json::from_str(error.as_str()).expect("an error as JSON")),
        None => Ok(()),
    }
}

/// Whoever asks the API under their name causes no more by that than by messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_opened_by_the_api_causes_no_more_bytes_than_by_messages() {
    let stage = Stage::start_with(|plan| {
        plan.with_setting("work.agent_bytes_max=10000")
            .with_setting("work.agent_bytes_burst_max=4000000")
            .with_service_setting(Service::Coordinator, "service.quota.open_tasks=1")
    })
    .await;
    let installation = stage.installation();
    installation.register(FLOODER, &["opener"]).await;
    let card = json!({ "agent_id": "ann", "skills": [{ "name": "sum" }] });
    let card = json!({ "action": "register_agent", "parameters": card });
    let register = Message::new("_", "ann", "coordinator", "request", card);
    stage.send(&register).await;
    stage.settled().await;
    let large = || large_case(32, 60_000).body["payload"]["parameters"].clone();
    for number in 0..3 {
        let granted = flooder_asks(&stage, "open_case", &large()).await;
        assert_eq!(granted, Ok(()), "{number}: the last of them on credit");
    }
    let task = json!({ "type": "sum", "input": "x".repeat(30_000) });
    let terms = json!({
        "strategy": "broadcast", "task": task, "deadline_ms": 60_000, "criteria": { "agents": ["ann"] },
    });
    for (verb, parameters) in [("open_case", large()), ("open_task", terms)] {
        let refused = flooder_asks(&stage, verb, &parameters).await;
        let report = refused.expect_err("it causes too much");
        assert_eq!(
            report["error_code"], "CAPACITY_EXCEEDED",
            "{verb}: {report}"
        );
        let message = report["error_message"].as_str().expect("a text");
        assert!(
            message.contains("more than 10000 bytes"),
            "{verb}: {report}"
        );
    }
    // By a message it is refused as well, for the account is one; and what was refused keeps no place.
    stage.send(&large_case(32, 60_000)).await;
    told_of(&stage, 1).await;
    let url = installation.server_url();
    let held = testkit::concord(&["quota", FLOODER, "--json", "--server", url]);
    let held = CommandOutput::from(held).json();
    assert_eq!(held["openers"][0]["open_tasks"], 0, "{held}");
    stage.goes_on().await;
}

/// Half a megabyte of nothing that takes minutes to expand where nobody counts the frames.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_very_many_empty_parts() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    let frames = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0].repeat(60_000);
    let members = concord_encoding::gzip(b"").expect("gzip").repeat(25_000);
    let context = patient(stage.client());
    for (encoding, bytes) in [("zstd", frames), ("gzip", members)] {
        let subject = Message::finding(&case, "alice", finding(50), 0.5).subject();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encoding);
        let stored = context
            .publish_with_headers(subject.clone(), headers, bytes.clone().into())
            .await;
        let stored = stored.expect("it is sent").await.expect("it is stored");
        let sent = Sent {
            subject,
            bytes,
            sequence: stored.sequence,
        };
        stage.refused("alice", &sent, &invalid("")).await;
    }
    stage.goes_on().await;
}

/// Messages as large as the broker takes: those over the limit are refused unread, the others because they are too large.
#[tokio::test(flavor = "multi_thread")]
async fn messages_as_large_as_the_broker_takes() {
    const MESSAGES: u64 = 8;
    let stage = Stage::start_with(|plan| {
        plan.with_setting("work.agent_bytes_max=100000")
            .with_setting("work.agent_bytes_burst_max=16000000")
    })
    .await;
    let text = "x".repeat(7_900_000);
    for _ in 0..MESSAGES {
        let request = json!({ "action": "open_case", "parameters": { "text": text } });
        let message = Message::new("_", FLOODER, "coordinator", "request", request);
        stage.send(&message).await;
    }
    stage.decides_a_good_case().await;
    let errors = told_of(&stage, MESSAGES).await;
    stage.settled().await;
    assert_eq!(told(&stage.errors(FLOODER).await), MESSAGES, "once each");
    let limited = |error: &&Value| error["payload"]["details"]["limit"] == "agent_rate";
    let limited: Vec<Value> = errors.iter().filter(limited).cloned().collect();
    assert!(told(&limited) > 0, "{}", told(&limited));
    let letters = dead_letters(stage.client()).await.expect("a stream");
    let kept = letters.len() as u64;
    assert_eq!(kept + told(&limited), MESSAGES, "none is lost");
    for letter in &letters {
        let bytes = letter.payload.len();
        assert_eq!(bytes, 0, "it is not copied: it is where it was sent");
    }
    let first = letters.first().expect("a letter").sequence.to_string();
    let url = stage.installation().server_url();
    let concord = |verb: &[&str]| {
        let output = testkit::concord(&[&["--server", url, "dead"], verb].concat());
        CommandOutput::from(output).good()
    };
    let original = concord(&["show", &first, "--raw"]);
    let original: Value = serde_json::from_str(&original).expect("what was sent");
    let parameters = &original["payload"]["parameters"];
    assert_eq!(parameters["text"].as_str(), Some(&*text));
    concord(&["retry", &first]);
    // It is as large as before, and refused once more: by its size, or because the sender has no bytes left.
    told_of(&stage, MESSAGES + 1).await;
    stage.goes_on().await;
}

/// Messages as large as are read wait in all consumers of a coordinator that starts: what it holds of them is bounded for the process, not
/// for each consumer. A limit of the container's memory would end it again and again.
#[tokio::test(flavor = "multi_thread")]
async fn large_messages_of_every_type_wait_for_a_coordinator() {
    /// The megabytes that no service is to have resident.
    const MEMORY_MAX: u64 = 256;
    const KINDS: [&str; 5] = [
        "acknowledgement",
        "response",
        "error",
        "notification",
        "task_result",
    ];
    let mut stage = Stage::start().await;
    stage.kill(Service::Coordinator);
    let text = "x".repeat(960_000);
    for sender in 0..16 {
        let sender = format!("mallory-{sender}");
        for kind in KINDS {
            for (to, priority) in [
                ("peer", "normal"),
                ("peer", "critical"),
                ("coordinator", "normal"),
                ("coordinator", "critical"),
            ] {
                let payload = json!({ "status": "success", "event": "e", "result": text });
                let message = Message::new("_", &sender, to, kind, payload);
                let message = message.with("/priority", priority);
                message.publish(stage.client()).await;
            }
        }
    }
    stage.restart(Service::Coordinator).await;
    stage.decides_a_good_case().await;
    for (service, megabytes) in stage.peak_mb() {
        assert!(megabytes <= MEMORY_MAX, "{service}: {megabytes} MB");
    }
    stage.goes_on().await;
}
