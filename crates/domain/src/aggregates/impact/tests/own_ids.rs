//! Ids of messages are their senders' own.

use super::*;

#[test]
fn nobody_keeps_another_from_publishing_by_using_its_id() {
    let mut story = published();
    for (from, analysis, expected) in [
        ("ann", "first", "published"),
        ("ann", "first", "ignored: repetition"),
        ("ann", "other", "refused: /message_id"),
        ("ben", "second", "published"),
        ("ben", "second", "ignored: repetition"),
    ] {
        let input = publish(from, "m-own", json!({ "analysis_id": analysis }));
        let context = said("m-own", 9).of_sender(agent(from));
        let heard = story.hears(&context, &input);
        assert_eq!(heard, expected, "{from} {analysis}");
    }
    assert!(story.has_one_id_each());
}
