//! Hosted agents that are servers and models: their turns are in the trace of the messages that they were sent, and the
//! trace goes on with them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use concord_testkit::{
    Message, Plan, Stored, TestInstallation, free_address, http_post, messages, unique, wait_for,
    with_adapter_settings,
};
use concord_wire::CaseId;
use serde_json::json;
use tokio::net::TcpListener;

use crate::tracing::PATIENCE;
use crate::tracing::case::{STRANGER, publish, trace_and_span, trace_of};
use crate::tracing::collector::{Collector, Span, end};

/// The key of the model. It must not be in any span.
const KEY: &str = "sk-1a2b3c-not-to-be-seen";
/// A text in every message. It must not be in any span.
const CONTENT: &str = "a-secret-clause";

/// The calls of a server: the path, and the header with the trace.
type Received = Arc<Mutex<Vec<(String, String)>>>;

/// Starts a server that answers each path in another way: well, with a failure, never, later, or as a model does. Returns
/// its address and its calls.
async fn start_server() -> (String, Received) {
    let received = Received::default();
    let seen = Arc::clone(&received);
    let respond = async move |uri: Uri, headers: HeaderMap| -> Response {
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
                let answer = json!({ "message_type": "response", "payload": { "status": "success", "result": {} } });
                // Plain HTTP, so without a trace.
                tokio::spawn(async move {
                    let status = http_post(&url, &answer.to_string()).await;
                    status.expect("the adapter listens");
                });
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
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(post(respond))).await });
    (url, received)
}

/// The plan with an agent for each path of the server.
fn with_agents(plan: Plan, url: &str, callback: SocketAddr) -> Plan {
    let key = plan.directory.join("key");
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
    with_adapter_settings(plan, &settings)
}

/// Asks an agent something outside of any case, in a trace: its answer.
async fn ask(installation: &TestInstallation, agent: &str) -> Stored {
    let client = installation.client();
    let asker = unique("asker");
    let request = json!({ "action": "say", "parameters": { "text": CONTENT } });
    let request =
        Message::new("_", &asker, agent, "request", request).with("/requires_response", true);
    let (trace, span) = STRANGER;
    publish(client, &request, &format!("00-{trace}-{span}-01")).await;
    let filter = format!("concord.v1.msg._.{agent}.{asker}.*");
    wait_for(format!("the answer of {agent}"), PATIENCE, async || {
        let answers = messages(client, &filter).await?;
        answers.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await
}

/// The spans of this name within another.
fn within<'a>(spans: &'a [Span], outer: &Span, name: &str) -> Vec<&'a Span> {
    spans
        .iter()
        .filter(|span| span.parent_id == outer.span_id && span.name == name)
        .collect()
}

/// How the step of a span ended.
fn outcome(span: &Span) -> &str {
    span.attribute("deliberation.outcome")
}

/// The one message that is stored on this subject.
async fn only(installation: &TestInstallation, filter: String) -> Stored {
    let mut found = messages(installation.client(), &filter)
        .await
        .expect("the stream can be read");
    assert_eq!(found.len(), 1, "{filter}");
    found.remove(0)
}

/// The turns of an agent in which it was asked something, all in this trace.
fn turns<'a>(spans: &'a [Span], trace: &str, agent: &str) -> Vec<&'a Span> {
    let turns = spans
        .iter()
        .filter(|span| span.name == "turn" && span.attribute("agent.id") == agent);
    let turns = turns.filter(|turn| turn.attribute("message.type") != "notification");
    let turns: Vec<&Span> = turns.collect();
    assert!(
        turns
            .iter()
            .all(|turn| turn.trace_id == trace && turn.service == "concord-agent-adapter"),
        "{turns:#?}"
    );
    turns
}

/// The one turn of an agent in a trace.
fn only_turn<'a>(spans: &'a [Span], trace: &str, agent: &str) -> &'a Span {
    let turns = turns(spans, trace, agent);
    let [turn] = turns[..] else {
        panic!("{agent} has not had one turn: {turns:#?}")
    };
    turn
}

/// The one span of this name within another.
fn only_within<'a>(spans: &'a [Span], outer: &Span, name: &str) -> &'a Span {
    let inner = within(spans, outer, name);
    let [span] = inner[..] else {
        panic!("there is not one {name}: {inner:#?}")
    };
    span
}

/// A participant of the case: its kind, the path of the server that it is, its task and its finding.
struct Participant {
    agent: &'static str,
    kind: &'static str,
    path: &'static str,
    task: Stored,
    finding: Stored,
}

