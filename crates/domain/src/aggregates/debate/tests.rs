use concord_events::CloseReason;
use concord_wire::CaseId;
use concord_wire::payload::{Answer, Conflict, ConflictType, SetAsideReason, Status};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::*;
use crate::effect::Effect;
use crate::fixtures::*;

mod agreed;
mod confirmed;
mod consensus;
mod earlier_round;
mod hearing;
mod maintained;
pub(crate) mod memory_sync;
mod votes;

type DebateStory = Story<DebateMachine>;

const ROUND: u64 = 10_000;

/// ann, ben and cyd hold three scores.
fn scores() -> Conflict {
    let held = [
        ("ann", json!(30), 0.5),
        ("ben", json!(60), 0.7),
        ("cyd", json!(90), 0.6),
    ];
    conflict(
        "d-1",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        &held,
    )
}

fn opened(conflict: Conflict, policy: Policy) -> DebateStory {
    let mut story = DebateStory::of("d-1");
    assert_eq!(
        story.hears(&said("c-1-5-0", 0), &open_debate(conflict, policy)),
        "opened"
    );
    story
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    New,
    /// Round 1, ann has answered.
    Round1,
    /// Round 2, nobody has answered.
    Round2,
    Resolved,
}

fn story(at: At) -> DebateStory {
    if at == At::New {
        return DebateStory::of("d-1");
    }
    let mut story = opened(scores(), policy());
    assert_eq!(
        story.hears(&said("m-ann-1", 1), &keeps("ann", "m-ann-1")),
        "answered"
    );
    if at == At::Round1 {
        return story;
    }
    assert_eq!(
        story.hears(&said("m-ben-1", 2), &keeps("ben", "m-ben-1")),
        "answered"
    );
    assert_eq!(
        story.hears(&said("m-cyd-1", 3), &keeps("cyd", "m-cyd-1")),
        "round_closed"
    );
    if at == At::Resolved {
        let due = round_due(&story.id, 2, after(3 + ROUND));
        assert_eq!(story.hears(&happened("e-due", 3 + ROUND), &due), "resolved");
    }
    story
}

#[test]
fn an_answer_in_another_case_is_refused_with_the_right_one() {
    for (case, expected) in [
        (None, "answered"),
        (Some("c-1"), "answered"),
        (Some("c-2"), "refused: /case_id"),
    ] {
        let mut story = opened(scores(), policy());
        let sent = AnswerMessage {
            case_id: case.map(|case| CaseId::new(case).unwrap()),
            ..given("ann", "m-1", "disagreement", no_answer())
        };
        assert_eq!(story.hears(&said("m-1", 1), &answers(sent)), expected);
    }
}

#[test]
fn an_answer_with_a_value_that_the_result_cannot_have_is_refused_and_may_be_given_again() {
    let mut story = opened(scores(), policy());
    for (id, value, expected) in [
        ("m-1", json!(150), "refused: /payload/value"),
        ("m-2", json!({ "a": 1 }), "refused: /payload/value"),
        ("m-3", json!(50), "answered"),
    ] {
        let answer = moves_to("ann", id, value);
        assert_eq!(story.hears(&said(id, 1), &answer), expected);
    }
    let sent = given(
        "ben",
        "m-4",
        "revision",
        Answer {
            revised_position: Some("Risk score: 30".into()),
            value: Some(json!(60)),
            ..no_answer()
        },
    );
    let heard = story.hears(&said("m-4", 2), &answers(sent));
    assert_eq!(heard, "refused: /payload/value");
}

