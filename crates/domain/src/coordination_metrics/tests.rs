//! Stories of agents that help each other, and what counts of them.

use concord_events::{Remembered, WakeDecided, WakeOutcome, Weighed};
use concord_wire::payload::{Card, Skill};
use concord_wire::{Envelope, MessageType, Recipient, Token};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{after, agent, message};

mod collaboration;
mod properties;

/// Something that is stored.
#[derive(Debug, Clone)]
enum Stored {
    Message(Box<TrackedMessage>),
    Woken(Box<WakeDecided>),
}

/// A message in the case `case`; `more` is laid over the envelope.
fn envelope(case: &str, id: &str, from: &str, to: &str, kind: &str, more: &Value) -> Envelope {
    let mut body = json!({
        "message_id": id, "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": to,
        "message_type": kind, "payload": {},
    });
    if case != "_" {
        body["case_id"] = case.into();
    }
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    serde_json::from_value(body).unwrap()
}

fn stored_message(millis: u64, id: &str, from: &str, to: &str, kind: &str, more: Value) -> Stored {
    Stored::Message(Box::new(TrackedMessage::of(
        &envelope("c-1", id, from, to, kind, &more),
        after(millis),
    )))
}

fn woken(millis: u64, id: &str, agents: &[(&str, &str)]) -> Stored {
    let weighed = |(name, reason): &(&str, &str)| Weighed {
        agent_id: agent(name),
        outcome: WakeOutcome::Wake,
        reason: (*reason).to_owned(),
        score: None,
        runner_up: None,
        runner_up_score: None,
    };
    Stored::Woken(Box::new(WakeDecided {
        said: Remembered {
            message_id: message(id),
            from: agent("ann"),
            to: Recipient::Any,
            message_type: "group_query".into(),
            at: after(millis),
            reply_to: None,
            text: String::new(),
        },
        case_id: None,
        from_outside: false,
        question: None,
        loop_broken: None,
        woken: agents.iter().map(weighed).collect(),
        others: Vec::new(),
        observing: 0,
        ignoring: 0,
        named_beyond: 0,
        with_model: false,
        message: Value::Null,
        context: Vec::new(),
        sees: std::collections::BTreeMap::new(),
    }))
}

fn tell(follow: &mut Tracker, tally: &mut Tally, stored: &[Stored]) {
    for one in stored {
        let counted = match one {
            Stored::Message(said) => follow.message(said),
            Stored::Woken(decided) => follow.woken(decided),
        };
        counted.iter().for_each(|one| tally.add(one.what));
    }
}

/// What is reported of a story, once at its end and once when every window is over.
fn reports(limits: Limits, stored: &[Stored]) -> (Report, Report) {
    let (mut follow, mut tally) = (
        Tracker::new(limits, [agent("lea")].into()),
        Tally::default(),
    );
    tell(&mut follow, &mut tally, stored);
    let first = tally.report(&follow.waiting());
    follow
        .close_expired(after(u64::from(u32::MAX)))
        .iter()
        .for_each(|one| tally.add(one.what));
    (first, tally.report(&follow.waiting()))
}

fn report(stored: &[Stored]) -> Report {
    reports(Limits::default(), stored).1
}

fn reply(to: &str) -> Value {
    json!({ "reply_to": to })
}

fn refusal(to: &str) -> Value {
    json!({ "reply_to": to, "payload": { "accepted": false, "reason": "not_relevant" } })
}

#[test]
fn nothing_said_is_no_data_and_not_zero() {
    let report = report(&[]);
    let measures = [
        report.lead_share,
        report.peer_help_seconds,
        report.matching_accuracy,
        report.false_wakes,
        report.events_per_session,
    ];
    assert!(
        measures
            .iter()
            .all(|one| one.value.is_none() && one.met.is_none()),
        "{report:?}"
    );
    assert_eq!(
        (report.peer_help.average_ms, report.peer_help.p50_ms),
        (None, None)
    );
}