impl Participant {
    async fn of(
        installation: &TestInstallation,
        case: &CaseId,
        (agent, kind, path): (&'static str, &'static str, &'static str),
    ) -> Self {
        let task = format!("concord.v1.msg.{case}.coordinator.{agent}.task_assignment");
        let finding = format!("concord.v1.msg.{case}.{agent}.coordinator.finding");
        Self {
            agent,
            kind,
            path,
            task: only(installation, task).await,
            finding: only(installation, finding).await,
        }
    }

    /// Its turn follows from its task, and its finding follows from the turn; its server was called within the turn.
    fn check(&self, spans: &[Span], trace: &str, received: &[(String, String)]) {
        let turn = only_turn(spans, trace, self.agent);
        let task = trace_and_span(self.task.header("traceparent"));
        assert_eq!(turn.parent_id, task.1);
        assert_eq!(
            (turn.attribute("agent.kind"), outcome(turn)),
            (self.kind, "answered")
        );
        assert_eq!(
            trace_and_span(self.finding.header("traceparent")),
            (turn.trace_id.clone(), turn.span_id.clone())
        );
        assert_eq!(outcome(only_within(spans, turn, "queue")), "let_in");
        let call = only_within(spans, turn, "call");
        assert_eq!(
            (call.attribute("agent.kind"), outcome(call)),
            (self.kind, "answered")
        );
        // The agent can record its own spans below the call. A server may have been told by then what was decided, too.
        let first = received.iter().find(|(path, _)| path == self.path);
        assert_eq!(
            first.map(|(_, trace)| trace.clone()),
            Some(format!("00-{}-{}-01", call.trace_id, call.span_id))
        );
        assert_eq!(
            within(spans, turn, "budget").len(),
            usize::from(self.agent == "model")
        );
    }
}

/// Turns that failed say why, and the errors that answer the asker come from them.
fn check_failures(spans: &[Span], errors: &[Stored]) {
    let (trace, asker) = STRANGER;
    let broken = turns(spans, trace, "broken");
    let mut outcomes: Vec<_> = broken
        .iter()
        .map(|turn| (outcome(turn), within(spans, turn, "call").len()))
        .collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("breaker_open", 0), ("unavailable", 1)]);
    let silent = only_turn(spans, trace, "silent");
    assert_eq!(outcome(silent), "timeout");
    let failed: Vec<&Span> = broken.into_iter().chain([silent]).collect();
    assert!(failed.iter().all(|turn| turn.parent_id == asker));
    for error in errors {
        let (found, span) = trace_and_span(error.header("traceparent"));
        assert!(
            found == trace && failed.iter().any(|turn| turn.span_id == span),
            "{}",
            error.subject
        );
    }
}

/// An answer that comes later, from an agent that knows nothing of traces, follows from the turn.
fn check_later_answer(spans: &[Span], answer: &Stored) {
    let (trace, asker) = STRANGER;
    let turn = only_turn(spans, trace, "later");
    assert_eq!(
        (turn.parent_id.as_str(), outcome(turn)),
        (asker, "answered_later")
    );
    let answered = only_within(spans, turn, "later_answer");
    assert_eq!(
        (answered.attribute("agent.id"), outcome(answered)),
        ("later", "answered")
    );
    assert_eq!(
        trace_and_span(answer.header("traceparent")).1,
        answered.span_id
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_goes_on_with_agents_that_are_servers_and_models() {
    let collector = Collector::start(StatusCode::OK).await;
    let (url, received) = start_server().await;
    let callback = free_address();
    let installation = TestInstallation::start_with(|plan| {
        with_agents(plan, &url, callback).with_setting(collector.setting())
    })
    .await;
    let opening =
        json!({ "participants": ["good", "model"], "task": { "type": "test", "input": CONTENT } });
    let case = installation.open_case(&opening).await;
    installation.decision(&case, PATIENCE).await;
    let participants = [
        Participant::of(&installation, &case, ("good", "http", "/good")).await,
        Participant::of(
            &installation,
            &case,
            ("model", "openai", "/v1/chat/completions"),
        )
        .await,
    ];
    let errors = [
        ask(&installation, "broken").await,
        ask(&installation, "broken").await,
        ask(&installation, "silent").await,
    ];
    let later = ask(&installation, "later").await;
    end(&installation).await;

    let spans = collector.spans();
    let received = received.lock().expect("no panic").clone();
    let trace = trace_of(case.as_str());
    for participant in &participants {
        participant.check(&spans, &trace, &received);
    }
    check_failures(&spans, &errors);
    check_later_answer(&spans, &later);
    let text = format!("{spans:?}");
    assert!(!text.contains(CONTENT) && !text.contains(KEY), "{text}");
}
