//! The agent of `docs/agents.md`, which has nothing but `nats-py`, takes part in a case and hears how it ends.

use std::path::Path;
use std::process::Stdio;

use concord_testkit::{Agent, Message, TestInstallation, message_bodies, unique, wait_for};
use concord_wire::CaseId;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::clients::python::python;
use crate::clients::stage::PATIENCE;

const NAME: &str = "tax-expert";

/// The program that stands in the document.
fn program() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let begin = text.split("```python\n").nth(1).expect("a program");
    let end = begin.split("```").next();
    end.expect("its end").to_owned()
}

async fn start(url: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = python()
        .args(["-c", &program(), url])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert_eq!(next(&mut lines).await, "listening");
    (child, lines)
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    let line = line.expect("it prints a line").expect("it can be read");
    line.expect("the program goes on")
}

/// What the coordinator says about a case to a participant that comes back.
async fn briefing(installation: &TestInstallation, case: &CaseId) -> Result<Value, String> {
    let subject = format!("concord.v1.api.coordinator.briefing.{NAME}");
    let asked = json!({ "case_id": case }).to_string();
    let answer = installation.client().request(subject, asked.into()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())
}

/// What is urgent travels on subjects of its own.
async fn check_hears_what_is_urgent(installation: &TestInstallation, case: &CaseId) {
    let client = installation.client();
    let question = Message::new(case.as_str(), "zoe", NAME, "question", json!({}));
    let question = question.with("/priority", "critical");
    assert!(question.subject().contains(".urgent."));
    question.store(client).await;
    let answers = format!("concord.v1.msg.{case}.{NAME}.zoe.disagreement");
    wait_for("an answer", PATIENCE, async || {
        let said = message_bodies(client, &answers).await?;
        said.first().map(drop).ok_or_else(|| "none".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_of_the_document_hears_its_decision_and_a_briefing_says_it_to_whoever_was_away() {
    let installation = TestInstallation::start_without_adapter().await;
    let (mut child, mut lines) = start(installation.server_url()).await;
    let name = unique("peer");
    let finding = json!({ "summary": "It is.", "risk_score": 20 });
    let peer = Agent::steadfast(installation.client(), &name, finding, 0.6).await;
    let opening = json!({
        "case_id": unique("case"), "participants": [NAME, name], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let case = installation.open_case(&opening).await;
    let line = next(&mut lines).await;
    let (heard, outcome) = line.split_once(' ').expect("a case and its outcome");
    let outcome: Value = serde_json::from_str(outcome).expect("JSON");
    assert_eq!(
        (heard, &outcome["risk_score"]),
        (case.as_str(), &json!(70.0))
    );
    let said = wait_for("the briefing", PATIENCE, async || {
        let given = briefing(&installation, &case).await?;
        let so_far = given["so_far"].as_str().map(str::to_owned);
        so_far.ok_or_else(|| given.to_string())
    });
    let expected = "The case has its decision (settled): risk score 70.";
    assert_eq!(said.await, expected);
    check_hears_what_is_urgent(&installation, &case).await;
    drop(peer);
    child.kill().await.expect("it is ended");
    installation.holds(PATIENCE).await;
}
