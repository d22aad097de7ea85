//! Answers in a debate that cannot be used.

use concord_testkit::{Message, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::bad_input::stage::{
    PATIENCE, Stage, finding, invalid, over_capacity, text, unauthorized,
};

/// Opens a case whose first debate waits for ann and ben: the case, and the questions to ann and to ben.
async fn debate(stage: &Stage) -> (String, Value, Value) {
    let case = stage.open(&["ann", "ben", "cyd"]).await;
    stage
        .send(&Message::finding(&case, "ann", finding(10), 0.9))
        .await;
    stage
        .send(&Message::finding(&case, "ben", finding(90), 0.6))
        .await;
    // Cyd gives no score, and so has no part in the conflict about it.
    stage
        .send(&Message::finding(
            &case,
            "cyd",
            json!({ "summary": "Nothing." }),
            0.9,
        ))
        .await;
    let to_ann = question(stage, &case, "ann").await;
    let to_ben = question(stage, &case, "ben").await;
    (case, to_ann, to_ben)
}

/// Waits for a question to an agent: the last one.
async fn question(stage: &Stage, case: &str, agent: &str) -> Value {
    let filter = format!("concord.v1.msg.{case}.debate-facilitator.{agent}.question");
    let what = format!("a question to {agent}");
    wait_for(what, PATIENCE, async || {
        let mut questions = message_bodies(stage.client(), &filter).await?;
        questions.pop().ok_or_else(|| "none".to_owned())
    })
    .await
}

/// The answer of an agent that keeps its position.
fn answer(case: &str, agent: &str, question: &Value, answer: Value) -> Message {
    Message::answer(
        case,
        agent,
        "disagreement",
        question["message_id"].as_str().unwrap_or_default(),
        answer,
    )
}

fn unchanged() -> Value {
    json!({ "reasoning": "I keep my position." })
}

/// Lets an agent keep its position in answer to its last question.
async fn keeps_position(stage: &Stage, case: &str, agent: &str) {
    let question = question(stage, case, agent).await;
    let message = answer(case, agent, &question, unchanged());
    stage.send(&message).await;
}

/// Waits until an agent is asked in the second round.
async fn wait_for_second_round(stage: &Stage, case: &str, agent: &str) {
    wait_for("the second round", PATIENCE, async || {
        let asked = question(stage, case, agent).await;
        if asked["round"] == 2 {
            Ok(())
        } else {
            Err(format!("round {}", asked["round"]))
        }
    })
    .await;
}

/// Both parties answer until the case is decided.
async fn decides(stage: &Stage, case: &str) -> Value {
    for agent in ["ann", "ben"] {
        keeps_position(stage, case, agent).await;
    }
    for agent in ["ann", "ben"] {
        wait_for_second_round(stage, case, agent).await;
    }
    for agent in ["ann", "ben"] {
        keeps_position(stage, case, agent).await;
    }
    stage.decision(case).await
}

/// The same when ann has answered in the first round already.
async fn decides_after_ann(stage: &Stage, case: &str) {
    keeps_position(stage, case, "ben").await;
    wait_for_second_round(stage, case, "ann").await;
    stage.settled().await;
    for agent in ["ann", "ben"] {
        keeps_position(stage, case, agent).await;
    }
    stage.decision(case).await;
}

async fn an_answer_of_someone_who_is_no_party(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    for stranger in ["cyd", "mallory"] {
        stage
            .send_refused(
                &answer(&case, stranger, &ann, unchanged()),
                &unauthorized("/from_agent"),
            )
            .await;
    }
    decides(stage, &case).await;
}

async fn an_answer_that_is_too_long(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    let long = json!({ "reasoning": "word ".repeat(401) });
    let error = stage
        .send_refused(
            &answer(&case, "ann", &ann, long),
            &over_capacity("/payload"),
        )
        .await;
    assert!(
        text(&error["payload"]["error_message"]).contains("500"),
        "{error}"
    );
    decides(stage, &case).await;
}

async fn an_answer_to_no_question(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    let unasked =
        |reply_to: &str| Message::answer(&case, "ann", "agreement", reply_to, unchanged());
    for reply_to in ["no-such-question", "d-000-7-0", "", "a.b-1-0", "*"] {
        stage
            .send_refused(&unasked(reply_to), &invalid("/reply_to"))
            .await;
    }
    let mut nothing = unasked("");
    nothing
        .body
        .as_object_mut()
        .expect("an object")
        .remove("reply_to");
    // One that names nothing at all answers the one question that is open (`tests/dialects/unnamed.rs`).
    stage
        .send_refused(
            &nothing
                .with("/message_id", unique("m"))
                .with("/correlation_id", "d-no-such-debate"),
            &invalid("/reply_to"),
        )
        .await;
    // An answer may say which debate it belongs to without saying which question it answers.
    let mut named = Message::answer(&case, "ann", "disagreement", "", unchanged())
        .with("/correlation_id", ann["payload"]["debate_id"].clone());
    named
        .body
        .as_object_mut()
        .expect("an object")
        .remove("reply_to");
    stage.send(&named).await;
    stage.settled().await;
    decides_after_ann(stage, &case).await;
}

async fn an_answer_whose_words_are_not_what_they_should_be(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    for (bad, pointer) in [
        (json!({ "confidence": 1.7 }), "/payload/confidence"),
        (json!({ "evidence": "all of it" }), "/payload/evidence"),
        (json!({ "agrees_with": "b.en" }), "/payload/agrees_with"),
        (json!({ "reasoning": 7 }), "/payload/reasoning"),
    ] {
        stage
            .send_refused(&answer(&case, "ann", &ann, bad), &invalid(pointer))
            .await;
    }
    decides(stage, &case).await;
}

/// It would count as holding the position. One that says it in another word is understood.
async fn a_revision_that_does_not_say_what_is_revised(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    let revision = |payload: Value| {
        let question = ann["message_id"].as_str().unwrap_or_default();
        Message::answer(&case, "ann", "revision", question, payload)
    };
    for bad in [
        json!({ "reasoning": "I was wrong.", "stance": "Risk score: 90" }),
        json!({ "reasoning": "I was wrong." }),
    ] {
        stage
            .send_refused(&revision(bad), &invalid("/payload"))
            .await;
    }
    let named = json!({ "position": "Risk score: 90", "reasoning": "I was wrong." });
    stage.send(&revision(named)).await;
    keeps_position(stage, &case, "ben").await;
    let decision = stage.decision(&case).await;
    assert_eq!(decision["outcome"]["risk_score"], 90.0, "{decision}");
}

async fn a_second_answer_and_a_late_one(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    stage.send(&answer(&case, "ann", &ann, unchanged())).await;
    stage.settled().await;
    let sent = stage.send(&answer(&case, "ann", &ann, unchanged())).await;
    assert_eq!(
        stage.error_to("ann", &sent).await["payload"]["error_code"],
        "INVALID_REQUEST"
    );
    decides_after_ann(stage, &case).await;
    let sent = stage.send(&answer(&case, "ann", &ann, unchanged())).await;
    assert_eq!(
        stage.error_to("ann", &sent).await["payload"]["error_code"],
        "TIMEOUT"
    );
}

/// Events nest a value deeper than the message does, and must be read again. A value that nests at all is none that a score can have.
async fn a_value_however_deep_it_is_nested(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    let deep = |levels: usize| -> Value {
        let value: Value =
            serde_json::from_str(&("[".repeat(levels) + &"]".repeat(levels))).expect("a value");
        json!({ "value": value, "reasoning": "Deep." })
    };
    for levels in [126, 100, 33, 32, 1] {
        stage
            .send_refused(
                &answer(&case, "ann", &ann, deep(levels)),
                &invalid("/payload/value"),
            )
            .await;
    }
    decides(stage, &case).await;
}

/// Every event with a position keeps its value, so the value counts among the tokens of an answer.
async fn a_value_as_large_as_a_message_may_be(stage: &Stage) {
    let (case, ann, _) = debate(stage).await;
    let large = json!({ "value": "x".repeat(1_000_000), "reasoning": "Much." });
    stage
        .send_refused(
            &answer(&case, "ann", &ann, large),
            &over_capacity("/payload"),
        )
        .await;
    decides(stage, &case).await;
}

/// Each has a debate of its own. An event that could not be read again would soon be a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_cannot_be_used_change_no_debate() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    an_answer_of_someone_who_is_no_party(&stage).await;
    an_answer_that_is_too_long(&stage).await;
    an_answer_to_no_question(&stage).await;
    an_answer_whose_words_are_not_what_they_should_be(&stage).await;
    a_revision_that_does_not_say_what_is_revised(&stage).await;
    a_second_answer_and_a_late_one(&stage).await;
    a_value_however_deep_it_is_nested(&stage).await;
    a_value_as_large_as_a_message_may_be(&stage).await;
    stage.goes_on().await;
}
