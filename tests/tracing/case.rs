//! Two cases, each with a debate, a hosted agent and a deadline that passes; one is opened and answered by agents with
//! traces of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::StatusCode;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Agent, Heard, Message, Plan, Stored, TestInstallation, settled, stored, unique, until,
    with_hosted_agent,
};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use concord_wire::trace::traceparent_of_case;
use serde_json::{Value, json};

use crate::collector::{Collector, Span, end};

const PATIENCE: Duration = Duration::from_secs(60);

/// TraceContext that have nothing to do with any case: that of who opens it, and that of an agent that begins its own.
const OPENER: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
pub(crate) const STRANGER: (&str, &str) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
/// The span of an agent that goes on with what it was sent.
const ANN_SPAN: &str = "00000000000a4242";

async fn start(collector: &Collector) -> TestInstallation {
    TestInstallation::start_with(|plan: Plan| {
        with_hosted_agent(plan).with_setting(collector.setting())
    })
    .await
}

/// Eve never says anything, so that the deadline of the findings passes.
fn parameters(case: &str) -> Value {
    json!({
        "case_id": case, "participants": ["ann", "ben", "dan", "eve", "hosted"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 3_000, "answer_timeout_ms": 600_000 },
    })
}

pub(crate) async fn publish(client: &async_nats::Client, message: &Message, traceparent: &str) {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("traceparent", traceparent);
    let published = client
        .publish_with_headers(message.subject(), headers, message.bytes().into())
        .await;
    published.expect("the message is sent");
    client.flush().await.expect("the broker takes the message");
}

/// The task that an agent was given, as it is delivered.
async fn task(client: &async_nats::Client, case: &str, agent: &str) -> (Heard, Stored) {
    let filter = format!("concord.v1.msg.{case}.coordinator.{agent}.task_assignment");
    let found = until(format!("the task of {agent}"), PATIENCE, async || {
        let tasks = stored(client, StreamKind::Messages, &filter).await?;
        tasks.into_iter().next().ok_or_else(|| "none".to_owned())
    });
    let task = found.await.unwrap_or_else(|error| panic!("{error}"));
    (
        Heard {
            agent: agent.to_owned(),
            subject: task.subject.clone(),
            body: task.json(),
        },
        task,
    )
}

pub(crate) fn trace_and_span(traceparent: &str) -> (String, String) {
    let parts: Vec<&str> = traceparent.split('-').collect();
    assert_eq!(parts.len(), 4, "{traceparent:?} is no traceparent");
    (parts[1].to_owned(), parts[2].to_owned())
}

pub(crate) fn trace_of(case: &str) -> String {
    trace_and_span(&traceparent_of_case(&CaseId::new(case).expect("a case id"))).0
}

/// Keeps its position when it is asked, and says nothing else by itself.
async fn listener(client: &async_nats::Client, name: &str) -> Agent {
    Agent::start(client, name, |heard| match heard.kind() {
        "question" => vec![heard.answer(
            "disagreement",
            json!({ "reasoning": "I keep my position." }),
        )],
        _ => Vec::new(),
    })
    .await
}

/// Runs both cases to their decisions, and gives what was stored about each. The services have ended, and so have sent
/// all their spans.
async fn run(collector: &Collector, cases: [&str; 2]) -> BTreeMap<String, Vec<Stored>> {
    let installation = start(collector).await;
    let client = installation.client();
    let _agents = [
        listener(client, "ann").await,
        listener(client, "dan").await,
        Agent::agreeable(
            client,
            "ben",
            json!({ "summary": "high", "risk_score": 90 }),
            0.6,
        )
        .await,
    ];
    let request = json!({ "action": "open_case", "parameters": parameters(cases[0]) });
    let (trace, span) = OPENER;
    let opening = Message::new("_", "opener", "coordinator", "request", request);
    publish(client, &opening, &format!("00-{trace}-{span}-01")).await;
    installation.open_case(&parameters(cases[1])).await;
    for case in cases {
        let (heard, task) = task(client, case, "ann").await;
        let (trace, _) = trace_and_span(task.header("traceparent"));
        let finding = heard.finding(json!({ "summary": "low", "risk_score": 20 }), 0.9);
        // Ann records no spans of the first case, and says so: that is no reason not to record the case.
        publish(
            client,
            &finding,
            &format!(
                "00-{trace}-{ANN_SPAN}-{}",
                if case == cases[0] { "00" } else { "01" }
            ),
        )
        .await;
    }
    let (heard, _) = task(client, cases[0], "dan").await;
    let (trace, span) = STRANGER;
    let finding = heard.finding(json!({ "summary": "low", "risk_score": 25 }), 0.8);
    publish(client, &finding, &format!("00-{trace}-{span}-01")).await;
    let (heard, _) = task(client, cases[1], "dan").await;
    let finding = heard.finding(json!({ "summary": "low", "risk_score": 25 }), 0.8);
    publish(client, &finding, "this is no trace context").await;
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
        let mut about = stored(
            client,
            StreamKind::Messages,
            &format!("concord.v1.msg.{case}.>"),
        )
        .await
        .expect("messages");
        about.extend(
            stored(
                client,
                StreamKind::Events,
                &format!("concord.v1.event.case.{case}.*"),
            )
            .await
            .expect("facts"),
        );
        found.insert(case.to_owned(), about);
    }
    end(&installation).await;
    found
}

/// Spans by trace.
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
    // A hosted agent that is entered on the register belongs to no case.
    let of_cases = |span: &Span| span.attribute("deliberation.aggregate") != "agent";
    let traces = by_trace(collector.spans().into_iter().filter(of_cases).collect());
    let expected: BTreeSet<String> = cases.iter().map(|case| trace_of(case)).collect();
    let found: BTreeSet<String> = traces.keys().cloned().collect();
    assert_eq!(found, expected, "{traces:#?}");
    for case in &cases {
        let spans = &traces[&trace_of(case)];
        every_service_takes_part(spans);
        whatever_is_sent_carries_it(spans, &trace_of(case), &stored[case]);
        it_is_one_tree(spans);
        the_hosted_agent_has_its_turns(spans, &stored[case]);
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

fn every_service_takes_part(spans: &[Span]) {
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

/// What the services and the hosted agent send carries the context of a span that was recorded.
fn whatever_is_sent_carries_it(spans: &[Span], trace: &str, stored: &[Stored]) {
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
fn it_is_one_tree(spans: &[Span]) {
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

/// Each message that the hosted agent answered has a turn that follows from what said it; the answer follows from the turn.
fn the_hosted_agent_has_its_turns(spans: &[Span], stored: &[Stored]) {
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
