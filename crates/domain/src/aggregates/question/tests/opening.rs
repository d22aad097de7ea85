//! What is asked, of whom, and which answers do not count.

use super::*;

#[test]
fn who_must_not_answer_is_told_why() {
    let mut story = open(AnswerMode::Confidence, None);
    hears(&mut story, given("ann", "a-1", 10, 0.5));
    let other_words = GivenAnswer {
        payload: json!({ "content": "No." }),
        ..given("ann", "a-1", 10, 0.5)
    };
    for (answer, code, begins) in [
        (
            given("eve", "a-2", 11, 0.5),
            ErrorCode::Unauthorized,
            "eve was not asked",
        ),
        (
            given("ann", "a-3", 12, 0.5),
            ErrorCode::InvalidRequest,
            "ann has answered",
        ),
        (other_words, ErrorCode::InvalidRequest, "ann has answered"),
        (
            given("ben", "a-4", 30_001, 0.5),
            ErrorCode::Timeout,
            "Answers to the question",
        ),
    ] {
        let decided = QuestionMachine::decide(story.state(), &said("x", 12), &answers(answer));
        let Decision::Reject(fault) = decided else {
            panic!("{decided:?}")
        };
        assert_eq!(fault.code, code);
        assert!(fault.message.starts_with(begins), "{fault}");
        assert!(!fault.advice.is_empty());
    }
    assert_eq!(
        hears(&mut story, given("ann", "a-1", 10, 0.5)),
        "ignored: repetition"
    );
}

#[test]
fn a_question_that_nobody_can_answer_ends_at_once() {
    let stated = |deadline: u64| QuestionTerms {
        deadline: Some(after(deadline)),
        ..QuestionTerms::default()
    };
    let suspended = Authority {
        suspended: Some("on leave".into()),
        ..authority("eva", &[])
    };
    for (asked, sender, code, stand_down) in [
        (
            asking("m-1", &[], stated(1_000)),
            None,
            ErrorCode::AgentUnavailable,
            0,
        ),
        (
            asking("m-1", &["ann"], stated(0)),
            None,
            ErrorCode::Timeout,
            1,
        ),
        (
            asking("m-1", &["ann"], stated(60_001)),
            None,
            ErrorCode::InvalidRequest,
            1,
        ),
        (
            asking("m-1", &["ann"], stated(1_000)),
            Some(suspended),
            ErrorCode::Unauthorized,
            1,
        ),
    ] {
        let mut story = Story::<QuestionMachine>::of("q-1");
        let asked = Asking {
            sender: sender.unwrap_or_default(),
            ..asked
        };
        let input = QuestionInput::Ask(Box::new(asked));
        assert_eq!(story.hears(&happened("e-1", 1), &input), "opened");
        assert_eq!(failure_of(&story), code);
        let messages = told(&story);
        assert_eq!(messages[0].message_type, MessageType::Error);
        assert_eq!(messages.len(), 1 + stand_down, "{code:?}");
        assert_eq!(
            story.hears(&happened("e-1", 2), &input),
            "ignored: repetition"
        );
    }
    let mut story = open(AnswerMode::Confidence, None);
    let over = passes(ANSWERS, 30_000, Vec::new());
    story.hears(&happened("e-2", 30_000), &over);
    assert_eq!(failure_of(&story), ErrorCode::Timeout);
}

#[test]
fn whoever_is_addressed_is_asked_although_it_is_not_registered() {
    let mut story = Story::<QuestionMachine>::of("q-1");
    let mut asked = asking("m-1", &["ann"], QuestionTerms::default());
    asked.decided.said.to = Recipient::Agent(agent("zoe"));
    story.hears(&happened("e-1", 1), &QuestionInput::Ask(Box::new(asked)));
    let asked = &story.state().opened.as_ref().unwrap().asked;
    let reasons: Vec<(&str, &str)> = asked
        .iter()
        .map(|one| (one.agent.as_str(), one.reason.as_str()))
        .collect();
    assert_eq!(reasons, [("zoe", "direct_target"), ("ann", "mention")]);
}

#[test]
fn the_same_words_are_asked_again_when_the_question_has_ended() {
    let first = "said-5b0f2f4e-0000-5000-8000-0000000000a2-7";
    let second = "said-5b0f2f4e-0000-5000-8000-0000000000a2-9";
    let eva = agent("eva");
    assert_eq!(id_of(&eva, first), id_of(&eva, second));
    let ask = |id| QuestionInput::Ask(Box::new(asking(id, &["ann"], QuestionTerms::default())));
    let mut story = Story::<QuestionMachine>::of("q-1");
    assert_eq!(story.hears(&happened("e-1", 1), &ask(first)), "opened");
    assert_eq!(
        story.hears(&happened("e-2", 2), &ask(second)),
        "ignored: repetition"
    );
    assert_eq!(hears(&mut story, given("ann", "a-1", 3, 0.5)), "answered");
    assert_eq!(story.hears(&happened("e-2", 4), &ask(second)), "opened");
    assert_eq!(hears(&mut story, given("ann", "a-2", 5, 0.5)), "answered");
    assert_eq!(told(&story)[0].reply_to.as_deref(), Some(second));
}

#[test]
fn the_largest_answers_of_most_agents_fit_into_every_event_and_message() {
    let all: Vec<String> = (0..2 * ASKED_MAX)
        .map(|n| format!("{n}-{}", "a".repeat(60)))
        .collect();
    let woken: Vec<&str> = all.iter().map(String::as_str).collect();
    for (size, too_large) in [(4_000, false), (70_000, true)] {
        let mut story = Story::<QuestionMachine>::of("q-1");
        let terms = terms(AnswerMode::Collaborative, Some("lead"));
        let asked = asking("m-1", &woken, terms);
        story.hears(&happened("e-1", 1), &QuestionInput::Ask(Box::new(asked)));
        let asked = story.state().opened.as_ref().unwrap().asked.clone();
        assert_eq!(asked.len(), ASKED_MAX);
        let large = |n: usize, by: &AgentId| GivenAnswer {
            payload: json!({ "content": "ä".repeat(size / 2) }),
            ..given(by.as_str(), &format!("a-{n}"), 10, 0.5)
        };
        let unread: Vec<GivenAnswer> = asked
            .iter()
            .enumerate()
            .map(|(n, one)| large(n, &one.agent))
            .collect();
        story.hears(&happened("e-2", 20_000), &passes(ANSWERS, 20_000, unread));
        assert_eq!(story.state().answers[0].too_large, too_large);
        story.hears(
            &happened("e-3", 30_000),
            &passes(SYNTHESIS, 30_000, Vec::new()),
        );
        assert!(story.state().is_ended);
    }
}
