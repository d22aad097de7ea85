//! Handing a task on, cancelling it, and answers that are not tied to an assignment.

use super::*;

fn hand_on(stage: &mut Stage, from: &str, to: Option<&str>) -> String {
    let handoff = Handoff {
        to: to.map(agent),
        context: json!({ "read": 3 }),
        reason: "not mine".into(),
    };
    stage.say(from, Word::HandOn(handoff, None))
}

#[test]
fn a_task_is_handed_on_with_its_context_once_and_never_in_a_circle() {
    let mut stage = Stage::open("round_robin", &["ann", "ben"], json!({}));
    stage.places(&["ann"]);
    for to in [None, Some("ann"), Some(OPENER)] {
        assert_eq!(
            hand_on(&mut stage, "ann", to),
            "refused: /payload/to",
            "{to:?}"
        );
    }
    let gone = Word::HandOn(
        Handoff {
            to: Some(agent("zoe")),
            context: Value::Null,
            reason: String::new(),
        },
        Some("zoe is not registered.".into()),
    );
    assert_eq!(stage.say("ann", gone), "refused: /payload/to");
    assert_eq!(hand_on(&mut stage, "ann", Some("cyd")), "handed_on");
    let told: Vec<String> = stage.sent().into_iter().map(|(_, to)| to).collect();
    assert_eq!(told, [OPENER, "ann"]);
    assert_eq!(stage.asked(), ["cyd"]);
    assert_eq!(
        hand_on(&mut stage, "ann", Some("ben")),
        "refused: /reply_to",
        "twice"
    );
    assert_eq!(stage.result("ann", json!(1)), "refused: /reply_to");
    stage.places(&["cyd"]);
    let assigned = effect::messages::<TaskMachine>(stage.story.last()).unwrap();
    let payload: Value = assigned[0].payload().unwrap();
    assert_eq!(
        payload["work"]["handed_on"]["context"],
        json!({ "read": 3 })
    );
    assert_eq!(
        hand_on(&mut stage, "cyd", Some("ann")),
        "refused: /payload/to",
        "a circle"
    );
    stage.report("cyd", json!({ "status": "failure" }));
    assert_eq!(stage.asked(), ["ben"], "the next of those who fit");
}

#[test]
fn an_answer_counts_for_the_assignment_that_it_names_and_a_repetition_not_at_all() {
    let mut stage = Stage::open("round_robin", &["ann"], json!({}));
    stage.places(&["ann"]);
    let result: TaskResult = serde_json::from_value(json!({ "result": 1 })).unwrap();
    let answer = |asked| {
        let (by, word) = (agent("ann"), Word::Result(result.clone()));
        TaskInput::Say(Box::new(Said { by, asked, word }))
    };
    let opened = stage.story.state().opened_sequence;
    let assigned = stage.story.last().sequence;
    for wrong in [0, opened, assigned + 1] {
        assert_eq!(stage.hear(&answer(Some(wrong))), "refused: /reply_to");
    }
    let state = stage.story.state();
    assert!(state.has_asked(&agent("ann"), Some(assigned)));
    assert!(!state.has_asked(&agent("ann"), Some(0)));
    assert!(!state.has_asked(&agent("bob"), Some(assigned)));
    assert_eq!(stage.hear(&answer(Some(assigned))), "reported");
    let again = said(&format!("m-{}", stage.clock), 90);
    assert_eq!(
        stage.story.hears(&again, &answer(Some(assigned))),
        "ignored: repetition"
    );
    let mut none = Story::<TaskMachine>::of("t-9");
    assert_eq!(
        none.hears(&said("m-1", 1), &answer(Some(1))),
        "refused: /reply_to"
    );
}

#[test]
fn an_answer_that_names_the_task_alone_counts_for_whoever_has_it() {
    let mut stage = Stage::open("round_robin", &["ann", "ben"], json!({}));
    let answer = |name: &str| {
        let result = serde_json::from_value(json!({ "result": 1 })).unwrap();
        let (by, asked, word) = (agent(name), None, Word::Result(result));
        TaskInput::Say(Box::new(Said { by, asked, word }))
    };
    assert_eq!(stage.hear(&answer("ann")), "refused: /reply_to", "not yet");
    stage.places(&["ann"]);
    assert_eq!(stage.hear(&answer("ben")), "refused: /reply_to");
    assert_eq!(stage.hear(&answer("ann")), "reported");
}

#[test]
fn whoever_opened_it_or_an_operator_cancels_it_and_who_works_on_it_is_told() {
    let cancel = |by: &str, sender| TaskInput::Cancel {
        by: agent(by),
        sender: Box::new(sender),
        request_id: Some(message("m-cancel")),
        why: "not needed".into(),
    };
    for (by, sender) in [
        (OPENER, Authority::default()),
        ("otto", authority("otto", &[Role::Operator])),
    ] {
        let mut stage = Stage::open("broadcast", &["ann", "ben"], json!({}));
        stage.places(&["ann"]);
        let stranger = cancel("eve", Authority::default());
        assert_eq!(
            stage.hear(&stranger),
            "refused: /payload/parameters/task_id"
        );
        assert_eq!(stage.hear(&cancel(by, sender.clone())), "cancelled");
        use MessageType::{Error, Notification, Response};
        let told: Vec<(MessageType, String)> = stage.sent();
        // Who opened it hears one end, as where the task has failed.
        let expected: &[(MessageType, &str)] = if by == OPENER {
            &[(Response, OPENER), (Notification, "ann")]
        } else {
            &[(Response, "otto"), (Notification, "ann"), (Error, OPENER)]
        };
        let told: Vec<_> = told
            .iter()
            .map(|(kind, to)| (kind.clone(), to.as_str()))
            .collect();
        assert_eq!(told, expected);
        assert_eq!(
            stage.hear(&cancel(by, sender)),
            "refused: /payload/parameters/task_id"
        );
        assert_eq!(stage.place("ben"), "ignored: already_done");
    }
}
