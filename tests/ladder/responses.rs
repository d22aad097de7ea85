//! A challenged agent, a challenger and a mediator that know one word for all answers, or that put an answer into the result of a response.

use concord_testkit::{Message, unique};
use serde_json::{Value, json};

use crate::ladder::stage::Stage;

/// Answers a message of the facilitator by the form of a response, as a message of this type.
async fn answers(stage: &Stage, from: &str, asked: &Value, kind: &str, result: Value) {
    let payload = json!({ "status": "success", "result": result, "errors": [], "warnings": [] });
    let message = Message::new(&stage.case, from, "debate-facilitator", kind, payload);
    let message = message.with("/reply_to", asked["message_id"].clone());
    stage.send(&message).await;
}

/// Lets a challenge go to the mediator, whose opinion is the last that is waited for.
async fn is_heard(of_challenged: &str, of_mediator: &str) {
    let mediator = unique("mediator");
    let finding = || json!({ "summary": "Seen." });
    let terms = json!({
        "gates": ["valuation"], "policy": { "ladder": { "time_scale": 1, "mediator": mediator } },
    });
    let stage = Stage::decided(terms, [finding(), finding()]).await;
    stage.challenge().await;
    let (finance, strategy) = (&stage.finance, &stage.strategy);
    let challenge = stage.message_to(finance, "challenge", |_| true).await;
    let evidence = json!({ "evidence": ["10-K page 45"] });
    answers(&stage, finance, &challenge, of_challenged, evidence).await;
    let question = stage.message_to(strategy, "question", |_| true).await;
    let answer = json!({ "agrees_with_peer": false, "reasoning": "That is last year's." });
    answers(&stage, strategy, &question, "response", answer).await;
    assert_eq!(stage.escalated_to(2).await["reason"], "rejected");
    let request = stage.message_to(&mediator, "request", |_| true).await;
    let statement = json!({ "statement": "The filing is of last year." });
    answers(&stage, &mediator, &request, of_mediator, statement).await;
    let opinion = stage.event("debate", "opinion_given", |_| true).await;
    let opinion = opinion["data"].to_string();
    assert!(opinion.contains("The filing is of last year."), "{opinion}");
    // Nobody has a track record, so it goes on to a person.
    stage.escalated_to(3).await;
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_to_a_challenge_and_to_the_question_for_an_opinion_is_evidence() {
    is_heard("response", "response").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_may_stand_in_the_result_of_a_response() {
    is_heard("evidence", "evidence").await;
}
