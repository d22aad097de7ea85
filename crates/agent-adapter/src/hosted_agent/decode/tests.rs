use serde_json::{Value, json};

use super::*;

mod of_tasks;
mod response_form;

fn asked(kind: &str, payload: Value) -> Envelope {
    let question = json!({
        "message_id": "d-1-7-0", "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "debate-facilitator",
        "to_agent": "alice", "message_type": kind, "case_id": "c-1", "correlation_id": "d-1", "round": 1,
        "payload": payload
    });
    serde_json::from_value(question).unwrap()
}

fn read_in(speaks: Dialect, asked: &Envelope, line: &str) -> Result<Option<Envelope>, Fault> {
    let asked = AnswerTarget::of(asked, &AgentId::new("alice").unwrap(), Timestamp::default());
    parse_answer(
        &RawAnswer {
            body: line.as_bytes(),
            dialect: None,
            card_dialect: speaks,
        },
        &asked,
        Timestamp::default(),
        Some(5),
    )
}

fn read(line: &str) -> Result<Option<Envelope>, Fault> {
    read_in(Dialect::Concord, &asked("question", json!({})), line)
}

fn said(speaks: Dialect, asked: &Envelope, line: &Value) -> (String, Value) {
    let answer = read_in(speaks, asked, &line.to_string())
        .unwrap_or_else(|fault| panic!("{speaks}: {fault}: {line}"));
    let answer = answer.unwrap();
    assert_eq!(
        (answer.message_id.as_str(), answer.reply_to.as_deref()),
        ("d-1-7-0-alice", Some("d-1-7-0")),
        "{line}"
    );
    (answer.message_type.to_string(), answer.payload().unwrap())
}

