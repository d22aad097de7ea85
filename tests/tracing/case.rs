//! Two cases, each with a debate, a hosted agent and a deadline that passes. In one of them the opener and an agent have
//! traces of their own.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use concord_testkit::{
    Agent, Message, Plan, ReceivedMessage, Stored, TestInstallation, events, messages, settled,
    unique, wait_for, with_hosted_agent,
};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use concord_wire::trace::traceparent_of_case;
use serde_json::{Value, json};

use crate::tracing::PATIENCE;
use crate::tracing::collector::{Collector, Span, end};

/// Traces (trace and span) that belong to no case: that of the opener, and that of an agent that begins its own.
const OPENER: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
pub(crate) const STRANGER: (&str, &str) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
/// The span of an agent that continues the trace of the message that it was sent.
const ANN_SPAN: &str = "00000000000a4242";

async fn start(collector: &Collector) -> TestInstallation {
    TestInstallation::start_with(|plan: Plan| {
        with_hosted_agent(plan).with_setting(collector.setting())
    })
    .await
}

/// The parameters of a case. Eve never answers, so the deadline of the findings passes; those of the others come before it.
fn parameters(case: &str) -> Value {
    json!({
        "case_id": case, "participants": ["ann", "ben", "dan", "eve", "hosted"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 8_000, "answer_timeout_ms": 600_000 },
    })
}

/// Publishes a message with this trace context.
pub(crate) async fn publish(client: &async_nats::Client, message: &Message, traceparent: &str) {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("traceparent", traceparent);
    let published = client
        .publish_with_headers(message.subject(), headers, message.bytes().into())
        .await;
    published.expect("the message is sent");
    client.flush().await.expect("the broker takes the message");
}

