//! An endpoint under its guard, against servers that fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap as Heads;
use axum::response::IntoResponse;
use axum::routing::post;
use concord_domain::resilience::breaker::BreakerState;
use concord_runtime::Trace;
use concord_wire::{Dialect, ErrorCode, MessageId};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::*;
use crate::hosted_agent::agent_caller::OutboundCaller;
use crate::hosted_agent::call_policy::{CallPolicy, breaker_rules};
use crate::hosted_agent::http::{ServerCall, ServerReply};
use crate::hosted_agent::spans::AnswerSpan;
use crate::hosted_agent::timing::{Jitter, TokioClock};
use crate::metrics::AdapterMetrics;
use crate::settings::HostedAgent;

/// A context that the message brought.
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A status, headers and a body.
type Answer = (u16, Vec<(&'static str, String)>, String);

/// A server that gives its answers in order, and the last one again and again: its address, and what it was sent.
async fn server(answers: Vec<Answer>) -> (String, Arc<Mutex<Vec<Heads>>>) {
    let (count, heads) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let seen = Arc::clone(&heads);
    let give = move |head: Heads| {
        let place = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        seen.lock().unwrap().push(head);
        let (status, headers, body) = answers[place].clone();
        let mut response =
            (axum::http::StatusCode::from_u16(status).unwrap(), body).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        async move { response }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/x", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/x", post(give))).await });
    (address, heads)
}

fn agent(url: &str, idempotent: bool) -> HostedAgent {
    let http = json!({ "url": url, "idempotent": idempotent, "headers": { "x-key": "sk-secret" } });
    let breaker = json!({ "failures_max": 3, "open_ms": 60_000 });
    serde_json::from_value(
        json!({ "agent_id": "ann", "http": http, "timeout_ms": 2_000, "breaker": breaker }),
    )
    .unwrap()
}

fn plain(status: u16) -> Answer {
    (status, Vec::new(), "sk-secret".into())
}

fn policy_of(agent: &HostedAgent) -> CallPolicy<TokioClock> {
    let rules = breaker_rules(agent);
    let jitter = Jitter::new("test".into());
    CallPolicy::new(
        TokioClock,
        agent,
        rules,
        None,
        AdapterMetrics::default(),
        jitter,
    )
}

async fn ask(
    agent: &HostedAgent,
    policy: &CallPolicy<TokioClock>,
    within_ms: u64,
) -> Result<ServerReply, Failure> {
    let config = EndpointConfig::of_server("agents[0].http", agent.http.as_ref().unwrap());
    let caller = OutboundCaller::Server(Box::new(Endpoint::new(config.unwrap())));
    let call = ServerCall {
        caller: &caller,
        body: "{}".into(),
        id: MessageId::new("m-1-ann").unwrap(),
        dialect: Dialect::Panel,
        callback_url: Some("http://call.me/back"),
    };
    let trace = Trace {
        parent: TRACE.into(),
        state: None,
    };
    let span = AnswerSpan::unrecorded(&agent.agent_id, Some(trace));
    let until = clock::now().plus_millis(within_ms);
    policy.run(0, until, &call, &span).await
}

