//! Hosted agents that are servers and models: their turns are in the trace of what was said to them, and it goes on with them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, Plan, Stored, TestInstallation, free_address, stored, unique, until,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::case::{STRANGER, publish, trace_and_span, trace_of};
use crate::collector::{Collector, Span, end};

const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "sk-1a2b3c-not-to-be-seen";
/// Stands in everything that is said.
const CONTENT: &str = "a-secret-clause";

/// What a server was sent in which trace: the path and the header.
type Received = Arc<Mutex<Vec<(String, String)>>>;

/// A server and a model that answer, a server that fails, and one that never answers.
async fn server() -> (String, Received) {
    let received = Received::default();
    let seen = Arc::clone(&received);
    let give = async move |uri: Uri, headers: HeaderMap| -> Response {
        let trace = headers
            .get("traceparent")
            .map(|trace| trace.to_str().expect("a text").to_owned());
        seen.lock()
            .expect("no panic")
            .push((uri.path().to_owned(), trace.unwrap_or_default()));
        let finding = json!({ "summary": CONTENT, "risk_score": 20 });
        match uri.path() {
            "/good" => json!({ "message_type": "finding", "payload": finding })
                .to_string()
                .into_response(),
            "/broken" => (StatusCode::INTERNAL_SERVER_ERROR, KEY).into_response(),
            "/silent" => std::future::pending().await,
            "/later" => {
                let url = headers["concord-callback-url"]
                    .to_str()
                    .expect("an address")
                    .to_owned();
                let said = json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
                tokio::spawn(async move { answer_at(&url, &said.to_string()).await });
                StatusCode::ACCEPTED.into_response()
            }
            _ => {
                let message = json!({ "role": "assistant", "content": finding.to_string() });
                json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })
                    .to_string()
                    .into_response()
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(post(give))).await });
    (url, received)
}

/// A plain POST, without a trace.
async fn answer_at(url: &str, body: &str) {
    let (host, path) = url
        .strip_prefix("http://")
        .expect("http")
        .split_once('/')
        .expect("a path");
    let mut stream = TcpStream::connect(host).await.expect("the adapter listens");
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream
        .write_all((head + body).as_bytes())
        .await
        .expect("it is sent");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("it is answered");
}

fn with_agents(mut plan: Plan, url: &str, callback: SocketAddr) -> Plan {
    let (config, key) = (
        plan.directory.join("adapter.toml"),
        plan.directory.join("key"),
    );
    std::fs::write(&key, KEY).expect("the key is written");
    let settings = format!(
        r#"
        [service.callback]
        listen = "{callback}"
        public_url = "http://{callback}"
        secret = "0123456789abcdef0123456789abcdef"

        [service.budgets.models]
        requests_per_minute = 30

        [[service.agents]]
        agent_id = "good"
        http = {{ url = "{url}/good" }}

        [[service.agents]]
        agent_id = "model"
        openai = {{ base_url = "{url}/v1", model = "small", api_key_file = "{}" }}
        provider = "models"

        [[service.agents]]
        agent_id = "broken"
        http = {{ url = "{url}/broken" }}
        breaker = {{ failures_max = 1, open_ms = 600000 }}

        [[service.agents]]
        agent_id = "silent"
        http = {{ url = "{url}/silent" }}
        timeout_ms = 200

        [[service.agents]]
        agent_id = "later"
        http = {{ url = "{url}/later" }}
        "#,
        key.display()
    );
    std::fs::write(&config, settings).expect("the settings are written");
    plan.adapter_config = Some(config);
    plan
}

/// Asks an agent something outside of any case, in a trace; its answer.
async fn ask(installation: &TestInstallation, agent: &str) -> Stored {
    let (client, asker) = (installation.client(), unique("asker"));
    let request = json!({ "action": "say", "parameters": { "text": CONTENT } });
    let request =
        Message::new("_", &asker, agent, "request", request).with("/requires_response", true);
    let (trace, span) = STRANGER;
    publish(client, &request, &format!("00-{trace}-{span}-01")).await;
    let found = until(format!("the answer of {agent}"), PATIENCE, async || {
        let said = stored(
            client,
            StreamKind::Messages,
            &format!("concord.v1.msg._.{agent}.{asker}.*"),
        )
        .await?;
        said.into_iter().next().ok_or_else(|| "none".to_owned())
    });
    found
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", installation.log_tails()))
}

/// The spans of this name within another.
fn within<'a>(spans: &'a [Span], outer: &Span, name: &str) -> Vec<&'a Span> {
    spans
        .iter()
        .filter(|span| span.parent_id == outer.span_id && span.name == name)
        .collect()
}

fn outcome(span: &Span) -> &str {
    span.attribute("deliberation.outcome")
}

/// What was stored on this subject, one message.
async fn only(installation: &TestInstallation, filter: String) -> Stored {
    let mut found = stored(installation.client(), StreamKind::Messages, &filter)
        .await
        .expect("messages");
    assert_eq!(found.len(), 1, "{filter}");
    found.remove(0)
}

