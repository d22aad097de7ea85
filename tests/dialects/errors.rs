//! An error is sent in the dialect of the agent that made it.

use concord_events::dead_letter::header as dead;
use concord_testkit::{Stored, TestInstallation, dead_letters, messages, unique, wait_for};
use concord_wire::CaseId;
use concord_wire::header::DIALECT;
use serde_json::{Value, json};

use crate::dialects::PATIENCE;
use crate::dialects::dialect_message::{DIALECTS, Outgoing};

/// An installation with a case that waits for findings.
struct Stage {
    installation: TestInstallation,
    case: String,
}

impl Stage {
    async fn start(participants: &[&str]) -> Self {
        let installation = TestInstallation::start_without_adapter().await;
        let case = unique("case");
        let opening = json!({
            "case_id": case, "participants": participants, "task": { "type": "test" },
            "policy": { "finding_timeout_ms": 600_000 },
        });
        installation.open_case(&opening).await;
        Self { installation, case }
    }

    /// The finding of an agent in a dialect.
    fn finding<'a>(&'a self, dialect: &'a str, from: &'a str) -> Outgoing<'a> {
        let finding = ("What was found.", 20, 0.5);
        Outgoing::finding(dialect, &self.case, from, finding)
    }

    /// Waits for the decision of the case.
    async fn decision(&self) -> Value {
        let case = CaseId::new(self.case.as_str()).expect("a case id");
        self.installation.decision(&case, PATIENCE).await["decision"].clone()
    }

    /// Publishes a body that declares this dialect, or none.
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

    /// Waits for an error to an agent: the last one.
    async fn error(&self, agent: &str) -> Stored {
        let filter = format!("concord.v1.msg.*.*.{agent}.error");
        wait_for(format!("an error to {agent}"), PATIENCE, async || {
            let mut errors = messages(self.installation.client(), &filter).await?;
            errors.pop().ok_or_else(|| "none".to_owned())
        })
        .await
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

/// A confidence that is too high, in a dialect: the field of the message with it, its value, and the place that the error
/// names.
fn bad_confidence(dialect: &str) -> (&'static str, Value, &'static str) {
    match dialect {
        "panel" => (
            "content",
            json!(r#"{"summary":"x","confidence":7}"#),
            "/content/confidence",
        ),
        "analyst" => (
            "content",
            json!({ "finding": "x", "confidence": 7 }),
            "/content/confidence",
        ),
        _ => (
            "metadata",
            json!({ "confidence": 7 }),
            "/metadata/confidence",
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_in_its_own_dialect_what_is_wrong() {
    let stage = Stage::start(&DIALECTS).await;
    for dialect in DIALECTS {
        let finding = stage.finding(dialect, dialect);
        let mut body = finding.body();
        let (field, value, pointer) = bad_confidence(dialect);
        body[field] = value;
        stage.send(finding.subject(), &body, None).await;
        let error = stage.error(dialect).await;
        assert_eq!(error.header(DIALECT), dialect);
        let (report, reply_to) = report(dialect, &error);
        assert_eq!(
            (&report["error_code"], &report["details"]["pointer"]),
            (&json!("INVALID_REQUEST"), &json!(pointer)),
            "{dialect}: {report}"
        );
        let id = body.get("id").or(body.get("message_id"));
        assert_eq!(reply_to, id.cloned().unwrap_or_default(), "{dialect}");
    }
    // None of it counts; good findings do.
    for dialect in DIALECTS {
        stage
            .finding(dialect, dialect)
            .publish(stage.installation.client())
            .await;
    }
    assert_eq!(stage.decision().await["outcome"]["risk_score"], 20.0);
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_says_which_dialect_it_is() {
    let stage = Stage::start(&["ann", "ben", "cas"]).await;
    let finding = |from| stage.finding("exchange", from);
    // No such dialect exists.
    stage
        .send(
            finding("ann").subject(),
            &finding("ann").body(),
            Some("latin"),
        )
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
    // The declared dialect counts, whatever the body looks like. The dead letter keeps the declaration, so that the message
    // can be sent again as it was.
    stage
        .send(
            finding("ben").subject(),
            &finding("ben").body(),
            Some("panel"),
        )
        .await;
    let error = stage.error("ben").await;
    assert_eq!(error.header(DIALECT), "panel");
    // Its sender is told first: what is kept was told.
    let letter = wait_for("the dead letter", PATIENCE, async || {
        let letters = dead_letters(stage.installation.client()).await?;
        let of_ben = |letter: &Stored| letter.header(dead::SUBJECT).contains(".ben.");
        letters
            .into_iter()
            .find(of_ben)
            .ok_or_else(|| "none".to_owned())
    })
    .await;
    assert_eq!(letter.header(DIALECT), "panel");
    // A body from which the dialect could not be guessed is read by its declaration.
    let minimal =
        json!({ "message_type": "response", "payload": { "summary": "fine", "risk_score": 20 } });
    for from in ["ann", "ben", "cas"] {
        stage
            .send(finding(from).subject(), &minimal, Some("exchange"))
            .await;
    }
    assert_eq!(stage.decision().await["reason"], "no_conflict");
    stage.installation.holds(PATIENCE).await;
}
