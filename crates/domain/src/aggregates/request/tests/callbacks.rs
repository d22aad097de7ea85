//! Requests with a callback, failures, and bounds.

use super::*;

#[test]
fn a_request_with_a_callback_is_acknowledged_at_once_and_its_completion_is_told() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(with_callback()));
    assert_eq!(
        story.hears(&said("m-ack", 500), &acknowledgement("bob", 500)),
        "acknowledged"
    );
    assert_eq!(story.last().meta.closed, [token(ACKNOWLEDGE)]);
    assert_eq!(
        story.hears(&happened("f-1", 1_000), &elapsed(ACKNOWLEDGE, 1_000, None)),
        "ignored: deadline_not_open"
    );
    assert_eq!(
        story.hears(&said("m-1", 9_000), &answer("bob", "m-1", 9_000)),
        "answered"
    );
    let [completed] = &told(&story)[..] else {
        panic!("one message")
    };
    assert_eq!(
        (completed.message_type.as_str(), completed.to_agent.as_str()),
        ("notification", "ann")
    );
    assert!(completed.payload.get().contains("request_completed"));

    let mut early = self::story();
    assert_eq!(
        early.hears(&said("m-ack", 1), &acknowledgement("bob", 1)),
        "heard_early"
    );
    assert_eq!(
        early.hears(&said("m-ask", 2), &ask(with_callback())),
        "opened"
    );
    assert_eq!(
        early.last().meta.deadlines.len(),
        1,
        "nobody waits for the acknowledgement any more"
    );
}

#[test]
fn nobody_acknowledges_and_the_request_fails_long_before_its_deadline() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(with_callback()));
    assert_eq!(
        story.hears(&happened("f-1", 1_000), &elapsed(ACKNOWLEDGE, 1_000, None)),
        "failed"
    );
    assert_eq!(
        story.state().ended,
        Some(RequestEnd::Failed(ErrorCode::AgentUnavailable))
    );
}

#[test]
fn what_cannot_be_carried_out_fails_at_once() {
    let mut story = story();
    let refusal = Refusal {
        code: ErrorCode::InvalidRequest,
        pointer: "/payload/parameters/files".into(),
        why: "It is missing.".into(),
        suggestion: "Name files.".into(),
    };
    let input = RequestInput::Ask {
        opened: Box::new(asked("bob")),
        refusal: Some(refusal),
    };
    assert_eq!(story.hears(&said("m-ask", 0), &input), "failed");
    assert!(
        told(&story)[0]
            .payload
            .get()
            .contains("/payload/parameters/files")
    );
    assert_eq!(
        story.hears(&said("m-1", 1), &answer("bob", "m-1", 1)),
        "answered_late"
    );
}

#[test]
fn late_answers_are_recorded_up_to_a_bound() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(asked("bob")));
    story.hears(&said("m-0", 1), &answer("bob", "m-0", 1));
    for n in 1..=LATE_MAX {
        let id = format!("m-{n}");
        assert_eq!(
            story.hears(&said(&id, 2), &answer("bob", &id, 2)),
            "answered_late"
        );
    }
    assert_eq!(
        story.hears(&said("m-x", 3), &answer("bob", "m-x", 3)),
        "ignored: already_done"
    );
}
