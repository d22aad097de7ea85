//! Reactions to activation, and collaboration in sessions.

use super::*;

/// Five agents are woken: three by a match, of whom one answers, one declines and one is silent; one by a mention, which declines; and
/// one to whom it is addressed.
fn feedback() -> Vec<Stored> {
    let matches = [
        ("ben", "semantic:tax"),
        ("cleo", "keyword:vat"),
        ("dan", "semantic:law"),
    ];
    let others = [("eve", "mention"), ("fay", "direct_target")];
    vec![
        stored_message(0, "m-1", "ann", "_any", "group_query", json!({})),
        woken(0, "m-1", &[&matches[..], &others].concat()),
        stored_message(10, "m-2", "ben", "ann", "response", reply("m-1")),
        // What is said to the adapter, which told of the message, is a word too.
        stored_message(
            20,
            "m-3",
            "cleo",
            "agent-adapter",
            "response",
            json!({
                "correlation_id": "m-1", "reply_to": "n-1", "payload": { "status": "failure", "result": { "accepted": false } },
            }),
        ),
        stored_message(
            30,
            "m-4",
            "eve",
            "ann",
            "info_update",
            json!({
                "reply_to": "m-1", "payload": { "content": "No." }, "metadata": { "accepted": false },
            }),
        ),
        stored_message(
            40,
            "m-5",
            "fay",
            "ann",
            "info_update",
            json!({ "reply_to": "m-1", "payload": { "accepted": true } }),
        ),
        // The first word counts.
        stored_message(50, "m-6", "ben", "ann", "response", refusal("m-1")),
        stored_message(60, "m-7", "cleo", "ann", "response", reply("m-1")),
    ]
}

#[test]
fn who_answers_was_rightly_woken_and_who_declines_was_not() {
    let (before, after) = reports(Limits::default(), &feedback());
    let feedbacks = |woken, accepted, declined, silent, waiting| Feedbacks {
        woken,
        accepted,
        declined,
        silent,
        waiting,
    };
    assert_eq!(
        (before.matches, before.wakes),
        (feedbacks(3, 1, 1, 0, 1), feedbacks(5, 2, 2, 0, 1))
    );
    assert_eq!(
        (after.matches, after.wakes),
        (feedbacks(3, 1, 1, 1, 0), feedbacks(5, 2, 2, 1, 0))
    );
    assert_eq!(
        (after.matching_accuracy.value, after.matching_accuracy.met),
        (Some(0.5), Some(false))
    );
    assert_eq!(
        (after.false_wakes.value, after.false_wakes.met),
        (Some(0.5), Some(false))
    );
}

#[test]
fn the_decision_may_be_read_before_the_message_and_after_its_answers() {
    let story = feedback();
    let expected = report(&story);
    for place in 0..story.len() {
        let mut other = story.clone();
        let decision = other.remove(1);
        other.insert(place, decision.clone());
        assert_eq!(report(&other), expected, "at {place}");
        // Twice decided is once woken.
        other.push(decision);
        assert_eq!(report(&other), expected, "at {place}, and again");
    }
}

#[test]
fn collaboration_is_what_peers_do_for_each_other_in_a_session() {
    let story = [
        stored_message(0, "m-1", "ann", "ben", "peer_request", json!({})),
        stored_message(1, "m-2", "ben", "ann", "response", reply("m-1")),
        stored_message(2, "m-3", "ben", "ann", "response", reply("m-1")),
        stored_message(3, "m-4", "cleo", "_all", "expertise_offer", json!({})),
        stored_message(4, "m-5", "ann", "cleo", "collaboration_invite", json!({})),
        stored_message(5, "m-6", "cleo", "ann", "commitment", reply("m-5")),
        // An offer that is an answer is one event.
        stored_message(6, "m-7", "dan", "_all", "expertise_offer", reply("m-1")),
        // A question to the group counts when somebody takes it up, and not before.
        stored_message(7, "m-8", "ann", "_all", "group_query", json!({})),
        stored_message(8, "m-9", "ann", "_all", "group_query", json!({})),
        stored_message(9, "m-10", "ben", "ann", "response", reply("m-9")),
        // News, a refusal, and what goes through a lead are none.
        stored_message(10, "m-11", "ann", "_all", "info_update", json!({})),
        stored_message(11, "m-12", "dan", "ann", "response", refusal("m-5")),
        stored_message(12, "m-13", "lea", "ann", "peer_request", json!({})),
        stored_message(13, "m-14", "ann", "lea", "response", reply("m-13")),
    ];
    let report = report(&story);
    assert_eq!((report.collaboration_events, report.sessions), (8, 1));
    assert_eq!(
        (
            report.events_per_session.value,
            report.events_per_session.met
        ),
        (Some(8.0), Some(true))
    );
    assert_eq!(
        report.peer_help.asked, 4,
        "what a lead asks for is no peer's help"
    );
}

#[test]
fn a_session_is_a_case_or_a_thread() {
    let alone = |millis, id: &str, more: Value| {
        let envelope = envelope("_", id, "ann", "ben", "info_update", &more);
        Stored::Message(Box::new(TrackedMessage::of(&envelope, after(millis))))
    };
    let story = [
        stored_message(0, "m-1", "ann", "ben", "info_update", json!({})),
        stored_message(1, "m-2", "ben", "ann", "info_update", json!({})),
        alone(2, "m-3", json!({})),
        alone(3, "m-4", json!({ "correlation_id": "m-3" })),
        alone(4, "m-5", reply("m-3")),
        alone(5, "m-6", json!({})),
    ];
    assert_eq!(report(&story).sessions, 3);
}
