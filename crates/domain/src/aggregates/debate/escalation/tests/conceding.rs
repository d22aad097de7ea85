//! Whoever takes over what the other one holds has settled a challenge.

use super::*;
use crate::fixtures;

#[test]
fn whoever_takes_over_the_position_of_the_other_has_settled_the_challenge() {
    let words = |text: &str| {
        let answer = concord_wire::payload::Answer {
            revised_position: Some(text.into()),
            ..fixtures::no_answer()
        };
        fixtures::answers(fixtures::given("finance", "m-1", "revision", answer))
    };
    for (answer, stands) in [
        (joins("finance", "m-1", "strategy"), Some(30)),
        (moves_to("finance", "m-1", json!(30)), Some(30)),
        (words("30"), Some(30)),
        (moves_to("finance", "m-1", json!(29)), None),
        (keeps("finance", "m-1"), None),
        (moves_to("strategy", "m-1", json!(25)), Some(25)),
        (joins("strategy", "m-1", "finance"), Some(25)),
    ] {
        let mut story = challenged();
        let heard = story.hears(&said("m-1", MINUTE), &answer);
        let expected = stands.map_or("evidence_given", |_| "resolved");
        assert_eq!(heard, expected, "{answer:?}");
        let outcome = story.state().outcome.clone();
        let value = outcome.clone().and_then(|it| it.resolution?.value);
        assert_eq!(value, stands.map(|value| json!(value)), "{answer:?}");
        if let Some(outcome) = outcome {
            let settled = (outcome.status, outcome.level);
            assert_eq!(settled, (Status::Accepted, Some(Level::Agents)));
            let supporters = outcome.resolution.unwrap().supporters;
            assert_eq!(supporters, [agent("finance"), agent("strategy")]);
            assert_eq!(DebateMachine::deadlines(story.state()), vec![]);
        }
    }
}

#[test]
fn words_that_leave_a_value_open_settle_no_challenge_of_a_quantity() {
    for (finance, expected) in [
        (json!(25), "evidence_given"),
        (json!("effective"), "resolved"),
    ] {
        let held = [
            ("finance", finance.clone(), 0.8),
            ("strategy", json!("not established"), 0.7),
        ];
        let mut conflict = conflict("d-1", ConflictType::Challenge, "management", &held);
        conflict.positions[1].value = None;
        let request = OpenDebate {
            case_id: case_id(),
            conflict,
            policy: policy(),
            terms: terms(None),
        };
        let mut story = Story::<DebateMachine>::of("d-1");
        let opening = Opening {
            request,
            prior_knowledge: PriorKnowledge::default(),
        };
        story.hears(&said("m-open", 0), &DebateInput::Open(Box::new(opening)));
        let heard = story.hears(&said("m-1", 1), &joins("finance", "m-1", "strategy"));
        assert_eq!(heard, expected, "{finance}");
    }
}