/// Waits for the task of an agent: as the agent reads it, and its trace context.
async fn task(client: &async_nats::Client, case: &str, agent: &str) -> (ReceivedMessage, String) {
    let filter = format!("concord.v1.msg.{case}.coordinator.{agent}.task_assignment");
    let task = wait_for(format!("the task of {agent}"), PATIENCE, async || {
        let tasks = messages(client, &filter).await?;
        tasks.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await;
    let traceparent = task.header("traceparent").to_owned();
    let heard = ReceivedMessage {
        agent: agent.to_owned(),
        subject: task.subject.clone(),
        body: task.json(),
    };
    (heard, traceparent)
}

/// The trace and the span of a trace context.
pub(crate) fn trace_and_span(traceparent: &str) -> (String, String) {
    let parts: Vec<&str> = traceparent.split('-').collect();
    assert_eq!(parts.len(), 4, "{traceparent:?} is no traceparent");
    (parts[1].to_owned(), parts[2].to_owned())
}

/// The trace of a case.
pub(crate) fn trace_of(case: &str) -> String {
    trace_and_span(&traceparent_of_case(&CaseId::new(case).expect("a case id"))).0
}

/// Starts an agent that keeps its position when it is asked, and sends nothing else.
async fn start_listener(client: &async_nats::Client, name: &str) -> Agent {
    Agent::start(client, name, |heard| match heard.kind() {
        "question" => vec![heard.answer(
            "disagreement",
            json!({ "reasoning": "I keep my position." }),
        )],
        _ => Vec::new(),
    })
    .await
}

/// The finding of an agent that was given a task.
fn finding(task: &ReceivedMessage) -> Message {
    match task.agent.as_str() {
        "ann" => task.finding(json!({ "summary": "low", "risk_score": 20 }), 0.9),
        _ => task.finding(json!({ "summary": "low", "risk_score": 25 }), 0.8),
    }
}

/// Sends the findings of ann and dan in both cases, each with another trace context.
async fn send_findings(client: &async_nats::Client, cases: [&str; 2]) {
    for case in cases {
        let (task, traceparent) = task(client, case, "ann").await;
        let (trace, _) = trace_and_span(&traceparent);
        // Ann records no spans of the first case, and says so: the services record the case nevertheless.
        let sampled = if case == cases[0] { "00" } else { "01" };
        let context = format!("00-{trace}-{ANN_SPAN}-{sampled}");
        publish(client, &finding(&task), &context).await;
    }
    let (of_first, _) = task(client, cases[0], "dan").await;
    let (trace, span) = STRANGER;
    let context = format!("00-{trace}-{span}-01");
    publish(client, &finding(&of_first), &context).await;
    let (of_second, _) = task(client, cases[1], "dan").await;
    publish(client, &finding(&of_second), "this is no trace context").await;
}

/// All messages and events of a case.
async fn stored_about(client: &async_nats::Client, case: &str) -> Vec<Stored> {
    let messages = messages(client, &format!("concord.v1.msg.{case}.>")).await;
    let mut stored = messages.expect("the stream can be read");
    let events = events(client, &format!("case.{case}.*")).await;
    stored.extend(events.expect("the stream can be read"));
    stored
}

/// Runs both cases to their decisions: everything that is stored about each. The services have ended then, and so have sent
/// all their spans.
async fn run(collector: &Collector, cases: [&str; 2]) -> BTreeMap<String, Vec<Stored>> {
    let installation = start(collector).await;
    installation.free_openers().await;
    let client = installation.client();
    let high = json!({ "summary": "high", "risk_score": 90 });
    let _agents = [
        start_listener(client, "ann").await,
        start_listener(client, "dan").await,
        Agent::agreeable(client, "ben", high, 0.6).await,
    ];
    let request = json!({ "action": "open_case", "parameters": parameters(cases[0]) });
    let (trace, span) = OPENER;
    let opening = Message::new("_", "opener", "coordinator", "request", request);
    publish(client, &opening, &format!("00-{trace}-{span}-01")).await;
    installation.open_case(&parameters(cases[1])).await;
    send_findings(client, cases).await;
    for case in cases {
        installation
            .decision(&CaseId::new(case).expect("a case id"), PATIENCE)
            .await;
    }
    settled(client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let mut found = BTreeMap::new();
    for case in cases {
        found.insert(case.to_owned(), stored_about(client, case).await);
    }
    end(&installation).await;
    found
}

/// The spans of each trace.
fn by_trace(spans: Vec<Span>) -> BTreeMap<String, Vec<Span>> {
    let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for span in spans {
        traces.entry(span.trace_id.clone()).or_default().push(span);
    }
    traces
}

#[tokio::test(flavor = "multi_thread")]
async fn one_case_is_one_trace_and_two_cases_are_two() {
    let collector = Collector::start(StatusCode::OK).await;
    let cases = [unique("case"), unique("case")];
    let stored = run(&collector, [&cases[0], &cases[1]]).await;
    // The registration of a hosted agent belongs to no case.
    let of_cases = |span: &Span| span.attribute("deliberation.aggregate") != "agent";
    let traces = by_trace(collector.spans().into_iter().filter(of_cases).collect());
    let expected: BTreeSet<String> = cases.iter().map(|case| trace_of(case)).collect();
    let found: BTreeSet<String> = traces.keys().cloned().collect();
    assert_eq!(found, expected, "{traces:#?}");
    for case in &cases {
        let spans = &traces[&trace_of(case)];
        check_every_service(spans);
        check_contexts(spans, &trace_of(case), &stored[case]);
        check_one_tree(spans);
        check_turns_of_hosted_agent(spans, &stored[case]);
        let continued = spans.iter().filter(|span| span.parent_id == ANN_SPAN);
        let continued: Vec<_> = continued
            .map(|span| (span.service.as_str(), span.name.as_str()))
            .collect();
        assert_eq!(
            continued,
            [("concord-coordinator", "step")],
            "the agent's own span is the parent of what follows"
        );
    }
    for (trace, span) in [OPENER, STRANGER] {
        let link = (trace.to_owned(), span.to_owned());
        let linked = traces[&trace_of(&cases[0])]
            .iter()
            .filter(|span| span.links.contains(&link));
        let linked: Vec<&str> = linked.map(|span| span.service.as_str()).collect();
        assert_eq!(
            linked,
            ["concord-coordinator"],
            "what comes from another trace is linked with it"
        );
    }
}

/// Each service has recorded spans, and the spans show how the case went.
fn check_every_service(spans: &[Span]) {
    let services: BTreeSet<&str> = spans.iter().map(|span| span.service.as_str()).collect();
    let expected = [
        Service::Coordinator,
        Service::ConflictDetector,
        Service::DebateFacilitator,
        Service::EscalationTimer,
        Service::AgentAdapter,
    ];
    let expected: BTreeSet<String> = expected
        .iter()
        .map(|service| format!("concord-{service}"))
        .collect();
    assert_eq!(services, expected.iter().map(String::as_str).collect());
    let outcomes: Vec<&str> = spans
        .iter()
        .map(|span| span.attribute("deliberation.outcome"))
        .collect();
    for outcome in [
        "opened",
        "finding_recorded",
        "case_elapsed",
        "findings_closed",
        "completed",
        "decided",
    ] {
        assert!(
            outcomes.contains(&outcome),
            "{outcome} is in none of {outcomes:?}"
        );
    }
}

/// Each message of the services and of the hosted agent carries the context of a recorded span.
fn check_contexts(spans: &[Span], trace: &str, stored: &[Stored]) {
    let known: BTreeSet<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
    let plain = [".ann.", ".ben.", ".dan.", ".opener."];
    let is_sent_by = |stored: &Stored, agent: &str| {
        stored.subject.split('.').nth(4) == Some(agent.trim_matches('.'))
    };
    let ours = stored
        .iter()
        .filter(|stored| !plain.iter().any(|agent| is_sent_by(stored, agent)));
    let mut recipients = BTreeSet::new();
    for message in ours {
        let (found, span) = trace_and_span(message.header("traceparent"));
        assert_eq!(found, trace, "{}", message.subject);
        assert!(
            known.contains(span.as_str()),
            "{} comes from the span {span}, which was not sent",
            message.subject
        );
        recipients.extend(message.subject.split('.').nth(5).map(str::to_owned));
    }
    for agent in ["ann", "ben", "dan", "eve", "hosted", "coordinator"] {
        assert!(
            recipients.contains(agent),
            "{agent} was sent nothing: {recipients:?}"
        );
    }
}

/// Every span but the first follows from another; so a viewer shows the case from its opening on.
fn check_one_tree(spans: &[Span]) {
    let known: BTreeSet<&str> = spans
        .iter()
        .map(|span| span.span_id.as_str())
        .chain([ANN_SPAN])
        .collect();
    assert_eq!(known.len(), spans.len() + 1, "no span was sent twice");
    let (roots, others): (Vec<&Span>, Vec<&Span>) =
        spans.iter().partition(|span| span.parent_id.is_empty());
    assert_eq!(
        roots
            .iter()
            .map(|span| span.name.as_str())
            .collect::<Vec<_>>(),
        ["case"]
    );
    let orphans: Vec<_> = others
        .iter()
        .filter(|span| !known.contains(span.parent_id.as_str()))
        .collect();
    assert!(orphans.is_empty(), "{orphans:#?}");
}

/// Each message that the hosted agent answered has a turn that follows from the message; the answer follows from the turn.
fn check_turns_of_hosted_agent(spans: &[Span], stored: &[Stored]) {
    let answers = stored
        .iter()
        .filter(|stored| stored.subject.split('.').nth(4) == Some("hosted"));
    let answers: Vec<&Stored> = answers.collect();
    assert!(!answers.is_empty());
    for answer in answers {
        let (_, span) = trace_and_span(answer.header("traceparent"));
        let turn = spans
            .iter()
            .find(|turn| turn.span_id == span)
            .expect("it comes from a span");
        assert_eq!(
            (turn.service.as_str(), turn.name.as_str()),
            ("concord-agent-adapter", "turn")
        );
        let told = [
            turn.attribute("agent.id"),
            turn.attribute("agent.kind"),
            turn.attribute("deliberation.outcome"),
        ];
        assert_eq!(told, ["hosted", "program", "answered"]);
        let asked = spans
            .iter()
            .find(|asked| asked.span_id == turn.parent_id)
            .expect("somebody asked");
        assert_ne!(asked.service, turn.service);
        let inner = spans
            .iter()
            .filter(|inner| inner.parent_id == turn.span_id && inner.service == turn.service);
        let mut inner: Vec<_> = inner
            .map(|inner| (&*inner.name, inner.attribute("deliberation.outcome")))
            .collect();
        inner.sort_unstable();
        assert_eq!(inner, [("call", "answered"), ("queue", "let_in")]);
    }
}
