use concord_events::Aggregate;
use concord_events::{AnswerForm, FiredBy};
use concord_wire::payload::ResponseStatus;
use concord_wire::{Envelope, Recipient};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::effect;
use crate::fixtures::*;

mod callbacks;

const DUE: u64 = 30_000;

fn asked(to: &str) -> RequestOpened {
    RequestOpened {
        request_id: message("m-ask"),
        from: agent("ann"),
        to: Recipient::new(to).unwrap(),
        case_id: None,
        action: "review_code".into(),
        asked_at: after(0),
        sequence: 1,
        urgent: false,
        due: after(DUE),
        acknowledge_due: None,
        callback_url: None,
        digest: "d".into(),
    }
}

fn with_callback() -> RequestOpened {
    let callback_url = Some("https://example.org/done".into());
    RequestOpened {
        acknowledge_due: Some(after(1_000)),
        callback_url,
        ..asked("bob")
    }
}

fn ask(opened: RequestOpened) -> RequestInput {
    RequestInput::Ask {
        opened: Box::new(opened),
        refusal: None,
    }
}

fn heard(by: &str, id: &str, at: u64) -> HeardAnswer {
    HeardAnswer {
        by: agent(by),
        message_id: message(id),
        form: AnswerForm::Response,
        at: after(at),
        status: Some(ResponseStatus::Success),
        error_code: None,
        payload: json!({ "status": "success" }),
    }
}

fn answer(by: &str, id: &str, at: u64) -> RequestInput {
    RequestInput::Reply(Box::new(Reply::Answer(heard(by, id, at))))
}

fn kept(by: &str, id: &str, at: u64) -> RequestInput {
    RequestInput::Reply(Box::new(Reply::Withheld(heard(by, id, at))))
}

fn acknowledgement(by: &str, at: u64) -> RequestInput {
    let acknowledged = RequestAcknowledged {
        by: agent(by),
        message_id: message("m-ack"),
        at: after(at),
    };
    RequestInput::Reply(Box::new(Reply::Acknowledgement(acknowledged)))
}

fn elapsed(name: &'static str, due: u64, unread: Option<HeardAnswer>) -> RequestInput {
    let elapsed = DeadlineElapsed {
        aggregate: Aggregate::Request,
        id: token("r"),
        name: token(name),
        due: after(due),
        fired_by: FiredBy::Scheduler,
        lateness_ms: 0,
    };
    RequestInput::Elapsed {
        elapsed,
        unread: unread.map(Box::new),
    }
}

fn story() -> Story<RequestMachine> {
    Story::of("r")
}

fn told(story: &Story<RequestMachine>) -> Vec<Envelope> {
    effect::messages::<RequestMachine>(story.last()).unwrap()
}

#[test]
fn a_request_is_answered_once_and_later_answers_are_recorded_as_late() {
    let mut story = story();
    for (id, at, input, expected) in [
        ("m-ask", 0, ask(asked("bob")), "opened"),
        ("m-ask", 1, ask(asked("bob")), "ignored: repetition"),
        (
            "m-x",
            1,
            answer("eve", "m-x", 1),
            "refused: /correlation_id",
        ),
        ("m-x", 1, acknowledgement("bob", 1), "ignored: already_done"),
        ("m-1", 5, answer("bob", "m-1", 5), "answered"),
        ("m-1", 6, answer("bob", "m-1", 5), "ignored: repetition"),
        ("m-2", 7, answer("bob", "m-2", 7), "answered_late"),
        ("m-2", 8, answer("bob", "m-2", 7), "ignored: repetition"),
        (
            "f-1",
            DUE,
            elapsed(ANSWER, DUE, None),
            "ignored: deadline_not_open",
        ),
    ] {
        assert_eq!(story.hears(&said(id, at), &input), expected, "{id} at {at}");
    }
    assert_eq!(told(&story).len(), 0, "who asked has the answer already");
}

#[test]
fn another_request_under_the_same_id_is_refused() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(asked("bob")));
    let other = RequestOpened {
        digest: "other".into(),
        ..asked("bob")
    };
    assert_eq!(
        story.hears(&said("m-ask", 1), &ask(other)),
        "refused: /message_id"
    );
}