#[test]
fn a_line_becomes_an_answer_to_what_was_asked() {
    let answer = read(r#"{"message_type":"agreement","payload":{"reasoning":"ok"}}"#)
        .unwrap()
        .unwrap();
    assert_eq!(answer.message_id.as_str(), "d-1-7-0-alice");
    assert_eq!(answer.reply_to.as_deref(), Some("d-1-7-0"));
    assert_eq!(answer.correlation_id.as_deref(), Some("d-1"));
    assert_eq!(answer.to_agent.as_str(), "debate-facilitator");
    assert_eq!(answer.round, Some(1));
}

#[test]
fn nothing_to_say_is_no_message_and_nonsense_is_a_fault() {
    let task = asked("task_assignment", json!({}));
    for speaks in Dialect::ALL {
        assert!(read_in(speaks, &task, "{}").unwrap().is_none(), "{speaks}");
        for line in [
            "",
            "hello",
            "[1]",
            r#"{"foo":1}"#,
            r#"{"note":"x","id":"m-1"}"#,
            r#"{"role":"assistant"}"#,
        ] {
            assert!(read_in(speaks, &task, line).is_err(), "{speaks}: {line}");
        }
    }
    for line in [r#"{"payload":{}}"#, r#"{"message_type":"finding"}"#] {
        assert!(read(line).is_err(), "{line}");
    }
    for (line, place) in [
        (
            r#"{"message_type":"finding","payload":{},"metadata":{"confidence":7}}"#,
            "/metadata/confidence",
        ),
        (
            r#"{"message_type":"finding","payload":["risky"]}"#,
            "/payload",
        ),
        (
            r#"{"message_type":"finding","payload":{},"metadata":{"version":"9.0"}}"#,
            "/metadata/version",
        ),
    ] {
        assert_eq!(read(line).unwrap_err().pointer, place, "{line}");
    }
    let of_none = read(r#"{"foo":1}"#).unwrap_err();
    assert!(
        of_none.message.contains("none of the dialects"),
        "{of_none}"
    );
}

/// A finding in each dialect, as an agent writes it who names its asker and case, and in as few words as will do.
fn findings() -> [(Dialect, Value, Value); 6] {
    let panel = json!({ "summary": "Risky.", "riskScore": 70.0 }).to_string();
    let content = json!({ "summary": "Risky.", "risk_score": 70.0 });
    let text = content.to_string();
    let to = "debate-facilitator";
    [
        (
            Dialect::Concord,
            json!({ "message_id": "x", "message_type": "finding", "payload": content, "reply_to": "d-1-7-0" }),
            json!({ "message_type": "finding", "payload": content }),
        ),
        (
            Dialect::Panel,
            json!({ "id": "x", "round": 1, "sender": "alice", "recipients": [to], "messageType": "finding",
                    "content": panel, "timestamp": 1_770_624_010_000_i64, "replyTo": "d-1-7-0" }),
            json!({ "content": panel }),
        ),
        (
            Dialect::Collaboration,
            json!({ "id": "x", "sender_id": "alice", "receiver_id": to, "message_type": "RESPONSE", "content": content,
                    "metadata": {}, "reply_to": "d-1-7-0" }),
            json!({ "message_type": "RESPONSE", "content": content }),
        ),
        (
            Dialect::Analyst,
            json!({ "from_agent": "alice", "to_agent": to, "message_type": "finding", "priority": "high",
                    "content": { "finding": "Risky.", "risk_score": 70.0, "confidence": 0.8 },
                    "timestamp": "2026-01-01T00:00:00Z", "requires_response": false }),
            json!({ "content": { "finding": "Risky.", "risk_score": 70.0 } }),
        ),
        (
            Dialect::Session,
            json!({ "interaction_type": "FINDING", "source_agent_id": "alice", "target_agent_id": to,
                    "conversation_id": "c-1", "content": text, "reply_to_message_id": "d-1-7-0", "metadata": {} }),
            json!({ "content": text }),
        ),
        (
            Dialect::Exchange,
            json!({ "message_id": "x", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "alice", "to_agent": to,
                    "message_type": "response", "correlation_id": "d-1", "priority": "normal", "payload": content,
                    "metadata": {} }),
            json!({ "message_type": "response", "payload": content }),
        ),
    ]
}

#[test]
fn an_answer_is_read_in_its_dialect_whole_or_short() {
    let task = asked("task_assignment", json!({}));
    let finding = json!({ "summary": "Risky.", "risk_score": 70.0 });
    for (dialect, whole, short) in findings() {
        for line in [&whole, &short] {
            assert_eq!(
                said(dialect, &task, line),
                ("finding".to_owned(), finding.clone()),
                "{dialect}: {line}"
            );
        }
        // What only one dialect has is read in that, whatever the card says.
        if ![Dialect::Concord, Dialect::Exchange].contains(&dialect) {
            assert_eq!(
                said(Dialect::Concord, &task, &whole),
                ("finding".to_owned(), finding.clone()),
                "{dialect}"
            );
        }
        // The canonical form is read of everyone.
        let canonical = json!({ "message_type": "finding", "payload": finding });
        assert_eq!(
            said(dialect, &task, &canonical),
            ("finding".to_owned(), finding.clone()),
            "{dialect}"
        );
    }
}

#[test]
fn an_answer_that_says_only_that_it_is_one_is_what_was_asked_for() {
    let general = |content: Value| json!({ "sender_id": "alice", "message_type": "RESPONSE", "content": content });
    let debate = asked("question", question());
    for (asked, content, kind, payload) in [
        (
            asked("task_assignment", json!({})),
            json!("Risky."),
            "finding",
            json!({ "summary": "Risky." }),
        ),
        (
            asked("request", json!({ "action": "say" })),
            json!("Yes."),
            "response",
            json!({ "content": "Yes." }),
        ),
        (
            asked("question", json!({})),
            json!("Both."),
            "clarification",
            json!({ "text": "Both." }),
        ),
        (
            asked("challenge", json!({})),
            json!("Page 4."),
            "evidence",
            json!({ "statement": "Page 4." }),
        ),
        (
            debate.clone(),
            json!("I stay."),
            "disagreement",
            json!({ "reasoning": "I stay." }),
        ),
        (
            debate.clone(),
            json!({ "agrees_with_peer": true }),
            "agreement",
            json!({ "agrees_with_peer": true }),
        ),
        (
            debate.clone(),
            json!({ "revised_position": "high" }),
            "disagreement",
            json!({ "revised_position": "high" }),
        ),
        (
            debate.clone(),
            json!({ "revised_position": "low" }),
            "revision",
            json!({ "revised_position": "low" }),
        ),
    ] {
        assert_eq!(
            said(Dialect::Collaboration, &asked, &general(content)),
            (kind.to_owned(), payload)
        );
    }
    // The answer that the prompt of the peer review asks for, without a message around it.
    let bare = json!({ "revised_position": "high", "confidence": 0.5, "agrees_with_peer": false, "reasoning": "As is." });
    assert_eq!(said(Dialect::Panel, &debate, &bare).0, "disagreement");
    // Other words are what they say.
    let error = json!({ "sender_id": "alice", "message_type": "ERROR", "content": "No." });
    assert_eq!(said(Dialect::Collaboration, &debate, &error).0, "error");
    let exact = json!({ "message_type": "RESPONSE", "content": "x", "metadata": { "concord": { "message_type": "evidence" } } });
    assert_eq!(said(Dialect::Collaboration, &debate, &exact).0, "evidence");
}

fn question() -> Value {
    let position = |agent: &str, words: &str| json!({ "agent_id": agent, "position": words, "confidence": 0.8 });
    json!({
        "debate_id": "d-1", "case_id": "c-1", "round": 1, "max_rounds": 2, "limits": { "max_tokens": 300 },
        "conflict": { "conflict_id": "d-1", "type": "risk_score_disagreement", "topic": "t", "subject": "s" },
        "your_position": position("alice", "high"), "other_positions": [position("ben", "low")],
        "deadline": "2026-11-21T20:16:00.000Z", "reply_with": ["agreement", "disagreement", "revision"],
    })
}

/// The specifications print the recipient as `str or None`. A hosted agent answers whoever has asked.
#[test]
fn a_recipient_that_is_null_is_one_that_is_left_out() {
    let task = asked("task_assignment", json!({}));
    let content = json!({ "summary": "Risky.", "risk_score": 70.0 });
    for (speaks, line) in [
        (
            Dialect::Collaboration,
            json!({ "sender_id": "alice", "receiver_id": null, "message_type": "RESPONSE", "content": content }),
        ),
        (
            Dialect::Session,
            json!({ "interaction_type": "FINDING", "source_agent_id": "alice", "target_agent_id": null,
                    "content": content.to_string() }),
        ),
    ] {
        let (kind, payload) = said(speaks, &task, &line);
        assert_eq!((kind.as_str(), &payload), ("finding", &content), "{speaks}");
    }
}

#[test]
fn nobody_answers_for_another_nor_to_another() {
    let task = asked("task_assignment", json!({}));
    for (line, pointer) in [
        (
            json!({ "sender_id": "bob", "message_type": "RESPONSE", "content": "x" }),
            "/sender_id",
        ),
        (
            json!({ "sender_id": "alice", "receiver_id": "bob", "content": "x" }),
            "/receiver_id",
        ),
        (json!({ "sender": "bob", "content": "x" }), "/sender"),
        (
            json!({ "interaction_type": "FINDING", "content": "x", "conversation_id": "c-2" }),
            "/conversation_id",
        ),
        (
            json!({ "interaction_type": "A B", "content": "x" }),
            "/interaction_type",
        ),
    ] {
        let fault = read_in(Dialect::Concord, &task, &line.to_string()).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{line}");
    }
    let wrong = RawAnswer {
        body: b"{}",
        dialect: Some("latin"),
        card_dialect: Dialect::Concord,
    };
    let asked = AnswerTarget::of(&task, &AgentId::new("alice").unwrap(), Timestamp::default());
    assert!(parse_answer(&wrong, &asked, Timestamp::default(), None).is_err());
}

#[test]
fn an_answer_of_a_type_that_answers_nothing_is_a_fault_where_it_says_its_type() {
    let said = |asked: &Envelope, kind: &str| {
        let line = json!({ "message_type": kind, "payload": { "text": "x" } });
        read_in(Dialect::Concord, asked, &line.to_string())
    };
    let request = asked("request", json!({ "action": "say" }));
    for (asked, wrong, allowed) in [
        (&request, "finding", "response, task_result"),
        (&asked("task_assignment", json!({})), "agreement", "finding"),
        (
            &asked("question", question()),
            "finding",
            "agreement, disagreement, revision, evidence",
        ),
        (
            &asked("challenge", json!({})),
            "response",
            "evidence, agreement, disagreement, revision",
        ),
    ] {
        let fault = said(asked, wrong).unwrap_err();
        assert_eq!(fault.pointer, "/message_type", "{fault}");
        assert!(fault.advice.contains(allowed), "{fault}");
        for kind in allowed.split(", ").chain(["error", "refuse", "handoff"]) {
            let answer = said(asked, kind).unwrap_or_else(|fault| panic!("{kind}: {fault}"));
            assert_eq!(answer.unwrap().message_type.as_str(), kind);
        }
    }
    // Who else says something may be answered by anything.
    assert!(said(&asked("group_query", json!({})), "finding").is_ok());
}

#[test]
fn a_confirmation_in_answer_to_news_is_for_the_coordinator() {
    let told = asked(
        "notification",
        json!({ "event": "debate_concluded", "data": {} }),
    );
    let agent = AgentId::new("alice").unwrap();
    let target = AnswerTarget {
        is_news: true,
        ..AnswerTarget::of(&told, &agent, Timestamp::default())
    };
    for (kind, to) in [
        ("confirmation", "coordinator"),
        ("info_update", "debate-facilitator"),
    ] {
        let body = json!({ "message_type": kind, "payload": { "finding": "m-1" } }).to_string();
        let raw = RawAnswer {
            body: body.as_bytes(),
            dialect: None,
            card_dialect: Dialect::Concord,
        };
        let answer = parse_answer(&raw, &target, Timestamp::default(), None);
        assert_eq!(answer.unwrap().unwrap().to_agent.as_str(), to, "{kind}");
    }
}
