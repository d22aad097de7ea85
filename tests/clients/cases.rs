//! The agents of the READMEs decide a case.

use std::path::Path;
use std::process::Stdio;

use concord_agent::payload::{Answer, Finding};
use concord_agent::{Agent, CaseId, MessageType};
use concord_testkit::{TestInstallation, unique};
use concord_wire::subject::Service;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::python::python;
use crate::stage::PATIENCE;

/// The first block of code in a language.
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

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_of_the_readmes_decide_a_case() {
    code("crates/agent/README.md", "rust,no_run");
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let url = installation.server_url().to_owned();
    let program = code("clients/python/README.md", "python").replace("nats://127.0.0.1:4222", &url);
    let program = format!("import logging\nlogging.basicConfig(level='INFO')\n{program}");
    let mut compliance = python()
        .arg("-c")
        .arg(program)
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut log = BufReader::new(compliance.stderr.take().expect("its log")).lines();
    let listening = tokio::time::timeout(PATIENCE, async {
        while let Some(line) = log.next_line().await.expect("its log can be read") {
            if line.contains("compliance_checker listens") {
                return;
            }
        }
        panic!("the Python agent has ended");
    });
    listening.await.expect("the Python agent listens");
    let finding = || Finding {
        summary: "Not capped.".into(),
        risk_score: Some(72.0),
        ..Finding::default()
    };
    let skill = serde_json::from_value(json!({ "name": "risk" })).expect("a skill");
    let risk = Agent::builder("risk_assessor")
        .skill(skill)
        .on(MessageType::TaskAssignment, move |agent, task| async move {
            agent.finding(&task, &finding(), 0.85).await
        })
        .on(MessageType::Question, |agent, question| async move {
            agent.disagree(&question, Answer::default()).await
        })
        .connect(&url)
        .await
        .expect("it connects");
    let opening = json!({
        "case_id": unique("case"), "participants": ["risk_assessor", "compliance_checker"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let opener = Agent::builder("opener")
        .connect(&url)
        .await
        .expect("it connects");
    let coordinator = Service::Coordinator.agent_id();
    let opened = opener
        .request(coordinator, "open_case", &opening)
        .await
        .expect("the case is opened");
    let case = CaseId::new(opened["case_id"].as_str().expect("a case id")).expect("a case id");
    let decided = installation.decision(&case, PATIENCE).await;
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["reason"], &decision["outcome"]["risk_score"]),
        (&json!("settled"), &json!(72.0)),
        "{decision:#}"
    );
    // What cannot be done is an error of the request.
    let refused = opener
        .request(
            Service::Coordinator.agent_id(),
            "open_case",
            &json!({ "participants": [] }),
        )
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .starts_with("INVALID_REQUEST")
    );
    for agent in [risk, opener] {
        agent.close().await.expect("it is closed");
    }
    compliance.kill().await.expect("it is ended");
    installation.holds(PATIENCE).await;
}