#[test]
fn messages_through_a_lead_are_those_it_sends_or_receives_and_services_and_registration_are_left_out()
 {
    let story = [
        stored_message(0, "m-1", "ann", "coordinator", "finding", json!({})),
        stored_message(1, "m-2", "lea", "ann", "task_assignment", json!({})),
        stored_message(2, "m-3", "ann", "ben", "info_update", json!({})),
        stored_message(3, "m-4", "ann", "_all", "info_update", json!({})),
        stored_message(4, "m-5", "debate-facilitator", "ann", "question", json!({})),
        stored_message(
            5,
            "m-6",
            "ann",
            "debate-facilitator",
            "agreement",
            reply("m-5"),
        ),
        stored_message(
            6,
            "m-7",
            "ann",
            "coordinator",
            "request",
            json!({ "payload": { "action": "register_agent" } }),
        ),
        stored_message(
            7,
            "m-8",
            "coordinator",
            "ann",
            "response",
            json!({ "correlation_id": "m-7" }),
        ),
        stored_message(8, "m-9", "coordinator", "_all", "agent_joined", json!({})),
        stored_message(9, "m-3", "ann", "ben", "info_update", json!({})),
    ];
    let report = report(&story);
    assert_eq!(
        (
            report.messages,
            report.messages_through_lead,
            report.sessions
        ),
        (4, 2, 1)
    );
    assert_eq!(
        (report.lead_share.value, report.lead_share.met),
        (Some(0.5), Some(false)),
        "the target is below half"
    );
}

#[test]
fn what_the_coordinator_says_about_the_end_of_a_question_does_not_count() {
    let told = |at, id, to, kind, payload| {
        stored_message(
            at,
            id,
            "coordinator",
            to,
            kind,
            json!({ "payload": payload }),
        )
    };
    let ended = json!({ "event": "stand_down", "data": { "question": "m-1" } });
    let answer =
        json!({ "status": "success", "result": { "question": "m-1", "mode": "confidence" } });
    let failed =
        json!({ "error_code": "TIMEOUT", "details": { "message_id": "m-1", "silent": ["ben"] } });
    let story = [
        stored_message(0, "m-1", "ann", "_any", "group_query", json!({})),
        stored_message(1, "m-2", "ben", "ann", "response", reply("m-1")),
        told(2, "m-3", "cleo", "notification", ended),
        told(3, "m-4", "ann", "response", answer),
        told(4, "m-5", "ann", "error", failed),
        told(
            5,
            "m-6",
            "ann",
            "response",
            json!({ "status": "success", "result": {} }),
        ),
    ];
    let report = report(&story);
    assert_eq!((report.messages, report.messages_through_lead), (3, 1));
}

/// When an answer comes, from whom, to whom, its type, what it refers to, and after how long it is
/// help.
type Answer = (
    u64,
    &'static str,
    &'static str,
    &'static str,
    Refers,
    Option<u64>,
);

