//! Answers that are told to everybody, as the specification of coordination prints them, and not to whoever asked.

use concord_testkit::{Message, TestInstallation, dead_letters, event_data, settled, wait_for};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::questions::PATIENCE;
use crate::questions::stage::{end_of, hears, register, response};

/// What the specification prints as the result of an agent: to the session, naming the question.
async fn publish_task_result(client: &async_nats::Client, from: &str, case: &str, asked: &str) {
    let result = json!({
        "interaction_type": "TASK_RESULT", "source_agent_id": from, "target_agent_id": null, "conversation_id": case,
        "content": "The exchange rate is 4.72 MYR per USD", "reply_to_message_id": asked,
        "metadata": { "confidence": 0.95, "source": "real-time API", "can_elaborate": true },
    });
    let subject = format!("concord.v1.msg.{case}.{from}._all.task_result");
    let body = result.to_string().into();
    client.publish(subject, body).await.unwrap();
    client.flush().await.unwrap();
}

async fn is_open(client: &async_nats::Client) {
    wait_for("the question to be open", PATIENCE, async || {
        let opened = event_data(client, "question.*.opened").await?;
        (!opened.is_empty())
            .then_some(())
            .ok_or_else(|| "it is not".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_told_to_everybody_counts() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let asked = Message::new(
        "s-1",
        "eva",
        "_any",
        "group_query",
        json!({ "content": "@ann @ben what is the rate?" }),
    );
    asked.publish(client).await;
    is_open(client).await;
    publish_task_result(client, "ann", "s-1", asked.id()).await;
    Message::new("s-1", "ben", "_all", "response", response("About 4.7."))
        .with("/reply_to", asked.id())
        .with("/metadata/confidence", json!(0.78))
        .publish(client)
        .await;
    let end = end_of(client, "eva", asked.id()).await;
    let result = &end["payload"]["result"];
    assert_eq!(result["primary"]["by"], "ann", "{end}");
    assert_eq!(result["supplementary"][0]["by"], "ben", "{end}");
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_cases_the_thread_says_which_question_is_answered() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let asked = Message::new(
        "_",
        "eva",
        "_any",
        "group_query",
        json!({ "content": "@ann who knows?", "mode": "first_responder" }),
    );
    asked.publish(client).await;
    is_open(client).await;
    let answer = |by: &str, reply_to: &str| {
        Message::new("_", by, "_all", "task_result", json!({ "content": "I." }))
            .with("/reply_to", reply_to)
    };
    // What answers no question is said to everybody, as before.
    answer("ben", "lunch").publish(client).await;
    answer("ann", asked.id()).publish(client).await;
    let end = end_of(client, "eva", asked.id()).await;
    assert_eq!(end["payload"]["result"]["primary"]["by"], "ann", "{end}");
    // Who was not asked is told so, as where it answers whoever asked.
    let late = answer("ben", asked.id());
    late.publish(client).await;
    wait_for("a refusal", PATIENCE, async || {
        let told = crate::questions::stage::answers_to(client, "ben", late.id()).await;
        let is_error = |body: &Value| body["message_type"] == "error";
        told.iter()
            .any(is_error)
            .then_some(())
            .ok_or_else(|| format!("{told:?}"))
    })
    .await;
    installation.holds(PATIENCE).await;
}

/// It is looked for again and again, as often as the settings allow.
#[tokio::test(flavor = "multi_thread")]
async fn what_answers_no_question_is_no_dead_letter_where_tries_are_few() {
    let few = |plan: concord_testkit::Plan| plan.with_setting("work.deliveries_max=5");
    let installation = TestInstallation::start_with(few).await;
    let client = installation.client();
    let answer = json!({ "content": "I." });
    let answer = Message::new("_", "ben", "_all", "task_result", answer);
    answer.with("/reply_to", "lunch").store(client).await;
    settled(client, PATIENCE).await.unwrap();
    let letters = dead_letters(client).await.unwrap();
    let letters: Vec<&str> = letters.iter().map(|one| one.subject.as_str()).collect();
    assert_eq!(letters, [""; 0]);
}

/// Whoever is woken may answer, or say that it does not concern it, by naming the notification of that in place of the question.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_name_the_notification_that_woke_its_sender() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben", "cyd"]).await;
    let client = installation.client();
    let question = json!({ "content": "@ann @ben @cyd what is the rate?" });
    let asked = Message::new("_", "eva", "_any", "group_query", question);
    asked.publish(client).await;
    let declines = json!({ "status": "failure", "result": { "accepted": false } });
    for (by, to, payload) in [
        ("ann", "eva", declines),
        ("ben", "eva", response("4.7.")),
        ("cyd", "_all", response("About 5.")),
    ] {
        let told = hears(client, by, |told| told["payload"]["event"] == "woken").await;
        Message::new("_", by, to, "response", payload)
            .with("/reply_to", told["message_id"].clone())
            .with("/metadata/confidence", json!(0.9))
            .publish(client)
            .await;
    }
    let end = end_of(client, "eva", asked.id()).await;
    let result = &end["payload"]["result"];
    assert_eq!(result["declined"][0]["by"], "ann", "{end}");
    let mut given = vec![&result["primary"]["by"], &result["supplementary"][0]["by"]];
    given.sort_by_key(|by| by.to_string());
    assert_eq!(given, [&json!("ben"), &json!("cyd")], "{end}");
    installation.holds(PATIENCE).await;
}

/// The time in so many milliseconds.
fn in_millis(millis: u64) -> Timestamp {
    concord_runtime::service::clock::now().plus_millis(millis)
}

/// Whoever is not in a case may ask in it, and its conversation does not remember the question: an answer to everybody is found when the time for
/// answers is over.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_everybody_counts_where_somebody_outside_the_case_has_asked() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let opening = json!({
        "case_id": "s-2", "participants": ["ann", "ben"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    let question = json!({ "content": "@ann @ben what is the rate?" });
    let asked = Message::new("s-2", "eva", "_any", "group_query", question)
        .with("/deadline", json!(in_millis(8_000)));
    asked.publish(client).await;
    is_open(client).await;
    publish_task_result(client, "ann", "s-2", asked.id()).await;
    let end = end_of(client, "eva", asked.id()).await;
    let result = &end["payload"]["result"];
    assert_eq!(result["primary"]["by"], "ann", "{end}");
    assert_eq!(result["silent"], json!(["ben"]), "{end}");
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_everybody_counts_although_no_coordinator_ran_while_it_did() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let due = in_millis(8_000);
    let question = json!({ "content": "@ann @ben what is the rate?" });
    let asked = Message::new("s-3", "eva", "_any", "group_query", question);
    let asked = asked.with("/deadline", json!(due));
    asked.publish(client).await;
    is_open(client).await;
    installation.kill(Service::Coordinator, 0).unwrap();
    publish_task_result(client, "ann", "s-3", asked.id()).await;
    wait_for("the time to be over", PATIENCE, async || {
        match in_millis(0) > due {
            true => Ok(()),
            false => Err("it is not".to_owned()),
        }
    })
    .await;
    installation.restart(Service::Coordinator, 0).await.unwrap();
    let end = end_of(client, "eva", asked.id()).await;
    assert_eq!(end["payload"]["result"]["primary"]["by"], "ann", "{end}");
    installation.holds(PATIENCE).await;
}
