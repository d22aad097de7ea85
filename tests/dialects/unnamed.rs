//! Answers in a debate that name no question, as specification 1 prints some without `replyTo`.

use concord_testkit::{Message, TestInstallation, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::dialects::PATIENCE;

/// Opens a case of two agents that give these findings, and waits until each is asked `questions` questions.
async fn asked(
    installation: &TestInstallation,
    (case, agents): (&str, [&str; 2]),
    findings: [Value; 2],
    questions: usize,
) {
    let client = installation.client();
    let opening = json!({
        "case_id": case, "participants": agents, "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    for (agent, finding) in agents.into_iter().zip(findings) {
        Message::finding(case, agent, finding, 0.8)
            .publish(client)
            .await;
    }
    for agent in agents {
        let filter = format!("concord.v1.msg.{case}.debate-facilitator.{agent}.question");
        wait_for("the questions", PATIENCE, async || {
            let asked = message_bodies(client, &filter).await?.len();
            (asked == questions)
                .then_some(())
                .ok_or_else(|| format!("{asked} questions"))
        })
        .await;
    }
}

/// An answer as specification 1 has it, without `replyTo`.
async fn publish_in_panel(client: &async_nats::Client, case: &str, from: &str, to: &str) {
    let content = json!({ "agrees_with_peer": false, "reasoning": "I have looked again." });
    let answer = json!({
        "id": unique("a"), "round": 1, "sender": from, "recipients": [to], "messageType": "disagreement",
        "content": content.to_string(), "timestamp": 1_770_624_000_000_i64,
    });
    let subject = format!("concord.v1.msg.{case}.{from}.debate-facilitator.disagreement");
    let sent = client.publish(subject, answer.to_string().into()).await;
    sent.expect("sent");
}

fn agreement(case: &str, from: &str) -> Message {
    let answer = json!({ "agrees_with_peer": true, "reasoning": "You are right." });
    Message::new(case, from, "debate-facilitator", "agreement", answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_names_no_question_answers_the_one_that_is_open() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    let finding = |score: u32| json!({ "summary": "Seen.", "risk_score": score });
    let findings = [finding(20), finding(90)];
    asked(&installation, (&case, [&ann, &ben]), findings, 1).await;
    publish_in_panel(client, &case, &ann, &ben).await;
    let agreed = agreement(&case, &ben);
    agreed.publish(client).await;
    let case_id = case.parse().expect("a case id");
    let decided = installation.decision(&case_id, PATIENCE).await;
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["reason"], &decision["outcome"]["risk_score"]),
        (&json!("settled"), &json!(20.0)),
        "{decision}"
    );
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_two_questions_could_be_meant_it_is_refused() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    let finding = |score: u32, recommendation: &str| json!({ "summary": "Seen.", "risk_score": score, "recommendation": recommendation });
    let findings = [finding(20, "sign"), finding(90, "reject")];
    asked(&installation, (&case, [&ann, &ben]), findings, 2).await;
    publish_in_panel(client, &case, &ann, &ben).await;
    let filter = format!("concord.v1.msg.{case}.debate-facilitator.{ann}.error");
    let error = wait_for("a refusal", PATIENCE, async || {
        let errors = message_bodies(client, &filter).await?;
        errors.first().cloned().ok_or_else(|| "none".to_owned())
    })
    .await;
    // In the words of the dialect in which it was written.
    let error = error.to_string();
    assert!(error.contains("/replyTo"), "{error}");
    // Nothing was taken for an answer of hers.
    let answered = concord_testkit::event_data(client, "debate.*.answered").await;
    assert_eq!(answered.expect("readable"), Vec::<Value>::new());
    installation.holds(PATIENCE).await;
}
