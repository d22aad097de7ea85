//! Answers that do not count, and questions that cannot be answered: whoever sends them is told.

use concord_testkit::{Message, TestInstallation, event_data, wait_for};
use serde_json::{Value, json};

use crate::questions::PATIENCE;
use crate::questions::stage::{answers_to, ask, end_of, hears, register, reply, response};

/// A question of eva in these terms.
fn question(content: &str, more: &Value) -> Message {
    let mut payload = json!({ "content": content });
    payload
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap());
    Message::new("_", "eva", "_any", "group_query", payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_count_is_refused_with_the_reason() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben", "cyd"]).await;
    let client = installation.client();
    let asked = question("@ann @ben who knows?", &json!({ "mode": "confidence" }));
    asked.publish(client).await;
    wait_for("the question to be open", PATIENCE, async || {
        let opened = event_data(client, "question.*.opened").await?;
        opened
            .into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let body = json!({ "from_agent": "eva", "message_id": asked.id() });
    let first = reply("ann", &body, "response", response("Yes."), 0.7);
    let last = reply("ben", &body, "response", response("No."), 0.8);
    for (by, message) in [
        (
            "cyd",
            &reply("cyd", &body, "response", response("Me too."), 1.0),
        ),
        ("ann", &first),
        (
            "ann",
            &reply("ann", &body, "response", response("Or no."), 1.0),
        ),
        ("ben", &last),
        (
            "ben",
            &reply("ben", &body, "response", response("After all."), 1.0),
        ),
    ] {
        message.publish(client).await;
        if message.id() == first.id() || message.id() == last.id() {
            // Of two answers at once either may be handled first.
            hears_event(client, message.id()).await;
            continue;
        }
        let refused = hears(client, by, |told| told["reply_to"] == json!(message.id())).await;
        assert_eq!(refused["message_type"], "error", "{refused}");
        let why = refused["payload"]["error_message"].as_str().unwrap();
        assert!(why.contains(by), "{why}");
    }
    let end = end_of(client, "eva", asked.id()).await;
    assert_eq!(end["payload"]["result"]["primary"]["by"], "ben", "{end}");
    assert_eq!(
        answers_to(client, "eva", asked.id()).await.len(),
        6,
        "five answers and the one"
    );
    installation.holds(PATIENCE).await;
}

/// Waits until an answer counts.
async fn hears_event(client: &async_nats::Client, message_id: &str) {
    wait_for(format!("{message_id} to count"), PATIENCE, async || {
        let counted = event_data(client, "question.*.answered").await?;
        let mut counted = counted.iter();
        let is_it = |data: &Value| data["answer"]["message_id"] == message_id;
        counted
            .find(|data| is_it(data))
            .map(drop)
            .ok_or_else(|| "it does not".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_be_answered_ends_in_an_error_that_says_what_to_do() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann"]).await;
    let client = installation.client();
    for (content, terms, deadline, code) in [
        (
            "@ann?",
            json!({ "mode": "telepathy" }),
            None,
            "INVALID_REQUEST",
        ),
        (
            "@ann?",
            json!({ "synthesiser": "lead" }),
            None,
            "INVALID_REQUEST",
        ),
        ("@ann?", json!({}), Some("2026-01-01T00:00:00Z"), "TIMEOUT"),
        (
            "@ann?",
            json!({}),
            Some("2126-01-01T00:00:00Z"),
            "INVALID_REQUEST",
        ),
    ] {
        let mut asked = question(content, &terms);
        if let Some(deadline) = deadline {
            asked = asked.with("/deadline", deadline);
        }
        asked.publish(client).await;
        let told = hears(client, "eva", |told| told["reply_to"] == json!(asked.id())).await;
        assert_eq!(told["payload"]["error_code"], code, "{told}");
        let advice = told["payload"]["recovery_suggestions"][0].as_str().unwrap();
        assert!(!advice.is_empty(), "{told}");
    }
    let nobody = ask(&installation, "Nice weather today, isn't it?", &[]).await;
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(
        nobody
            .err
            .contains("AGENT_UNAVAILABLE: The question wakes nobody"),
        "{nobody:?}"
    );
    let silent = ask(
        &installation,
        "@ann are you there?",
        &["--wait", "2", "--json"],
    )
    .await;
    assert_eq!(silent.code, 1, "{silent:?}");
    let found = serde_json::from_str::<Value>(&silent.out).unwrap();
    assert_eq!(
        (&found["became"], &found["error"]["error_code"]),
        (&json!("refused"), &json!("TIMEOUT"))
    );
    let usage = ask(&installation, "Who?", &["--synthesiser", "lead"]).await;
    assert_eq!(usage.code, 2, "{usage:?}");
    installation.holds(PATIENCE).await;
}