#[test]
fn every_cell_of_the_table() {
    let id = token("d-1");
    let in_round = |round: u32| {
        answers(AnswerMessage {
            round: Some(round),
            ..given("ben", "m-9", "disagreement", no_answer())
        })
    };
    let inputs: [(&str, DebateInput); 8] = [
        ("open", open_debate(scores(), policy())),
        ("ben answers", keeps("ben", "m-9")),
        ("ben answers for round 1", in_round(1)),
        ("ann answers", keeps("ann", "m-9")),
        ("a stranger answers", keeps("zoe", "m-9")),
        ("round 1 is due", round_due(&id, 1, after(ROUND))),
        ("round 2 is due", round_due(&id, 2, after(3 + ROUND))),
        (
            "round 1 is due at another time",
            round_due(&id, 1, after(1)),
        ),
    ];
    let unknown = "refused: /reply_to";
    let (done, aside, stranger) = (
        "ignored: already_done",
        "answer_set_aside",
        "refused: /from_agent",
    );
    let closed = "ignored: deadline_not_open";
    let table: [(At, [&str; 8]); 4] = [
        (
            At::New,
            [
                "opened", unknown, unknown, unknown, unknown, unknown, unknown, unknown,
            ],
        ),
        (
            At::Round1,
            [
                done,
                "answered",
                "answered",
                aside,
                stranger,
                "round_closed",
                closed,
                closed,
            ],
        ),
        (
            At::Round2,
            [
                done, "answered", aside, "answered", stranger, closed, "resolved", closed,
            ],
        ),
        (
            At::Resolved,
            [done, aside, aside, aside, stranger, closed, closed, closed],
        ),
    ];
    for (at, row) in table {
        for ((what, input), expected) in inputs.iter().zip(row) {
            assert_eq!(
                story(at).hears(&said("m-9", 3 + ROUND), input),
                expected,
                "{at:?}: {what}"
            );
        }
    }
}

