//! A participant confirms what another has found, and what two write into shared memory is compared before anything is debated.

use concord_agent::payload::Confirmation;
use concord_agent::{Agent, CaseId, Error};
use concord_testkit::{Message, TestInstallation, event_data, message_bodies, wait_for};
use concord_wire::MessageId;
use serde_json::json;

use crate::together::{PATIENCE, command, granted, refused, told};

fn confirms(case: &str, from: &str, finding: &str, confidence: f64) -> Message {
    let payload = json!({ "confirms": finding, "reasoning": "The same figure stands there." });
    Message::new(case, from, "coordinator", "confirmation", payload)
        .with("/metadata/confidence", confidence)
}

/// Opens a case of ann, ben and cyd, in which ann has found something: the case and the finding.
async fn found(installation: &TestInstallation) -> (String, String) {
    let case = concord_testkit::unique("case");
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben", "cyd"], "task": { "type": "test" },
        "policy": {
            "confirmations": "count", "estimates": { "compared": true }, "answer_timeout_ms": 600_000, "finding_timeout_ms": 600_000,
        },
    });
    installation.open_case(&opening).await;
    let finding = Message::finding(
        &case,
        "ann",
        json!({ "summary": "Seen.", "risk_score": 10 }),
        0.8,
    );
    finding.store(installation.client()).await;
    let filter = format!("case.{case}.finding_recorded");
    wait_for("the finding", PATIENCE, async || {
        let recorded = event_data(installation.client(), &filter).await?;
        (recorded.len() == 1).then_some(()).ok_or("none".to_owned())
    })
    .await;
    (case, finding.id().to_owned())
}

fn margin(case: &str, from: &str, value: f64) -> Message {
    let value = json!({ "metric": "operating margin", "value": value, "unit": "%" });
    let parameters = json!({ "topic": "margin", "value": value, "importance": 0.5 });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_is_confirmed_and_a_contradiction_in_memory_is_a_conflict() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let (case, finding) = found(&installation).await;
    let one = granted(client, &confirms(&case, "ben", &finding, 0.6)).await;
    // How sure ann is stays a secret until all findings are in.
    assert_eq!(one, json!({ "finding": finding, "author": "ann" }));
    let heard = told(client, (&case, "ann"), "finding_confirmed", |_| true).await;
    assert_eq!(
        (&heard["by"], &heard["strengthened"]),
        (&json!("ben"), &json!(0.86))
    );

    let place = "/payload/confirms";
    let own = confirms(&case, "ann", &finding, 0.9);
    refused(client, &own, "INVALID_REQUEST", place).await;
    let again = confirms(&case, "ben", &finding, 0.9);
    refused(client, &again, "INVALID_REQUEST", place).await;
    let unknown = confirms(&case, "cyd", "finding-12", 0.9);
    refused(client, &unknown, "INVALID_REQUEST", place).await;
    let stranger = confirms(&case, "mallory", &finding, 0.9);
    refused(client, &stranger, "UNAUTHORIZED", "/from_agent").await;
    let nothing = confirms(&case, "cyd", &finding, 0.9).with("/payload", json!({}));
    refused(client, &nothing, "INVALID_REQUEST", "/payload/confirms").await;
    let sure = confirms(&case, "cyd", &finding, 1.5);
    refused(client, &sure, "INVALID_REQUEST", "/metadata/confidence").await;
    by_the_library(&installation, &case, &finding).await;

    // Ann and ben write margins that differ, and say nothing of them in their findings.
    for (agent, value) in [("ann", 25.0), ("ben", 30.0)] {
        granted(client, &margin(&case, agent, value)).await;
    }
    let filter = format!("case.{case}.estimate_noted");
    wait_for("both margins", PATIENCE, async || {
        let noted = event_data(client, &filter).await?.len();
        (noted == 2).then_some(()).ok_or(format!("{noted}"))
    })
    .await;
    for agent in ["ben", "cyd"] {
        let finding = json!({ "summary": "Seen.", "risk_score": 12 });
        Message::finding(&case, agent, finding, 0.5)
            .store(client)
            .await;
    }
    let asked = format!("concord.v1.msg.{case}.debate-facilitator.ann.question");
    wait_for("a question about the margin", PATIENCE, async || {
        let asked = message_bodies(client, &asked).await?.len();
        (asked > 0).then_some(()).ok_or("none".to_owned())
    })
    .await;
    let detected = event_data(client, "detection.*.completed").await.unwrap();
    let conflict = &detected[0]["debated"][0];
    assert_eq!(conflict["type"], "estimate_disagreement", "{conflict}");
    let position = &conflict["positions"][0];
    assert_eq!(
        (&position["agent_id"], &position["confidence"]),
        (&json!("ann"), &json!(0.902)),
        "{position}"
    );
    let shown = command(&installation, &["case", "show", &case]).unwrap();
    assert_eq!(shown["confirmed"][0]["strengthened"], 0.902, "{shown}");
    assert_eq!(shown["confirmed"][0]["confidence"], 0.8);
    let replayed = command(&installation, &["replay", &case]).unwrap();
    assert_eq!(
        (&replayed["identical"], &replayed["detected_again"]),
        (&json!(true), &json!(1)),
        "{replayed}"
    );
    installation.holds(PATIENCE).await;
}

async fn by_the_library(installation: &TestInstallation, case: &str, finding: &str) {
    let cyd = Agent::builder("cyd");
    let cyd = cyd
        .connect(installation.server_url())
        .await
        .expect("it connects");
    let case = CaseId::new(case).expect("an id");
    let confirmation = Confirmation {
        confirms: MessageId::new(finding).expect("an id"),
        author: None,
        reasoning: None,
    };
    let with = cyd.confirm(&case, &confirmation, 0.6).await;
    assert_eq!(with.expect("it is recorded"), None, "until all are in");
    let again = cyd.confirm(&case, &confirmation, 0.6).await.unwrap_err();
    assert!(matches!(again, Error::Refused(_)), "{again}");
}
