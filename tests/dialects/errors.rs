//! What is wrong is said in the dialect of the sender.

use std::time::Duration;

use concord_events::dead_letter::header as dead;
use concord_events::topology::StreamKind;
use concord_testkit::{Stored, TestInstallation, stored, unique, until};
use concord_wire::header::DIALECT;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::speech::{DIALECTS, Said, finding};

const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    installation: TestInstallation,
    case: String,
}

impl Stage {
    async fn start(participants: &[&str]) -> Self {
        let installation =
            TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
        let case = unique("case");
        let opening =
            json!({ "case_id": case, "participants": participants, "task": { "type": "test" } });
        installation.open_case(&opening).await;
        Self { installation, case }
    }

    fn said<'a>(&'a self, dialect: &'a str, from: &'a str) -> Said<'a> {
        let (content, confidence) = finding(dialect, "What was found.", 20, 0.5);
        Said {
            dialect,
            case: &self.case,
            from,
            to: "coordinator",
            kind: "finding",
            content,
            confidence,
            reply_to: None,
        }
    }

    async fn send(&self, subject: String, body: &Value, declared: Option<&str>) {
        let mut headers = async_nats::HeaderMap::new();
        if let Some(declared) = declared {
            headers.insert(DIALECT, declared);
        }
        let client = self.installation.client();
        let sent = client
            .publish_with_headers(subject, headers, body.to_string().into())
            .await;
        sent.expect("the message is sent");
    }

    async fn error(&self, agent: &str) -> Stored {
        let found = until(format!("an error to {agent}"), PATIENCE, async || {
            let filter = format!("concord.v1.msg.*.*.{agent}.error");
            let errors = stored(self.installation.client(), StreamKind::Messages, &filter).await?;
            errors.last().cloned().ok_or_else(|| "none".to_owned())
        });
        found.await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The payload of an error in a dialect, and the id of what it answers.
fn report(dialect: &str, error: &Stored) -> (Value, Value) {
    let body = error.json();
    let text = |name: &str| serde_json::from_str::<Value>(body[name].as_str().unwrap_or_default());
    match dialect {
        "panel" => (
            text("content").expect("JSON in the content"),
            body["replyTo"].clone(),
        ),
        "collaboration" => (body["content"].clone(), body["reply_to"].clone()),
        "analyst" => (
            body["content"].clone(),
            body["content"]["concord"]["reply_to"].clone(),
        ),
        "session" => (
            text("content").expect("JSON in the content"),
            body["reply_to_message_id"].clone(),
        ),
        _ => (body["payload"].clone(), body["correlation_id"].clone()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_in_its_own_dialect_what_is_wrong() {
    let stage = Stage::start(&DIALECTS).await;
    for dialect in DIALECTS {
        let said = stage.said(dialect, dialect);
        let mut body = said.body();
        let (place, pointer, wrong) = match dialect {
            "panel" => (
                "content",
                "/content/confidence",
                json!(r#"{"summary":"x","confidence":7}"#),
            ),
            "collaboration" => (
                "metadata",
                "/metadata/confidence",
                json!({ "confidence": 7 }),
            ),
            "analyst" => (
                "content",
                "/content/confidence",
                json!({ "finding": "x", "confidence": 7 }),
            ),
            "session" => (
                "metadata",
                "/metadata/confidence",
                json!({ "confidence": 7 }),
            ),
            _ => (
                "metadata",
                "/metadata/confidence",
                json!({ "confidence": 7 }),
            ),
        };
        body[place] = wrong;
        stage.send(said.subject(), &body, None).await;
        let error = stage.error(dialect).await;
        assert_eq!(error.header(DIALECT), dialect);
        let (report, reply_to) = report(dialect, &error);
        assert_eq!(
            (&report["error_code"], &report["details"]["pointer"]),
            (&json!("INVALID_REQUEST"), &json!(pointer)),
            "{dialect}: {report}"
        );
        let id = body
            .get("id")
            .or(body.get("message_id"))
            .cloned()
            .unwrap_or_default();
        assert_eq!(reply_to, id, "{dialect}");
    }
    // None of it counts; what is right does.
    for dialect in DIALECTS {
        stage
            .said(dialect, dialect)
            .publish(stage.installation.client())
            .await;
    }
    let case = concord_wire::CaseId::new(stage.case.as_str()).expect("a case id");
    assert_eq!(
        stage.installation.decision(&case, PATIENCE).await["decision"]["outcome"]["risk_score"],
        20.0
    );
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_says_which_dialect_it_is() {
    let stage = Stage::start(&["ann", "ben", "cas"]).await;
    let said = |from| stage.said("exchange", from);
    // Nobody knows this one.
    stage
        .send(said("ann").subject(), &said("ann").body(), Some("latin"))
        .await;
    let error = stage.error("ann").await;
    let (report, _) = report("exchange", &error);
    let message = report["error_message"].as_str().unwrap_or_default();
    assert!(
        message.contains("Concord-Dialect") && message.contains("latin"),
        "{message}"
    );
    assert!(
        report["recovery_suggestions"][0]
            .as_str()
            .unwrap_or_default()
            .contains("panel"),
        "{report}"
    );
    // What is declared is believed, whatever it looks like: the letter keeps the word, for whoever sends it again.
    stage
        .send(said("ben").subject(), &said("ben").body(), Some("panel"))
        .await;
    let error = stage.error("ben").await;
    assert_eq!(error.header(DIALECT), "panel");
    let letters = stored(stage.installation.client(), StreamKind::Dead, ">")
        .await
        .expect("the stream can be read");
    let letter = letters
        .iter()
        .find(|letter| letter.header(dead::SUBJECT).contains(".ben."));
    assert_eq!(letter.map(|letter| letter.header(DIALECT)), Some("panel"));
    // And it need not be guessed.
    let minimal =
        json!({ "message_type": "response", "payload": { "summary": "fine", "risk_score": 20 } });
    for from in ["ann", "ben", "cas"] {
        stage
            .send(said(from).subject(), &minimal, Some("exchange"))
            .await;
    }
    let case = concord_wire::CaseId::new(stage.case.as_str()).expect("a case id");
    assert_eq!(
        stage.installation.decision(&case, PATIENCE).await["decision"]["reason"],
        "no_conflict"
    );
    stage.installation.holds(PATIENCE).await;
}
