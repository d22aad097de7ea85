//! The agents of the READMEs decide a case.

use std::collections::BTreeMap;
use std::path::Path;

use concord_agent::payload::{Answer, Finding};
use concord_agent::{Agent, CaseId, MessageType};
use concord_testkit::{TestInstallation, check_unlike, unique};
use concord_wire::subject::Service;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use crate::clients::python::Program;
use crate::clients::stage::PATIENCE;

/// The first block of code in a language; it must be short.
fn code(readme: &str, language: &str) -> String {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(readme),
    )
    .expect("a README");
    let block = text
        .split(&format!("```{language}\n"))
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let code = block.expect("a block of code").to_owned();
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines < 15, "{readme} has an agent of {lines} lines");
    code
}

/// Starts the agent of the Python library's README.
async fn start_python_agent(url: &str) -> Program {
    let code = code("clients/python/README.md", "python").replace("nats://127.0.0.1:4222", url);
    let program = format!("import logging\nlogging.basicConfig(level='INFO')\n{code}");
    Program::start(&program, "compliance_checker").await
}

/// Connects an agent like that of the Rust library's README.
async fn connect_rust_agent(url: &str) -> Agent {
    let finding = || Finding {
        summary: "Not capped.".into(),
        risk_score: Some(72.0),
        ..Finding::default()
    };
    let skill = serde_json::from_value(json!({ "name": "risk" })).expect("a skill");
    Agent::builder("risk_assessor")
        .skill(skill)
        .on(MessageType::TaskAssignment, move |agent, task| async move {
            agent.finding(&task, &finding(), 0.85).await
        })
        .on(MessageType::Question, |agent, question| async move {
            agent.disagree(&question, Answer::default()).await
        })
        .connect(url)
        .await
        .expect("it connects")
}

/// Opens a case by the library, for both agents.
async fn open_case(opener: &Agent) -> CaseId {
    let opening = json!({
        "case_id": unique("case"), "participants": ["risk_assessor", "compliance_checker"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let coordinator = Service::Coordinator.agent_id();
    let opened: Value = opener
        .request(coordinator, "open_case", &opening)
        .await
        .expect("the case is opened");
    CaseId::new(opened["case_id"].as_str().expect("a case id")).expect("a case id")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_of_the_readmes_decide_a_case() {
    code("crates/agent/README.md", "rust,no_run");
    let installation = TestInstallation::start_without_adapter().await;
    installation.free_openers().await;
    let url = installation.server_url();
    let heard = installation.client().subscribe("concord.v1.msg.>");
    let mut heard = heard.await.expect("a subscription");
    let compliance = start_python_agent(url).await;
    let risk = connect_rust_agent(url).await;
    let opener = Agent::builder("opener")
        .connect(url)
        .await
        .expect("it connects");
    let case = open_case(&opener).await;
    let decided = installation.decision(&case, PATIENCE).await;
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["reason"], &decision["outcome"]["risk_score"]),
        (&json!("settled"), &json!(72.0)),
        "{decision:#}"
    );
    let mut inboxes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(Some(said)) = heard.next().now_or_never() {
        let from = said.subject.split('.').nth(4).unwrap_or_default();
        let of_sender = inboxes.entry(from.to_owned()).or_default();
        of_sender.extend(said.reply.map(|reply| reply.to_string()));
    }
    for agent in ["compliance_checker", "risk_assessor"] {
        check_unlike(&inboxes[agent]);
    }
    // A request that cannot be granted is an error of the call.
    let coordinator = Service::Coordinator.agent_id();
    let nobody = json!({ "participants": [] });
    let refused = opener.request(coordinator, "open_case", &nobody).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("INVALID_REQUEST"), "{error}");
    for agent in [risk, opener] {
        agent.close().await.expect("it is closed");
    }
    compliance.kill().await;
    installation.holds(PATIENCE).await;
}
