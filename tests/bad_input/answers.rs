//! Answers in a debate that cannot be used.

use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, stored, unique, until};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage, finding, invalid, over_capacity, unauthorized};

/// A case whose first debate waits for ann and ben; with its questions to them.
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
    let (ann, ben) = (
        question(stage, &case, "ann").await,
        question(stage, &case, "ben").await,
    );
    (case, ann, ben)
}

async fn question(stage: &Stage, case: &str, agent: &str) -> Value {
    let filter = format!("concord.v1.msg.{case}.debate-facilitator.{agent}.question");
    let what = format!("a question to {agent}");
    let found = until(&what, PATIENCE, async || {
        let questions = stored(stage.client(), StreamKind::Messages, &filter).await?;
        questions
            .last()
            .map(Stored::json)
            .ok_or_else(|| "none".to_owned())
    });
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

fn answer(case: &str, agent: &str, question: &Value, answer: Value) -> Message {
    Message::answer(
        case,
        agent,
        "disagreement",
        question["message_id"].as_str().unwrap_or_default(),
        answer,
    )
}

fn kept() -> Value {
    json!({ "reasoning": "I keep my position." })
}

/// Both parties answer until the case is decided.
async fn decides(stage: &Stage, case: &str) -> Value {
    for agent in ["ann", "ben"] {
        stage
            .send(&answer(
                case,
                agent,
                &question(stage, case, agent).await,
                kept(),
            ))
            .await;
    }
    until("the second round", PATIENCE, async || {
        let asked = question(stage, case, "ben").await;
        if asked["round"] == 2 {
            Ok(())
        } else {
            Err(format!("round {}", asked["round"]))
        }
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    for agent in ["ann", "ben"] {
        stage
            .send(&answer(
                case,
                agent,
                &question(stage, case, agent).await,
                kept(),
            ))
            .await;
    }
    stage.decision(case).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_someone_who_is_no_party() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    for stranger in ["cyd", "mallory"] {
        let sent = stage.send(&answer(&case, stranger, &ann, kept())).await;
        stage
            .refused(stranger, &sent, &unauthorized("/from_agent"))
            .await;
    }
    decides(&stage, &case).await;
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    let long = json!({ "reasoning": "word ".repeat(401) });
    let sent = stage.send(&answer(&case, "ann", &ann, long)).await;
    let error = stage
        .refused("ann", &sent, &over_capacity("/payload"))
        .await;
    assert!(
        error["payload"]["error_message"]
            .as_str()
            .unwrap_or_default()
            .contains("500"),
        "{error}"
    );
    decides(&stage, &case).await;
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_no_question() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    let unasked = |reply_to: &str| Message::answer(&case, "ann", "agreement", reply_to, kept());
    for reply_to in ["no-such-question", "d-000-7-0", "", "a.b-1-0", "*"] {
        let sent = stage.send(&unasked(reply_to)).await;
        stage.refused("ann", &sent, &invalid("/reply_to")).await;
    }
    let mut nothing = unasked("");
    nothing
        .body
        .as_object_mut()
        .expect("an object")
        .remove("reply_to");
    let sent = stage.send(&nothing).await;
    stage.refused("ann", &sent, &invalid("/reply_to")).await;
    let sent = stage
        .send(
            &nothing
                .with("/message_id", unique("m"))
                .with("/correlation_id", "d-no-such-debate"),
        )
        .await;
    stage.refused("ann", &sent, &invalid("/reply_to")).await;
    // An answer may say which debate it belongs to without saying which question it answers.
    let mut named = Message::answer(&case, "ann", "disagreement", "", kept())
        .with("/correlation_id", ann["payload"]["debate_id"].clone());
    named
        .body
        .as_object_mut()
        .expect("an object")
        .remove("reply_to");
    stage.send(&named).await;
    stage.settled().await;
    decides_after_ann(&stage, &case).await;
    stage.goes_on().await;
}

/// Ann has answered in the first round already.
async fn decides_after_ann(stage: &Stage, case: &str) {
    stage
        .send(&answer(
            case,
            "ben",
            &question(stage, case, "ben").await,
            kept(),
        ))
        .await;
    until("the second round", PATIENCE, async || {
        let asked = question(stage, case, "ann").await;
        if asked["round"] == 2 {
            Ok(())
        } else {
            Err(format!("round {}", asked["round"]))
        }
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    stage.settled().await;
    for agent in ["ann", "ben"] {
        stage
            .send(&answer(
                case,
                agent,
                &question(stage, case, agent).await,
                kept(),
            ))
            .await;
    }
    stage.decision(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_words_are_not_what_they_should_be() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    for (bad, pointer) in [
        (json!({ "confidence": 1.7 }), "/payload/confidence"),
        (json!({ "evidence": "all of it" }), "/payload/evidence"),
        (json!({ "agrees_with": "b.en" }), "/payload/agrees_with"),
        (json!({ "reasoning": 7 }), "/payload/reasoning"),
    ] {
        let sent = stage.send(&answer(&case, "ann", &ann, bad)).await;
        stage.refused("ann", &sent, &invalid(pointer)).await;
    }
    decides(&stage, &case).await;
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_and_a_late_one() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    stage.send(&answer(&case, "ann", &ann, kept())).await;
    stage.settled().await;
    let sent = stage.send(&answer(&case, "ann", &ann, kept())).await;
    assert_eq!(
        stage.error_to("ann", &sent).await["payload"]["error_code"],
        "INVALID_REQUEST"
    );
    decides_after_ann(&stage, &case).await;
    let sent = stage.send(&answer(&case, "ann", &ann, kept())).await;
    assert_eq!(
        stage.error_to("ann", &sent).await["payload"]["error_code"],
        "TIMEOUT"
    );
    stage.goes_on().await;
}

/// A value is kept in facts, deeper inside than in the message it came in: what a message may hold must not be more
/// than what a fact can hold and still be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_nested_as_deep_as_can_be_read() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    let (case, ann, ben) = debate(&stage).await;
    let deep = |levels: usize| -> Value {
        let value: Value =
            serde_json::from_str(&("[".repeat(levels) + &"]".repeat(levels))).expect("a value");
        json!({ "value": value, "reasoning": "Deep." })
    };
    for levels in [126, 100, 33] {
        let sent = stage.send(&answer(&case, "ann", &ann, deep(levels))).await;
        stage
            .refused("ann", &sent, &invalid("/payload/value"))
            .await;
    }
    for (agent, asked) in [("ann", &ann), ("ben", &ben)] {
        stage.send(&answer(&case, agent, asked, deep(32))).await;
    }
    stage.decision(&case).await;
    stage.goes_on().await;
}

/// A value is kept in every fact that holds a position, so it counts among the tokens of an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_as_large_as_a_message_may_be() {
    let stage = Stage::start().await;
    let (case, ann, _) = debate(&stage).await;
    let large = json!({ "value": "x".repeat(1_000_000), "reasoning": "Much." });
    let sent = stage.send(&answer(&case, "ann", &ann, large)).await;
    stage
        .refused("ann", &sent, &over_capacity("/payload"))
        .await;
    decides(&stage, &case).await;
    stage.goes_on().await;
}