/// The one turn of an agent in a trace.
fn turns<'a>(spans: &'a [Span], trace: &str, agent: &str) -> Vec<&'a Span> {
    let turns = spans
        .iter()
        .filter(|span| span.name == "turn" && span.attribute("agent.id") == agent);
    let turns: Vec<&Span> = turns.collect();
    assert!(
        turns
            .iter()
            .all(|turn| turn.trace_id == trace && turn.service == "concord-agent-adapter"),
        "{turns:#?}"
    );
    turns
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_goes_on_with_agents_that_are_servers_and_models() {
    let (collector, (url, received)) = (Collector::start(StatusCode::OK).await, server().await);
    let callback = free_address();
    let installation = TestInstallation::start_with(|plan| {
        with_agents(plan, &url, callback).with_setting(collector.setting())
    })
    .await;
    let opening =
        json!({ "participants": ["good", "model"], "task": { "type": "test", "input": CONTENT } });
    let case = installation.open_case(&opening).await;
    installation.decision(&case, PATIENCE).await;
    let mut said = Vec::new();
    for agent in ["good", "model"] {
        let task = only(
            &installation,
            format!("concord.v1.msg.{case}.coordinator.{agent}.task_assignment"),
        )
        .await;
        let finding = only(
            &installation,
            format!("concord.v1.msg.{case}.{agent}.coordinator.finding"),
        )
        .await;
        said.push((agent, task, finding));
    }
    let refusals = [
        ask(&installation, "broken").await,
        ask(&installation, "broken").await,
    ];
    let (late, promised) = (
        ask(&installation, "silent").await,
        ask(&installation, "later").await,
    );
    end(&installation).await;

    let (spans, received) = (
        collector.spans(),
        received.lock().expect("no panic").clone(),
    );
    for ((agent, task, finding), (kind, path)) in said
        .iter()
        .zip([("http", "/good"), ("openai", "/v1/chat/completions")])
    {
        let turns = turns(&spans, &trace_of(case.as_str()), agent);
        let [turn] = turns[..] else {
            panic!("{turns:#?}")
        };
        assert_eq!(turn.parent_id, trace_and_span(task.header("traceparent")).1);
        assert_eq!(
            (turn.attribute("agent.kind"), outcome(turn)),
            (kind, "answered")
        );
        assert_eq!(
            trace_and_span(finding.header("traceparent")),
            (turn.trace_id.clone(), turn.span_id.clone())
        );
        let [waited] = within(&spans, turn, "queue")[..] else {
            panic!("it has waited once")
        };
        assert_eq!(outcome(waited), "let_in");
        let [call] = within(&spans, turn, "call")[..] else {
            panic!("it was called once")
        };
        assert_eq!(
            (call.attribute("agent.kind"), outcome(call)),
            (kind, "answered")
        );
        // What the agent records goes on from the call.
        let sent: Vec<_> = received
            .iter()
            .filter(|(at, _)| at == path)
            .map(|(_, trace)| trace.as_str())
            .collect();
        assert_eq!(sent, [format!("00-{}-{}-01", call.trace_id, call.span_id)]);
        assert_eq!(
            within(&spans, turn, "budget").len(),
            usize::from(*agent == "model")
        );
    }

    let (trace, span) = STRANGER;
    let broken = turns(&spans, trace, "broken");
    let mut outcomes: Vec<_> = broken
        .iter()
        .map(|turn| (outcome(turn), within(&spans, turn, "call").len()))
        .collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("breaker_open", 0), ("unavailable", 1)]);
    let silent = turns(&spans, trace, "silent");
    assert_eq!(
        silent.iter().map(|turn| outcome(turn)).collect::<Vec<_>>(),
        ["timeout"]
    );
    for turn in broken.iter().chain(&silent) {
        assert_eq!(turn.parent_id, span);
    }
    for error in refusals.iter().chain([&late]) {
        let (found, span) = trace_and_span(error.header("traceparent"));
        assert!(
            found == trace
                && broken
                    .iter()
                    .chain(&silent)
                    .any(|turn| turn.span_id == span),
            "{}",
            error.subject
        );
    }
    // An answer that comes later, from an agent that knows nothing of traces, goes on from the turn.
    let [turn] = turns(&spans, trace, "later")[..] else {
        panic!("it had one turn")
    };
    assert_eq!(
        (turn.parent_id.as_str(), outcome(turn)),
        (span, "answered_later")
    );
    let [answered] = within(&spans, turn, "later_answer")[..] else {
        panic!("it answered once")
    };
    assert_eq!(
        (answered.attribute("agent.id"), outcome(answered)),
        ("later", "answered")
    );
    assert_eq!(
        trace_and_span(promised.header("traceparent")).1,
        answered.span_id
    );
    let shown = format!("{spans:?}");
    assert!(!shown.contains(CONTENT) && !shown.contains(KEY), "{shown}");
}