/// How an answer names the question, or what else it says.
#[derive(Debug, Clone, Copy)]
enum Refers {
    ReplyTo(&'static str),
    Thread(&'static str),
    Refuses(&'static str),
}

use Refers::{Refuses, ReplyTo, Thread};

const ANSWERS: [Answer; 12] = [
    (700, "ben", "ann", "response", ReplyTo("m-1"), Some(700)),
    (700, "ben", "ann", "peer_response", Thread("m-1"), Some(700)),
    (700, "ben", "_all", "task_result", ReplyTo("m-1"), Some(700)),
    (700, "ben", "ann", "response", Refuses("m-1"), None),
    (700, "ben", "ann", "error", ReplyTo("m-1"), None),
    (700, "ben", "ann", "acknowledgement", ReplyTo("m-1"), None),
    (700, "ben", "ann", "question", ReplyTo("m-1"), None),
    (700, "ann", "_all", "info_update", ReplyTo("m-1"), None),
    (
        700,
        "ben",
        "agent-adapter",
        "response",
        ReplyTo("m-1"),
        None,
    ),
    (700, "ben", "cleo", "response", ReplyTo("m-1"), None),
    (700, "ben", "ann", "response", ReplyTo("m-0"), None),
    (300_001, "ben", "ann", "response", ReplyTo("m-1"), None),
];

#[test]
fn help_takes_until_the_first_answer_that_reaches_who_asked() {
    for (millis, from, to, kind, refers, helped) in ANSWERS {
        let more = match refers {
            ReplyTo(id) => reply(id),
            Thread(id) => json!({ "correlation_id": id }),
            Refuses(id) => refusal(id),
        };
        let answer = stored_message(millis, "m-2", from, to, kind, more);
        for kind in ["peer_request", "group_query", "collaboration_invite"] {
            let ask = stored_message(0, "m-1", "ann", "_any", kind, json!({}));
            let later = stored_message(900, "m-3", "cleo", "ann", "response", reply("m-3"));
            let help = report(&[ask, answer.clone(), later]).peer_help;
            assert_eq!(
                (help.asked, help.average_ms),
                (1, helped),
                "{kind}: {answer:?}"
            );
            assert_eq!(
                (help.answered, help.unanswered),
                if helped.is_some() { (1, 0) } else { (0, 1) }
            );
        }
    }
}

#[test]
fn averages_and_percentiles_are_of_all_first_answers() {
    let mut story = Vec::new();
    for n in 1..=20_u64 {
        story.push(stored_message(
            n * 10_000,
            &format!("a-{n}"),
            "ann",
            "ben",
            "peer_request",
            json!({}),
        ));
        let answered = n * 10_000 + n * 100;
        story.push(stored_message(
            answered,
            &format!("b-{n}"),
            "ben",
            "ann",
            "response",
            reply(&format!("a-{n}")),
        ));
        story.push(stored_message(
            answered + 1,
            &format!("c-{n}"),
            "ben",
            "ann",
            "response",
            reply(&format!("a-{n}")),
        ));
    }
    let report = report(&story);
    let help = report.peer_help;
    assert_eq!(
        (help.answered, help.average_ms, help.p50_ms, help.p95_ms),
        (20, Some(1_050), Some(1_000), Some(1_900))
    );
    assert_eq!(
        (report.peer_help_seconds.value, report.peer_help_seconds.met),
        (Some(1.05), Some(true))
    );
}

#[test]
fn what_has_no_more_room_is_closed_and_counted_as_unanswered() {
    let limits = Limits {
        open_max: 2,
        ..Limits::default()
    };
    let ask = |n: u64| {
        stored_message(
            n,
            &format!("m-{n}"),
            "ann",
            "_any",
            "peer_request",
            json!({}),
        )
    };
    let woken_one = |n: u64| woken(n, &format!("m-{n}"), &[("ben", "semantic:tax")]);
    let story = [
        ask(1),
        woken_one(1),
        ask(2),
        ask(3),
        stored_message(4, "b-1", "ben", "ann", "response", reply("m-1")),
    ];
    let (before, after) = reports(limits, &story);
    assert_eq!(
        (before.peer_help.unanswered, before.peer_help.waiting),
        (1, 2)
    );
    assert_eq!((before.matches.silent, after.peer_help.unanswered), (1, 3));
}

#[test]
fn a_card_says_that_its_agent_leads_by_a_tag() {
    let card = |name: &str, tags: &[&str]| Card {
        skills: vec![Skill {
            name: "x".into(),
            tags: tags.iter().map(ToString::to_string).collect(),
            ..Skill::default()
        }],
        ..Card::new(agent(name))
    };
    let cards = [
        card("ann", &["Lead"]),
        card("ben", &["leader"]),
        card("cleo", &["tax", "lead"]),
    ];
    let leads: Vec<String> = leads_by_card(&cards)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(leads, ["ann", "cleo"]);
}

#[test]
fn a_type_that_this_build_does_not_know_can_answer() {
    let kind = MessageType::from(Token::new("peer_response").unwrap());
    assert!(
        TrackedMessage::of(
            &envelope("_", "m-1", "ann", "ben", kind.as_str(), &json!({})),
            after(0)
        )
        .may_answer
    );
}