#[tokio::test]
async fn a_call_is_made_again_where_that_is_safe_and_under_the_same_key() {
    let soon = |status| (status, vec![("retry-after", "0".to_owned())], String::new());
    for (answers, idempotent, calls, code) in [
        (vec![plain(200)], false, 1, None),
        (vec![soon(429), soon(503), plain(200)], false, 3, None),
        (vec![soon(503)], false, 3, Some(ErrorCode::AgentUnavailable)),
        (vec![soon(429)], false, 3, Some(ErrorCode::CapacityExceeded)),
        // It may have been done: not again, but for a server that can tell.
        (
            vec![plain(500), plain(200)],
            false,
            1,
            Some(ErrorCode::AgentUnavailable),
        ),
        (vec![plain(500), plain(200)], true, 2, None),
        (
            vec![plain(400), plain(200)],
            true,
            1,
            Some(ErrorCode::InternalError),
        ),
        (
            vec![plain(401), plain(200)],
            true,
            1,
            Some(ErrorCode::InternalError),
        ),
        (
            vec![plain(307), plain(200)],
            true,
            1,
            Some(ErrorCode::InternalError),
        ),
    ] {
        let first = answers[0].0;
        let (url, heads) = server(answers).await;
        let agent = agent(&url, idempotent);
        let policy = policy_of(&agent);
        let failure = ask(&agent, &policy, 20_000).await.err();
        assert_eq!(
            failure.as_ref().map(|failure| failure.verdict.code),
            code,
            "{first} {failure:?}"
        );
        let heads = heads.lock().unwrap();
        assert_eq!(heads.len(), calls, "{first}");
        for head in heads.iter() {
            assert_eq!(head["idempotency-key"], "m-1-ann");
            assert_eq!(head["concord-callback-url"], "http://call.me/back");
            assert_eq!(head["x-key"], "sk-secret");
            assert_eq!(head["traceparent"], TRACE);
        }
        // What the server wrote is not repeated, nor is what it was sent.
        let shown = format!("{failure:?} {heads:?}");
        assert!(!format!("{failure:?}").contains("sk-secret"), "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_for_longer_than_there_is_time_is_left_alone() {
    let date = "Fri, 01 Jan 2100 00:00:00 GMT".to_owned();
    for after in ["3600".to_owned(), date] {
        let (url, heads) = server(vec![(429, vec![("retry-after", after)], String::new())]).await;
        let agent = agent(&url, false);
        let begun = Instant::now();
        let failure = ask(&agent, &policy_of(&agent), 5_000).await.unwrap_err();
        assert_eq!(failure.verdict.code, ErrorCode::CapacityExceeded);
        assert_eq!(failure.after, Some(RETRY_AFTER_MAX));
        assert!(begun.elapsed() < Duration::from_secs(4));
        assert_eq!(heads.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_agent_that_fails_again_and_again_is_not_asked_and_its_askers_are_told_at_once() {
    let (url, heads) = server(vec![plain(500)]).await;
    let agent = agent(&url, false);
    let policy = policy_of(&agent);
    for _ in 0..3 {
        ask(&agent, &policy, 5_000).await.unwrap_err();
    }
    assert_eq!(policy.snapshot().standing, BreakerState::Open);
    let failure = ask(&agent, &policy, 5_000).await.unwrap_err();
    assert_eq!(failure.verdict.code, ErrorCode::AgentUnavailable);
    assert!(
        failure.why.contains("circuit breaker") && !failure.suggestions().is_empty(),
        "{failure:?}"
    );
    assert_eq!(heads.lock().unwrap().len(), 3, "the fourth was not made");
    assert!(policy.check().is_err());
}

#[tokio::test]
async fn a_busy_server_and_a_message_it_does_not_want_say_nothing_of_its_health() {
    let (url, _) = server(vec![
        plain(400),
        (429, vec![("retry-after", "0".into())], String::new()),
    ])
    .await;
    let agent = agent(&url, false);
    let policy = policy_of(&agent);
    for _ in 0..4 {
        ask(&agent, &policy, 20_000).await.unwrap_err();
    }
    assert_eq!(
        (policy.snapshot().standing, policy.snapshot().failures),
        (BreakerState::Closed, 0)
    );
}

#[tokio::test]
async fn an_answer_may_be_now_later_or_nothing() {
    let body = json!({ "message_type": "response", "payload": {} }).to_string();
    for (answer, expected) in [
        ((200, Vec::new(), body.clone()), Some(body.as_bytes())),
        ((204, Vec::new(), String::new()), Some(&b"{}"[..])),
        ((202, Vec::new(), String::new()), None),
    ] {
        let (url, _) = server(vec![answer]).await;
        let agent = agent(&url, false);
        let answered = ask(&agent, &policy_of(&agent), 5_000).await.unwrap();
        let said = match &answered {
            ServerReply::Now(line, _) => Some(&line[..]),
            ServerReply::Later => None,
        };
        assert_eq!(said, expected);
    }
}

#[test]
fn times_to_be_left_alone_are_read_as_seconds_or_as_a_date() {
    let of = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        retry_after(&headers)
    };
    assert_eq!(of("7"), Some(Duration::from_secs(7)));
    assert_eq!(of("99999999"), Some(RETRY_AFTER_MAX));
    assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
    for nonsense in ["soon", "-1", "", "1.5"] {
        assert_eq!(of(nonsense), None, "{nonsense}");
    }
}

#[tokio::test]
async fn a_key_in_a_file_is_read_for_each_call() {
    let (url, heads) = server(vec![plain(200)]).await;
    let files = tempfile::tempdir().unwrap();
    let (key, header) = (files.path().join("key"), files.path().join("header"));
    let write = |number| {
        std::fs::write(&key, format!("key-{number}\n")).unwrap();
        std::fs::write(&header, format!("header-{number}\n")).unwrap();
    };
    write(1);
    let own: Value =
        json!({ "url": url, "api_key_file": key, "header_files": { "x-key": header } });
    let config = EndpointConfig::of_server("k", &serde_json::from_value(own).unwrap());
    let endpoint = Endpoint::new(config.unwrap());
    let post = async || {
        let call = AgentCall {
            body: "{}".into(),
            idempotency_key: "m-1-ann",
            dialect: Dialect::Concord,
            callback_url: None,
            trace: None,
            within: Duration::from_secs(2),
            is_usable: &|_| true,
        };
        endpoint.post(call).await.unwrap();
    };
    post().await;
    write(2);
    post().await;
    // Without its files it goes on with what it has.
    drop(files);
    post().await;
    let text = |head: &Heads, name| head.get(name).unwrap().to_str().unwrap().to_owned();
    let sent = heads.lock().unwrap();
    let sent = sent
        .iter()
        .map(|head| (text(head, "authorization"), text(head, "x-key")));
    let expected = [1, 2, 1].map(|n| (format!("Bearer key-{n}"), format!("header-{n}")));
    assert_eq!(sent.collect::<Vec<_>>(), expected);
}

#[test]
fn no_key_is_shown_by_what_holds_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "sk-secret\n").unwrap();
    let own: Value = json!({ "base_url": "https://models.example/v1/", "model": "m", "api_key_file": file.path() });
    let endpoint = Endpoint::new(
        EndpointConfig::of_model("k", &serde_json::from_value(own).unwrap()).unwrap(),
    );
    assert_eq!(endpoint.url, "https://models.example/v1/chat/completions");
    assert_eq!(endpoint.headers[header::AUTHORIZATION], "Bearer sk-secret");
    assert!(!format!("{:?}", endpoint.headers).contains("sk-secret"));
    let own: Value =
        json!({ "url": "https://a.example/x", "header_files": { "X-Key": file.path() } });
    let config = EndpointConfig::of_server("k", &serde_json::from_value(own).unwrap()).unwrap();
    assert_eq!(config.headers["x-key"], "sk-secret");
    assert!(!format!("{config:?}").contains("sk-secret"));
}