#[test]
fn each_party_is_asked_with_its_own_and_the_other_positions() {
    let story = story(At::Round2);
    for (record, round, due) in [
        (&story.records[0], 1, after(ROUND)),
        (story.last(), 2, after(3 + ROUND)),
    ] {
        let asked: Vec<String> = DebateMachine::effects(record)
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::AskParty { to, question } => Some((to, question)),
                Effect::TellAnswer { .. } => None,
                other => panic!("{other:?}"),
            })
            .map(|(to, question)| {
                assert_eq!(
                    (question.round, question.max_rounds, question.deadline),
                    (round, 2, due)
                );
                assert_eq!(
                    (
                        question.your_position.agent_id.clone(),
                        question.limits.max_tokens
                    ),
                    (to.clone(), 500)
                );
                let others = question
                    .other_positions
                    .iter()
                    .map(|other| other.agent_id.as_str());
                format!("{to} about {}", others.collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(
            asked,
            [
                "ann about ben cyd",
                "ben about ann cyd",
                "cyd about ann ben"
            ]
        );
    }
}

#[test]
fn an_answer_counts_once_and_ids_are_their_senders_own() {
    for at in [At::Round1, At::Round2, At::Resolved] {
        let mut story = story(at);
        let revised = moves_to("ann", "m-ann-1", json!(31));
        let of_ben = match at {
            At::Resolved => "answer_set_aside",
            _ => "answered",
        };
        for (what, input, expected) in [
            (
                "the same message",
                keeps("ann", "m-ann-1"),
                "ignored: repetition",
            ),
            ("other contents", revised, "refused: /message_id"),
            ("ben under ann's id", keeps("ben", "m-ann-1"), of_ben),
        ] {
            assert_eq!(
                story.hears(&said("m-x", 100), &input),
                expected,
                "{at:?}: {what}"
            );
        }
    }
    let mut twice = story(At::Round1);
    assert_eq!(
        twice.hears(&said("m-2", 5), &moves_to("ann", "m-2", json!(99))),
        "answer_set_aside"
    );
    assert_eq!(
        twice.hears(&said("m-2", 6), &moves_to("ann", "m-2", json!(99))),
        "ignored: repetition"
    );
    assert_eq!(
        twice.state().positions[0].value,
        Some(json!(30)),
        "the first answer counts"
    );
    assert_eq!(
        twice.state().set_aside,
        [(agent("ann"), message("m-2"), SetAsideReason::Repeated)]
    );
    let effects = DebateMachine::effects(twice.last());
    assert!(
        matches!(&effects[..], [Effect::ReportSetAside { to, .. }] if *to == agent("ann")),
        "{effects:?}"
    );
}

/// The id of an answer can be foreseen, so another party may have used it first.
#[test]
fn nobody_keeps_another_party_from_being_heard_by_using_its_id() {
    let mut story = opened(scores(), policy());
    let by = |who: &str, at| said("m-1", at).of_sender(agent(who));
    for (who, expected) in [
        ("ben", "answered"),
        ("ann", "answered"),
        ("ann", "ignored: repetition"),
    ] {
        assert_eq!(
            story.hears(&by(who, 1), &keeps(who, "m-1")),
            expected,
            "{who}"
        );
    }
    assert!(story.has_one_id_each());
}

#[test]
fn an_answer_belongs_to_the_question_it_answers() {
    let mut story = story(At::Round2);
    let earlier = story.records[0].sequence;
    let now = story.last().sequence;
    for (sequence, expected) in [(Some(earlier), "answer_set_aside"), (Some(now), "answered")] {
        let id = format!("m-{}", sequence.unwrap_or_default());
        let given = AnswerMessage {
            question_sequence: sequence,
            ..given("ben", &id, "disagreement", no_answer())
        };
        assert_eq!(
            story.hears(&said(&id, 20), &answers(given)),
            expected,
            "{sequence:?}"
        );
    }
    assert_eq!(story.state().set_aside[0].2, SetAsideReason::Late);
}

#[test]
fn what_is_set_aside_is_limited() {
    let mut story = opened(
        scores(),
        Policy {
            set_aside_max: 1,
            ..policy()
        },
    );
    for (id, expected) in [
        ("m-1", "answered"),
        ("m-2", "answer_set_aside"),
        ("m-3", "refused: "),
    ] {
        assert_eq!(
            story.hears(&said(id, 1), &keeps("ann", id)),
            expected,
            "{id}"
        );
    }
}

#[test]
fn a_round_asks_no_more_parties_than_the_policy_has_messages_and_takes_the_surest() {
    let mut story = opened(
        scores(),
        Policy {
            messages_per_round_max: 2,
            ..policy()
        },
    );
    assert_eq!(story.state().asked, [agent("ben"), agent("cyd")]);
    assert_eq!(
        story.hears(&said("m-1", 1), &keeps("ann", "m-1")),
        "refused: /from_agent"
    );
    assert_eq!(
        story.hears(&said("m-2", 2), &keeps("ben", "m-2")),
        "answered"
    );
    assert_eq!(
        story.hears(&said("m-3", 3), &keeps("cyd", "m-3")),
        "round_closed"
    );
}

#[test]
fn an_answer_has_no_more_tokens_than_the_policy_allows() {
    for (bytes, expected) in [(2_000, "answered"), (2_001, "refused: /payload")] {
        let long = Answer {
            reasoning: "x".repeat(bytes),
            ..no_answer()
        };
        let heard = opened(scores(), policy()).hears(
            &said("m-1", 1),
            &answers(given("ann", "m-1", "revision", long)),
        );
        assert_eq!(heard, expected, "{bytes} bytes");
    }
}

#[test]
fn the_clock_closes_a_round_whoever_has_answered() {
    let mut story = opened(scores(), policy());
    story.hears(&said("m-1", 1), &keeps("ben", "m-1"));
    let due = round_due(&story.id, 1, after(ROUND));
    assert_eq!(
        story.hears(&happened("e-1", ROUND + 7), &due),
        "round_closed"
    );
    let DebateEvent::RoundClosed(closed) = &story.last().event else {
        panic!()
    };
    assert_eq!(
        (closed.reason, closed.due),
        (CloseReason::Deadline, after(ROUND + 7 + ROUND))
    );
    assert_eq!(closed.record.answered, [agent("ben")]);
    assert_eq!(closed.record.silent, [agent("ann"), agent("cyd")]);
    assert_eq!(story.last().meta.closed, [round_name(1)]);
    let due = round_due(&story.id, 2, closed.due);
    assert_eq!(story.hears(&happened("e-2", 3 * ROUND), &due), "resolved");
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.rounds.len()), (Status::Vote, 2));
    assert_eq!(outcome.resolved_at, after(3 * ROUND));
    assert_eq!(outcome.rounds[1].silent.len(), 3);
}