#[test]
fn what_has_no_id_is_asked_again_in_the_same_words_once_the_last_has_ended() {
    let place = |sequence| {
        MessageId::new(format!(
            "said-00000000-0000-5000-8000-000000000000-{sequence}"
        ))
        .unwrap()
    };
    let nth = |sequence, at| RequestOpened {
        request_id: place(sequence),
        asked_at: after(at),
        due: after(at + DUE),
        sequence,
        ..asked("bob")
    };
    assert_eq!(
        id_of(&agent("ann"), place(1).as_str()),
        id_of(&agent("ann"), place(9).as_str())
    );
    let hears = |story: &mut Story<RequestMachine>, sequence, at| {
        story.hears(&said(place(sequence).as_str(), at), &ask(nth(sequence, at)))
    };
    let mut story = story();
    assert_eq!(hears(&mut story, 1, 0), "opened");
    assert_eq!(
        hears(&mut story, 2, 5),
        "ignored: repetition",
        "one answer is for both"
    );
    assert_eq!(
        story.hears(&said("m-1", 10), &answer("bob", "m-1", 10)),
        "answered"
    );
    assert_eq!(
        hears(&mut story, 1, 0),
        "ignored: repetition",
        "it is delivered again"
    );
    assert_eq!(hears(&mut story, 3, 50_000), "opened");
    assert_eq!(
        story.hears(&said("m-1", 50_001), &answer("bob", "m-1", 10)),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&happened("f-1", 80_000), &elapsed(ANSWER, 80_000, None)),
        "failed"
    );
    assert_eq!(told(&story).len(), 1);
    let refusal = refusal_of_anything();
    let again = RequestInput::Ask {
        opened: Box::new(nth(4, 90_000)),
        refusal: Some(refusal),
    };
    assert_eq!(
        story.hears(&said(place(4).as_str(), 90_000), &again),
        "failed"
    );
    assert_eq!(told(&story).len(), 1, "each that failed is told");
}

fn refusal_of_anything() -> Refusal {
    let (pointer, why, suggestion) = (
        String::new(),
        "It is unavailable.".into(),
        "Ask another.".into(),
    );
    Refusal {
        code: ErrorCode::AgentUnavailable,
        pointer,
        why,
        suggestion,
    }
}

#[test]
fn who_asked_is_told_of_a_timeout_and_what_comes_then_is_late() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(asked("bob")));
    assert_eq!(
        story.hears(&happened("f-0", DUE), &elapsed(ANSWER, DUE - 1, None)),
        "ignored: deadline_not_open"
    );
    // Stored after the deadline, handled before anybody has noticed that it is over.
    assert_eq!(
        story.hears(&said("m-1", DUE + 1), &answer("bob", "m-1", DUE + 1)),
        "answered_late"
    );
    assert_eq!(
        story.hears(&happened("f-1", DUE + 2), &elapsed(ANSWER, DUE, None)),
        "failed"
    );
    let [error] = &told(&story)[..] else {
        panic!("one message")
    };
    assert_eq!(
        (error.to_agent.as_str(), error.correlation_id.as_deref()),
        ("ann", Some("m-ask"))
    );
    let report: concord_wire::payload::ErrorReport = error.payload().unwrap();
    assert_eq!(report.error_code, ErrorCode::Timeout);
    assert!(!report.recovery_suggestions.is_empty());
    assert_eq!(
        story.hears(&said("m-2", DUE + 3), &answer("bob", "m-2", DUE + 3)),
        "answered_late"
    );
}

#[test]
fn what_was_kept_from_who_asked_is_recorded_as_late_and_ends_nothing() {
    let mut story = story();
    assert_eq!(
        story.hears(&said("m-0", 1), &kept("bob", "m-0", 1)),
        "ignored: already_done",
        "nobody has asked"
    );
    story.hears(&said("m-ask", 2), &ask(asked("bob")));
    assert_eq!(
        story.hears(&said("m-1", 3), &kept("eve", "m-1", 3)),
        "refused: /correlation_id"
    );
    // Whoever kept it has a clock that is ahead: who asked has nothing yet.
    assert_eq!(
        story.hears(&said("m-2", 4), &kept("bob", "m-2", 4)),
        "answered_late"
    );
    assert_eq!(
        story.hears(&said("m-2", 5), &kept("bob", "m-2", 4)),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&happened("f-1", DUE + 1), &elapsed(ANSWER, DUE, None)),
        "failed"
    );
    assert_eq!(
        story.hears(&said("m-3", DUE + 2), &kept("bob", "m-3", DUE + 2)),
        "answered_late"
    );
}

