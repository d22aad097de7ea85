//! Answers that say that they are of a round that is over.

use super::*;

#[test]
fn an_answer_to_the_question_of_the_round_that_names_another_round_is_told_so() {
    let mut story = story(At::Round2);
    let asked = Some(story.last().sequence);
    for (id, question_sequence, round, expected) in [
        ("m-21", asked, 1, "refused: /round"),
        ("m-22", None, 1, "answer_set_aside"),
        ("m-23", asked, 2, "answered"),
    ] {
        let given = AnswerMessage {
            question_sequence,
            round: Some(round),
            ..given("ben", id, "disagreement", no_answer())
        };
        assert_eq!(
            story.hears(&said(id, 20), &answers(given)),
            expected,
            "{id}"
        );
    }
}
