//! Whole cases.

use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_testkit::{TestInstallation, concord, stored, unique, until};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::speech::{DIALECTS, Heard, Said, finding};

const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that answers a task with a score, and a question by keeping its position or by agreeing with the other.
async fn agent(
    client: &async_nats::Client,
    dialect: &'static str,
    name: &str,
    score: u32,
    agrees: bool,
) {
    let mut inbox = client
        .subscribe(format!("concord.v1.msg.*.*.{name}.*"))
        .await
        .expect("the agent subscribes");
    client
        .flush()
        .await
        .expect("the broker has the subscription");
    let (client, name) = (client.clone(), name.to_owned());
    let (from, to, confidence) = (&*name, "coordinator", None);
    let content = json!({ "action": "register_agent", "parameters": { "agent_id": name, "dialect": dialect } });
    Said {
        dialect,
        case: "_",
        from,
        to,
        kind: "request",
        content,
        confidence,
        reply_to: None,
    }
    .publish(&client)
    .await;
    let registered = tokio::time::timeout(PATIENCE, inbox.next())
        .await
        .expect("an answer")
        .expect("the broker is there");
    assert_eq!(
        Heard::new(dialect, &registered).kind,
        "response",
        "{dialect}"
    );
    tokio::spawn(async move {
        while let Some(message) = inbox.next().await {
            let heard = Heard::new(dialect, &message);
            let (kind, (content, confidence), to) = match heard.kind.as_str() {
                "task_assignment" => (
                    "finding",
                    finding(
                        dialect,
                        "What was found.",
                        score,
                        if agrees { 0.6 } else { 0.9 },
                    ),
                    "coordinator",
                ),
                "question" => {
                    let peer = &heard.content["other_positions"][0]["agent_id"];
                    let kind = if agrees { "agreement" } else { "disagreement" };
                    let answer =
                        json!({ "agrees_with_peer": agrees, "reasoning": "I have looked again." });
                    let agreed = json!({ "agrees_with": peer, "agrees_with_peer": true, "reasoning": "They are right." });
                    (
                        kind,
                        (if agrees { agreed } else { answer }, None),
                        "debate-facilitator",
                    )
                }
                _ => continue,
            };
            let (case, reply_to) = (&*heard.case, Some(heard.reply_with));
            Said {
                dialect,
                case,
                from: &name,
                to,
                kind,
                content,
                confidence,
                reply_to,
            }
            .publish(&client)
            .await;
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_speak_nothing_else_decide_a_case_in_each_dialect() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    let mut cases = Vec::new();
    for dialect in DIALECTS {
        let (case, ann, ben) = (unique("case"), unique("ann"), unique("ben"));
        agent(client, dialect, &ann, 20, false).await;
        agent(client, dialect, &ben, 90, true).await;
        let parameters = json!({
            "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
            "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
        });
        let content = json!({ "action": "open_case", "parameters": parameters });
        let (from, to, confidence) = ("opener", "coordinator", None);
        Said {
            dialect,
            case: "_",
            from,
            to,
            kind: "request",
            content,
            confidence,
            reply_to: None,
        }
        .publish(client)
        .await;
        cases.push((dialect, case, ben));
    }
    for (dialect, case, ben) in &cases {
        let decided = installation
            .decision(&CaseId::new(case.as_str()).expect("a case id"), PATIENCE)
            .await;
        let decision = &decided["decision"];
        assert_eq!(
            (&decision["reason"], &decision["outcome"]["risk_score"]),
            (&json!("settled"), &json!(20.0)),
            "{dialect}: {decision}"
        );
        transcript(&installation, dialect, case, ben);
    }
    installation.holds(PATIENCE).await;
    let letters = stored(client, StreamKind::Dead, ">")
        .await
        .expect("the stream can be read");
    assert!(letters.is_empty(), "{letters:?}");
}

/// The command shows what was said in a dialect as an envelope, with what was written beside it.
fn transcript(installation: &TestInstallation, dialect: &str, case: &str, ben: &str) {
    let output = concord(&[
        "case",
        "transcript",
        case,
        "--json",
        "--server",
        installation.server_url(),
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |kind: &str| {
        let of_kind = |line: &&Value| {
            line["body"]["message_type"] == kind && line["body"]["from_agent"] == ben
        };
        lines
            .iter()
            .find(of_kind)
            .unwrap_or_else(|| panic!("{dialect}: no {kind} of {ben} in {lines:#?}"))
    };
    let finding = of("finding");
    assert_eq!(finding["dialect"], dialect);
    assert_eq!(
        (
            &finding["body"]["payload"]["risk_score"],
            &finding["body"]["metadata"]["confidence"]
        ),
        (&json!(90), &json!(0.6)),
        "{finding:#}"
    );
    assert_ne!(finding["body"], finding["original"]);
    assert_eq!(
        of("agreement")["body"]["payload"]["reasoning"],
        "They are right."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_in_the_format_of_the_specification_is_one() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
    let client = installation.client();
    let (case, challenged, challenger) = (unique("case"), "financial_analyst", "strategy_analyst");
    let opening = json!({
        "case_id": case, "participants": [challenged, challenger], "task": { "type": "test" }, "gates": ["valuation"],
    });
    installation.open_case(&opening).await;
    for from in [challenged, challenger] {
        let (content, confidence) = finding("analyst", "Management is effective.", 30, 0.8);
        let said = Said {
            dialect: "analyst",
            case: &case,
            from,
            to: "coordinator",
            kind: "finding",
            content,
            confidence,
            reply_to: None,
        };
        said.publish(client).await;
    }
    installation
        .decision(&CaseId::new(case.as_str()).expect("a case id"), PATIENCE)
        .await;
    let challenge = json!({
        "challenge_id": "CH-001", "challenger": challenger, "challenged": challenged,
        "disputed_finding": "Management effectiveness", "challenge_basis": "ROI declining despite claims",
        "required_evidence": ["Historical ROI data", "Peer comparison"], "escalation_timer": 3600,
        "priority": "critical-path", "provisional_resolution": null,
    });
    let subject = format!("concord.v1.msg.{case}.{challenger}.coordinator.challenge");
    client
        .publish(subject, challenge.to_string().into())
        .await
        .expect("the challenge is sent");
    let asked = until("the fact that it was challenged", PATIENCE, async || {
        let facts = stored(
            client,
            StreamKind::Events,
            &format!("concord.v1.event.case.{case}.challenged"),
        )
        .await?;
        facts
            .first()
            .map(concord_testkit::Stored::json)
            .ok_or_else(|| "none".to_owned())
    });
    let fact = asked.await.unwrap_or_else(|error| panic!("{error}"));
    assert!(fact.to_string().contains("CH-001"), "{fact:#}");
}