#[test]
fn what_was_stored_in_time_counts_although_the_deadline_is_handled_first() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(asked("bob")));
    let unread = Some(heard("bob", "m-1", DUE));
    assert_eq!(
        story.hears(&happened("f-1", DUE + 9), &elapsed(ANSWER, DUE, unread)),
        "answered"
    );
    assert_eq!(
        story.hears(&said("m-1", DUE + 10), &answer("bob", "m-1", DUE)),
        "ignored: repetition"
    );
    for stranger in [heard("eve", "m-1", 5), heard("bob", "m-1", DUE + 1)] {
        let mut story = self::story();
        story.hears(&said("m-ask", 0), &ask(asked("bob")));
        assert_eq!(
            story.hears(&happened("f-1", DUE), &elapsed(ANSWER, DUE, Some(stranger))),
            "failed"
        );
    }
}

#[test]
fn an_answer_that_is_read_before_its_request_is_not_lost() {
    let mut story = story();
    assert_eq!(
        story.hears(&said("m-0", 1), &answer("eve", "m-0", 1)),
        "heard_early"
    );
    assert_eq!(
        story.hears(&said("m-1", 2), &answer("bob", "m-1", 2)),
        "heard_early"
    );
    assert_eq!(
        story.hears(&said("m-1", 2), &answer("bob", "m-1", 2)),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&said("m-ask", 3), &ask(asked("bob"))),
        "answered"
    );
    let mut late = self::story();
    late.hears(&said("m-1", DUE + 1), &answer("bob", "m-1", DUE + 1));
    assert_eq!(
        late.hears(&said("m-ask", DUE + 2), &ask(asked("bob"))),
        "opened"
    );
    // Delivered again: its fact is there, and there is no second one under the same id.
    assert_eq!(
        late.hears(&said("m-1", DUE + 3), &answer("bob", "m-1", DUE + 1)),
        "ignored: repetition"
    );
}

#[test]
fn whoever_is_first_answers_what_is_for_anybody_but_nobody_answers_themselves() {
    let mut story = story();
    story.hears(&said("m-ask", 0), &ask(asked("_any")));
    assert_eq!(
        story.hears(&said("m-1", 1), &answer("ann", "m-1", 1)),
        "refused: /correlation_id"
    );
    assert_eq!(
        story.hears(&said("m-2", 2), &answer("eve", "m-2", 2)),
        "answered"
    );
    assert_eq!(
        story.hears(&said("m-3", 3), &answer("bob", "m-3", 3)),
        "answered_late"
    );
}

proptest! {
    /// In whatever order the request, its answers and its deadline are handled, it ends once, and
    /// it is answered if and only if an answer of whoever was asked was stored in time and was
    /// heard or looked up.
    #[test]
    fn it_ends_once_in_any_order(order in Just(vec![0_u8, 1, 2, 3, 3]).prop_shuffle(), at in 0_u64..60_000) {
        let mut story = story();
        let mut ends = 0;
        for (place, what) in order.iter().enumerate() {
            let now = DUE + 60_000 + place as u64;
            let happened = match what {
                0 => story.hears(&said("m-ask", now), &ask(asked("bob"))),
                1 => story.hears(&said("m-1", now), &answer("bob", "m-1", at)),
                2 => story.hears(&said("m-2", now), &answer("eve", "m-2", at)),
                _ => story.hears(&happened("f-1", now), &elapsed(ANSWER, DUE, Some(heard("bob", "m-1", at)))),
            };
            ends += usize::from(matches!(happened.as_str(), "answered" | "failed"));
        }
        if ends == 0 {
            // The deadline was handled before the request, which no broker does: it is armed by it.
            let last = story.hears(&happened("f-2", DUE + 90_000), &elapsed(ANSWER, DUE, Some(heard("bob", "m-1", at))));
            ends += usize::from(matches!(last.as_str(), "answered" | "failed"));
        }
        prop_assert_eq!(ends, 1);
        let answered = matches!(story.state().ended, Some(RequestEnd::Answered(_)));
        prop_assert_eq!(answered, at <= DUE);
    }
}

/// The id of an answer can be foreseen, so another may have used it first.
#[test]
fn an_answer_counts_whoever_has_used_its_id_before() {
    let mut story = story();
    let by = |who: &str, at| said("m-1", at).of_sender(agent(who));
    story.hears(&by("eve", 1), &answer("eve", "m-1", 1));
    assert_eq!(story.hears(&said("m-ask", 2), &ask(asked("bob"))), "opened");
    let answered = story.hears(&by("bob", 3), &answer("bob", "m-1", 3));
    assert_eq!(answered, "answered");
    assert!(story.records.len() == 3 && story.has_one_id_each());
}
