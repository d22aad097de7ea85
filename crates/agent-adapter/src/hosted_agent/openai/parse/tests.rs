use super::*;

fn asked(kind: &str, payload: Value) -> Envelope {
    serde_json::from_value(json!({
        "message_id": "m-1", "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "debate-facilitator",
        "to_agent": "ann", "message_type": kind, "requires_response": true, "payload": payload
    }))
    .unwrap()
}

fn debate() -> Envelope {
    let position = |agent: &str, words: &str| json!({ "agent_id": agent, "position": words, "confidence": 0.8 });
    asked(
        "question",
        json!({
            "debate_id": "d-1", "case_id": "c-1", "round": 1, "max_rounds": 2, "limits": { "max_tokens": 20 },
            "conflict": { "conflict_id": "d-1", "type": "risk_score_disagreement", "topic": "t", "subject": "s" },
            "your_position": position("ann", "sign"), "other_positions": [position("ben", "reject")],
            "deadline": "2026-11-21T20:16:00.000Z", "reply_with": ["agreement", "disagreement", "revision"],
        }),
    )
}

#[test]
fn the_reply_to_a_peer_review_becomes_the_right_kind_of_answer() {
    let cases = [
        (
            r#"{"revised_position":"reject","confidence":0.7,"agrees_with_peer":true,"reasoning":"r"}"#,
            "agreement",
        ),
        (
            r#"{"revised_position":"sign","confidence":0.7,"agrees_with_peer":false,"reasoning":"r"}"#,
            "disagreement",
        ),
        (
            r#"{"revised_position":"negotiate","agrees_with_peer":false,"reasoning":"r"}"#,
            "revision",
        ),
        (
            r#"{"revised_position":"","agrees_with":null,"agrees_with_peer":true}"#,
            "agreement",
        ),
        ("```json\n{\"agrees_with_peer\":false}\n```", "disagreement"),
        (
            r#"{"message_type":"disagreement","payload":{"agrees_with_peer":false},"metadata":{"confidence":0.5}}"#,
            "disagreement",
        ),
    ];
    for (words, kind) in cases {
        let said = parse_reply(words, &debate()).unwrap_or_else(|wrong| panic!("{words}: {wrong}"));
        assert_eq!(said.message_type.as_str(), kind, "{words}");
    }
    assert_eq!(
        parse_reply(cases[5].0, &debate()).unwrap().confidence,
        Some(0.5)
    );
}

