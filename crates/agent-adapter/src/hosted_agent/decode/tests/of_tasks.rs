//! Answers to tasks that a strategy hands out, and to calls for proposals.

use super::*;

fn general(content: &Value) -> Value {
    json!({ "message_type": "RESPONSE", "content": content })
}

fn failed() -> Value {
    json!({ "status": "failure", "result": null, "errors": ["Too long.", "Too dear."] })
}

/// The task that a strategy hands out, as its assignment or award has it.
fn work() -> Value {
    let work = json!({ "task_id": "t-1", "strategy": "round_robin", "result_bytes_max": 1_000 });
    json!({ "task": { "type": "sum" }, "work": work })
}

#[test]
fn an_answer_to_a_task_that_a_strategy_hands_out_is_its_result() {
    let panel =
        |content: &Value| json!({ "messageType": "finding", "content": content.to_string() });
    let canonical =
        |kind: &str, payload: &Value| json!({ "message_type": kind, "payload": payload });
    let result = |status: &str, result: Value, why: &str| json!({ "status": status, "result": result, "why": why });
    let done = json!({ "status": "success", "result": 3, "warnings": ["Rounded."] });
    for (content, payload) in [
        (
            json!({ "sum": 3, "confidence": 0.5 }),
            result("success", json!({ "sum": 3, "confidence": 0.5 }), ""),
        ),
        (
            json!({ "status": "done", "sum": 3 }),
            result("success", json!({ "status": "done", "sum": 3 }), ""),
        ),
        (
            json!({ "result": "yes" }),
            result("success", json!("yes"), ""),
        ),
        (done.clone(), result("success", json!(3), "")),
        (
            json!({ "status": "partial", "sum": 3 }),
            result("partial", json!({ "sum": 3 }), ""),
        ),
        (
            failed(),
            result("failure", Value::Null, "Too long. Too dear."),
        ),
    ] {
        for kind in ["task_assignment", "award"] {
            let given = asked(kind, work());
            let expected = ("task_result".to_owned(), payload.clone());
            assert_eq!(
                said(Dialect::Collaboration, &given, &general(&content)),
                expected
            );
            assert_eq!(
                said(Dialect::Concord, &given, &canonical("response", &content)),
                expected
            );
        }
    }
    let given = asked("task_assignment", work());
    let words = said(Dialect::Collaboration, &given, &general(&json!("Three.")));
    assert_eq!(words.1, result("success", json!("Three."), ""));
    // An agent of specification 1 answers every assignment with a finding.
    let found = said(Dialect::Panel, &given, &panel(&json!({ "sum": 3 })));
    assert_eq!(found.1, result("success", json!({ "sum": 3 }), ""));
    // What says what it is stays that.
    for (kind, payload) in [
        ("task_result", json!({ "result": 3 })),
        ("refuse", json!({ "why": "No." })),
        ("handoff", json!({ "to": "ben" })),
    ] {
        assert_eq!(
            said(Dialect::Concord, &given, &canonical(kind, &payload)),
            (kind.to_owned(), payload)
        );
    }
}

#[test]
fn an_answer_to_a_call_for_proposals_is_a_bid_or_says_why_there_is_none() {
    let call = asked("call_for_proposals", json!({ "task": { "type": "sum" } }));
    let bid = json!({ "price": 2.0, "time_ms": 5, "confidence": 0.5, "capability": 1.0 });
    for content in [
        json!({ "price": 2, "time_ms": 5, "confidence": 0.5 }),
        json!({ "status": "success", "result": { "price": 2, "time_ms": 5, "confidence": 0.5 } }),
    ] {
        assert_eq!(
            said(Dialect::Collaboration, &call, &general(&content)),
            ("bid".to_owned(), bid.clone())
        );
    }
    let beside = json!({ "message_type": "response", "payload": { "price": 2, "time_ms": 5 }, "metadata": { "confidence": 0.5 } });
    assert_eq!(
        said(Dialect::Concord, &call, &beside),
        ("bid".to_owned(), bid)
    );
    for (content, why) in [
        (failed(), "Too long. Too dear."),
        (json!({ "why": "No." }), "No."),
    ] {
        assert_eq!(
            said(Dialect::Collaboration, &call, &general(&content)),
            ("refuse".to_owned(), json!({ "why": why }))
        );
    }
    for (content, pointer) in [
        (json!("Five."), "/payload"),
        (
            json!({ "price": 2, "time_ms": 5, "confidence": 7 }),
            "/payload/confidence",
        ),
        (
            json!({ "price": "two", "time_ms": 5, "confidence": 0 }),
            "/payload/price",
        ),
    ] {
        let line = general(&content).to_string();
        let fault = read_in(Dialect::Collaboration, &call, &line).unwrap_err();
        assert!(fault.pointer.starts_with(pointer), "{content}: {fault}");
    }
}
