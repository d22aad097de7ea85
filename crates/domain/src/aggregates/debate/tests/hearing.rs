//! Who is told an answer, and how; and how the debates of a case share the answers of a round.

use concord_wire::MessageType;
use concord_wire::payload::DebateTerms;

use super::*;
use crate::effect;

/// What the other parties are told because of the last event: recipient, message type, answering
/// party, position.
fn told(story: &DebateStory) -> Vec<(String, String, String, Value)> {
    let messages = effect::messages::<DebateMachine>(story.last()).unwrap();
    messages
        .into_iter()
        .filter(|sent| {
            matches!(
                sent.message_type,
                MessageType::Agreement | MessageType::Disagreement
            )
        })
        .map(|sent| {
            assert!(!sent.requires_response && sent.deadline.is_none() && sent.reply_to.is_none());
            assert_eq!(sent.correlation_id.as_deref(), Some("d-1"));
            assert_eq!(sent.case_id, Some(case_id()));
            let answer: Answer = sent.payload().unwrap();
            assert_eq!(
                answer.agrees_with_peer,
                Some(sent.message_type == MessageType::Agreement)
            );
            assert!(answer.confidence.is_some() && answer.revised_position.is_some());
            (
                sent.to_agent.to_string(),
                sent.message_type.to_string(),
                answer.answered_by.unwrap().to_string(),
                answer.value.unwrap(),
            )
        })
        .collect()
}

fn row(to: &str, kind: &str, by: &str, value: i32) -> (String, String, String, Value) {
    (to.into(), kind.into(), by.into(), json!(value))
}

#[test]
fn each_answer_of_a_round_is_told_to_the_other_parties() {
    let mut story = opened(scores(), policy());
    story.hears(&said("m-1", 1), &keeps("ann", "m-1"));
    assert_eq!(
        told(&story),
        [
            row("ben", "disagreement", "ann", 30),
            row("cyd", "disagreement", "ann", 30)
        ]
    );
    // cyd has not answered: what ben agrees with is what cyd held when the round began.
    story.hears(&said("m-2", 2), &joins("ben", "m-2", "cyd"));
    assert_eq!(
        told(&story),
        [
            row("cyd", "agreement", "ben", 90),
            row("ann", "disagreement", "ben", 90)
        ]
    );
    assert_eq!(
        story.hears(&said("m-3", 3), &moves_to("cyd", "m-3", json!(60))),
        "round_closed"
    );
    // ben held 60 when the round began, whatever it holds by now.
    assert_eq!(
        told(&story),
        [
            row("ben", "agreement", "cyd", 60),
            row("ann", "disagreement", "cyd", 60)
        ]
    );
    let ids: Vec<_> = effect::messages::<DebateMachine>(story.last())
        .unwrap()
        .into_iter()
        .map(|sent| sent.message_type.to_string())
        .collect();
    assert_eq!(
        ids,
        [
            "question",
            "question",
            "question",
            "agreement",
            "disagreement"
        ],
        "questions have the places that earlier versions give them"
    );
}

#[test]
fn the_answer_that_ends_a_debate_is_told_as_well() {
    let mut story = opened(scores(), policy());
    for (place, party) in ["ann", "ben"].into_iter().enumerate() {
        let id = format!("m-{place}");
        story.hears(&said(&id, 1), &joins(party, &id, "cyd"));
    }
    assert_eq!(
        story.hears(&said("m-3", 3), &keeps("cyd", "m-3")),
        "resolved"
    );
    assert_eq!(
        told(&story),
        [
            row("ann", "disagreement", "cyd", 90),
            row("ben", "disagreement", "cyd", 90)
        ]
    );
}

#[test]
fn nobody_is_told_of_what_is_set_aside_nor_where_the_policy_says_so() {
    let mut story = story(At::Round1);
    for n in 0..5 {
        let id = format!("m-again-{n}");
        assert_eq!(
            story.hears(&said(&id, 5), &keeps("ann", &id)),
            "answer_set_aside",
            "an agent that answers what it is told is not told of its own answers"
        );
        assert_eq!(told(&story), []);
    }
    let mut deaf = opened(
        scores(),
        Policy {
            hear_answers: false,
            ..policy()
        },
    );
    deaf.hears(&said("m-1", 1), &keeps("ann", "m-1"));
    assert_eq!(told(&deaf), []);
}

#[test]
fn an_event_of_an_earlier_version_tells_nobody() {
    let mut story = story(At::Round1);
    let DebateEvent::Answered(answered) = &mut story.records.last_mut().unwrap().event else {
        panic!()
    };
    answered.case_id = None;
    answered.received.heard_by = None;
    assert_eq!(told(&story), []);
}

#[test]
fn a_debate_keeps_its_share_of_the_answers_of_the_case() {
    let with_share = |share| {
        let DebateInput::Open(opening) = open_debate(scores(), policy()) else {
            panic!()
        };
        let mut opening = *opening;
        opening.request.terms = DebateTerms {
            answers_per_round_max: share,
            ..DebateTerms::default()
        };
        let mut story = DebateStory::of("d-1");
        assert_eq!(
            story.hears(&said("c-1-5-0", 0), &DebateInput::Open(Box::new(opening))),
            "opened"
        );
        story
    };
    for (share, asked) in [(None, 3), (Some(3), 3), (Some(2), 2), (Some(0), 0)] {
        let mut story = with_share(share);
        assert_eq!(story.state().asked.len(), asked, "{share:?}");
        let (at, expected) = match share {
            Some(0) => (0, "resolved"),
            _ => (ROUND, "round_closed"),
        };
        let due = round_due(&story.id, 1, after(at));
        assert_eq!(story.hears(&happened("e-1", at), &due), expected);
        if expected == "round_closed" {
            assert_eq!(
                story.state().asked.len(),
                asked,
                "{share:?}: the next round"
            );
        }
    }
}