#[test]
fn a_reply_becomes_only_what_answers_the_message() {
    for (words, part) in [
        ("", "empty or was cut off"),
        ("Sure! Here it is", "not one JSON object"),
        (
            r#"{"agrees_with_peer":true} and more"#,
            "not one JSON object",
        ),
        ("[1]", "no object"),
        ("{}", "lacks"),
        (r#"{"agrees_with_peer":"perhaps"}"#, "/agrees_with_peer"),
        (r#"{"agrees_with_peer":true,"confidence":7}"#, "from 0 to 1"),
        (
            r#"{"agrees_with_peer":true,"agrees_with":"a b.c"}"#,
            "/agrees_with",
        ),
        (
            r#"{"agrees_with_peer":false,"reasoning":"far too many words, more than the twenty tokens that are allowed for an answer here"}"#,
            "longer than 20 tokens",
        ),
        (
            r#"{"message_type":"ruling","payload":{"agrees_with_peer":true}}"#,
            "\"ruling\"",
        ),
        (
            r#"{"message_type":"event","agrees_with_peer":true}"#,
            "\"event\"",
        ),
    ] {
        let wrong = parse_reply(words, &debate()).unwrap_err();
        assert!(wrong.contains(part), "{words}: {wrong}");
    }
}

#[test]
fn other_messages_have_answers_of_their_own() {
    let kind = |asked: &Envelope, words: &str| {
        parse_reply(words, asked)
            .map(|said| (said.message_type.to_string(), said.payload.to_string()))
    };
    let task = asked("task_assignment", json!({}));
    let (name, payload) =
        kind(&task, r#"{"summary":"s","risk_score":40,"confidence":0.6}"#).unwrap();
    assert_eq!(
        (name.as_str(), payload.as_str()),
        ("finding", r#"{"summary":"s","risk_score":40.0}"#)
    );
    assert_eq!(
        parse_reply(r#"{"summary":"s","confidence":0.6}"#, &task)
            .unwrap()
            .confidence,
        Some(0.6)
    );
    assert!(
        kind(&task, r#"{"risk_score":40}"#)
            .unwrap_err()
            .contains("/payload/summary")
    );
    assert!(
        kind(&task, r#"{"summary":"s","risk_score":400}"#)
            .unwrap_err()
            .contains("/payload/risk_score")
    );
    let request = asked("request", json!({ "action": "a" }));
    let (name, payload) = kind(
        &request,
        r#"{"status":"partial","result":{"a":1},"errors":["e"]}"#,
    )
    .unwrap();
    assert_eq!(name, "response");
    let expected =
        json!({ "status": "partial", "result": { "a": 1 }, "errors": ["e"], "warnings": [] });
    assert_eq!(serde_json::from_str::<Value>(&payload).unwrap(), expected);
    let (_, payload) = kind(&request, r#"{"anything":[1]}"#).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&payload).unwrap()["result"],
        json!({ "anything": [1] })
    );
    let challenge = asked("challenge", json!({}));
    assert_eq!(
        kind(&challenge, r#"{"statement":"s"}"#).unwrap().0,
        "evidence"
    );
    assert!(kind(&challenge, "{}").is_err());
    assert_eq!(
        kind(
            &asked("request", json!({ "action": "mediate" })),
            r#"{"statement":"s"}"#
        )
        .unwrap()
        .0,
        "evidence"
    );
    assert_eq!(
        kind(
            &asked("question", json!({ "text": "?" })),
            r#"{"text":"so"}"#
        )
        .unwrap()
        .1,
        r#"{"text":"so"}"#
    );
}

#[test]
fn what_a_model_puts_into_the_result_of_a_response_is_its_answer() {
    let read = |asked: &Envelope, words: Value| {
        let said = parse_reply(&words.to_string(), asked);
        let said = said.unwrap_or_else(|wrong| panic!("{words}: {wrong}"));
        let payload: Value = serde_json::from_str(said.payload.get()).unwrap();
        (said.message_type.to_string(), payload, said.confidence)
    };
    let success = |result: Value| json!({ "status": "success", "result": result, "errors": [], "warnings": [] });
    let (kind, payload, confidence) = read(
        &asked("task_assignment", json!({})),
        success(json!({ "summary": "s", "risk_score": 40, "confidence": 0.6 })),
    );
    assert_eq!((kind.as_str(), confidence), ("finding", Some(0.6)));
    assert_eq!(payload, json!({ "summary": "s", "risk_score": 40.0 }));
    let agrees = success(json!({ "agrees_with_peer": true }));
    let whole =
        json!({ "message_type": "response", "payload": agrees, "metadata": { "confidence": 0.7 } });
    let (kind, _, confidence) = read(&debate(), whole);
    assert_eq!((kind.as_str(), confidence), ("agreement", Some(0.7)));
    let statement = success(json!({ "statement": "s" }));
    let mediate = asked("request", json!({ "action": "mediate" }));
    for asked in [asked("challenge", json!({})), mediate] {
        assert_eq!(read(&asked, statement.clone()).0, "evidence");
    }
    let question = asked("question", json!({ "text": "?" }));
    let (_, payload, _) = read(&question, success(json!({ "text": "so" })));
    assert_eq!(payload, json!({ "text": "so" }));
    // One that says that it failed has no answer in it.
    let failed = json!({ "status": "failure", "result": { "agrees_with_peer": true } });
    assert!(parse_reply(&failed.to_string(), &debate()).is_err());
}

fn assigned(strategy: &str) -> Envelope {
    let work = json!({ "task_id": "t-1", "strategy": strategy, "result_bytes_max": 20 });
    let payload = json!({ "task": { "type": "sum" }, "work": work });
    asked("task_assignment", payload)
}

#[test]
fn a_task_that_a_strategy_hands_out_is_answered_by_a_result_and_a_call_by_a_bid() {
    let read = |asked: &Envelope, words: &str| {
        let said = parse_reply(words, asked)?;
        let payload: Value = serde_json::from_str(said.payload.get()).unwrap();
        Ok::<_, String>((said.message_type.to_string(), payload, said.confidence))
    };
    let words = r#"{"status":"success","result":3,"confidence":0.6}"#;
    let (kind, payload, confidence) = read(&assigned("round_robin"), words).unwrap();
    assert_eq!((kind.as_str(), confidence), ("task_result", Some(0.6)));
    assert_eq!(
        payload,
        json!({ "status": "success", "result": 3, "why": "" })
    );
    let words = r#"{"status":"failure","result":null,"why":"No input."}"#;
    let (_, payload, _) = read(&assigned("poll"), words).unwrap();
    assert_eq!(
        payload,
        json!({ "status": "failure", "result": null, "why": "No input." })
    );
    // What the coordinator would refuse the model can mend.
    for (strategy, words, part) in [
        (
            "poll",
            r#"{"status":"success","result":"maybe"}"#,
            "\"abstain\"",
        ),
        (
            "round_robin",
            r#"{"result":"far more than twenty bytes"}"#,
            "at most 20",
        ),
    ] {
        let wrong = read(&assigned(strategy), words).unwrap_err();
        assert!(wrong.contains(part), "{wrong}");
    }

    let call = asked("call_for_proposals", json!({ "task": { "type": "sum" } }));
    let words = r#"{"price":1,"time_ms":10,"confidence":0.9}"#;
    let (kind, payload, confidence) = read(&call, words).unwrap();
    assert_eq!((kind.as_str(), confidence), ("bid", Some(0.9)));
    let bid = json!({ "price": 1.0, "time_ms": 10, "confidence": 0.9, "capability": 1.0 });
    assert_eq!(payload, bid);
    let (kind, payload, _) = read(&call, r#"{"why":"Not mine."}"#).unwrap();
    assert_eq!(
        (kind.as_str(), payload),
        ("refuse", json!({ "why": "Not mine." }))
    );
    assert!(
        read(&call, r#"{"price":-1,"time_ms":10,"confidence":0.9}"#)
            .unwrap_err()
            .contains("/payload/price")
    );
    assert!(read(&call, "{}").is_err());
}
