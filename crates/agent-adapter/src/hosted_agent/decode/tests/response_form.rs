//! Findings and answers in a debate that an agent puts into a response, as specification 5 has it.

use super::*;

fn question() -> Envelope {
    let position = |agent: &str, score: u32| json!({ "agent_id": agent, "position": format!("Risk score: {score}"), "value": score, "confidence": 0.8 });
    asked(
        "question",
        json!({
            "debate_id": "d-1", "case_id": "c-1",
            "conflict": { "conflict_id": "d-1", "type": "risk_score_disagreement", "topic": "Risk", "subject": "risk_score" },
            "round": 1, "max_rounds": 2, "your_position": position("alice", 20), "other_positions": [position("bob", 80)],
            "limits": { "max_tokens": 500 }, "deadline": "2026-11-21T20:16:00.000Z", "reply_with": ["agreement"],
        }),
    )
}

fn response(status: &str, result: &Value) -> Value {
    json!({ "message_type": "response",
            "payload": { "status": status, "result": result, "errors": [], "warnings": [] } })
}

#[test]
fn the_result_of_a_response_is_the_answer_in_a_debate() {
    for (result, kind) in [
        (
            json!({ "revised_position": "Risk score: 50", "confidence": 0.7, "agrees_with_peer": true, "reasoning": "because" }),
            "agreement",
        ),
        (
            json!({ "revised_position": "Risk score: 50", "reasoning": null }),
            "revision",
        ),
        (json!({ "reasoning": "I stay." }), "disagreement"),
        (
            json!({ "revised_position": 50, "agrees_with_peer": true }),
            "agreement",
        ),
    ] {
        let bare = json!({ "message_type": "response", "payload": result });
        let expected = (kind.to_owned(), result.clone());
        for line in [
            response("success", &result),
            response("partial", &result),
            bare,
        ] {
            assert_eq!(said(Dialect::Exchange, &question(), &line), expected);
        }
    }
}

#[test]
fn the_result_of_a_response_is_the_finding() {
    let finding = json!({ "summary": "Risky.", "risk_score": 70.0 });
    let line = response("success", &finding);
    let task = asked("task_assignment", json!({}));
    assert_eq!(
        said(Dialect::Exchange, &task, &line),
        ("finding".to_owned(), finding.clone())
    );
    // In an envelope that says its type, too.
    let line =
        json!({ "message_type": "finding", "payload": { "status": "success", "result": finding } });
    assert_eq!(
        said(Dialect::Concord, &task, &line),
        ("finding".to_owned(), finding)
    );
}

#[test]
fn a_response_that_is_asked_for_keeps_its_form() {
    let request = asked("request", json!({ "action": "say" }));
    let line = response("success", &json!({ "summary": "Risky." }));
    assert_eq!(
        said(Dialect::Exchange, &request, &line),
        ("response".to_owned(), line["payload"].clone())
    );
}

#[test]
fn what_has_failed_or_has_more_than_a_response_is_not_taken_apart() {
    let task = asked("task_assignment", json!({}));
    for payload in [
        json!({ "status": "failure", "result": { "summary": "Half." }, "errors": ["No file."] }),
        json!({ "summary": "Risky.", "result": { "lines": 7 } }),
        json!({ "status": "success", "result": {} }),
        json!({ "status": "success", "result": "Risky." }),
    ] {
        let line = json!({ "message_type": "response", "payload": payload });
        assert_eq!(
            said(Dialect::Exchange, &task, &line),
            ("finding".to_owned(), payload)
        );
    }
}
