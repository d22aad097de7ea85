//! Ids of messages are their senders' own.

use super::*;

/// The id of an answer can be foreseen, so another may have used it first: for a finding, to open the case, or for a challenge.
#[test]
fn nobody_keeps_another_from_being_heard_by_using_its_id() {
    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
    let by = |who: &str, id: &str, at| said(id, at).of_sender(agent(who));
    let first = story.hears(
        &by("ben", "m-2", 1),
        &finding("ben", "m-2", json!({ "risk_score": 10 })),
    );
    assert_eq!(first, "finding_recorded");
    let heard = finding("ann", "m-2", json!({ "risk_score": 90 }));
    assert_eq!(story.hears(&by("ann", "m-2", 2), &heard), "findings_closed");
    assert_eq!(
        story.hears(&by("ann", "m-2", 3), &heard),
        "ignored: repetition"
    );
    let events = &story.records;
    assert!(events.len() == 3 && story.has_one_id_each());
    assert_eq!(events[1].meta.cause.as_str(), "m-2");
    let own = MessageId::of_sender(&events[1].meta.cause, &agent("ann"));
    assert_eq!(events[2].meta.cause, own);

    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    let heard = finding("ann", "m-open", json!({}));
    assert_eq!(
        story.hears(&by("ann", "m-open", 1), &heard),
        "finding_recorded"
    );
    assert!(story.has_one_id_each());
}

/// Whatever another has sent under an id before, a finding or something else.
#[test]
fn nobody_keeps_another_from_confirming_challenging_reviewing_or_letting_in_by_using_its_id() {
    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(
        &said("m-open", 0),
        &open_case(&["ann", "ben", "cyd"], policy()),
    );
    let mut hears = |who: &str, id: &str, input: &CaseInput| {
        story.hears(&said(id, 1).of_sender(agent(who)), input)
    };
    let found = |who, id| finding(who, id, json!({ "risk_score": 10 }));
    for (who, id, input, expected) in [
        ("ann", "f-1", found("ann", "f-1"), "finding_recorded"),
        ("ann", "k-1", found("ann", "k-1"), "finding_set_aside"),
        (
            "ben",
            "k-1",
            confirming::confirm("ben", "k-1", "f-1", 0.6),
            "confirmed",
        ),
        (
            "cyd",
            "k-1",
            gates::challenges("cyd", "k-1", "ann"),
            "challenged",
        ),
        (
            "olga",
            "k-1",
            joining::lets_in("olga", "dan", "k-1"),
            "joined",
        ),
        // The request that opened the case had this id.
        (
            "cyd",
            "m-open",
            confirming::confirm("cyd", "m-open", "f-1", 0.6),
            "confirmed",
        ),
        (
            "olga",
            "m-open",
            joining::lets_in("olga", "eve", "m-open"),
            "refused: /message_id",
        ),
        // Of its own sender an id is used up.
        (
            "ann",
            "f-1",
            gates::challenges("ann", "f-1", "ann"),
            "refused: /message_id",
        ),
        ("ben", "k-1", found("ben", "k-1"), "refused: /message_id"),
    ] {
        assert_eq!(hears(who, id, &input), expected, "{who} {id}");
    }
    assert!(story.has_one_id_each());
}
