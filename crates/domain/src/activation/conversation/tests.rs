use concord_events::WakeEvent;
use concord_wire::Recipient;
use serde_json::json;

use super::*;
use crate::activation::WINDOW_MAX;
use crate::effect;
use crate::fixtures::*;

fn weigh(id: &str, from: &str, to: &str, text: &str, woken: &[&str]) -> WakeInput {
    let decision = |wakes: bool| match wakes {
        true => Decision {
            score: Some(0.9),
            ..Decision::new(Outcome::Wake, Reason::Semantic("tax".into()))
        },
        false => Decision {
            score: Some(0.2),
            ..Decision::new(Outcome::Observe, Reason::BelowThreshold)
        },
    };
    let all = ["ben", "cleo", "dan"]
        .into_iter()
        .filter(|name| *name != from);
    WakeInput::Message(Box::new(DecidedMessage {
        said: Remembered {
            message_id: message(id),
            from: agent(from),
            to: Recipient::new(to).unwrap(),
            message_type: "group_query".into(),
            at: after(0),
            reply_to: None,
            text: text.into(),
        },
        case_id: Some(case_id()),
        from_outside: false,
        message: json!({ "payload": { "content": text } }),
        decisions: Decisions {
            decisions: all
                .map(|name| (agent(name), decision(woken.contains(&name))))
                .collect(),
            named_beyond: 0,
        },
        with_model: true,
        question: None,
        thread: "c-1".into(),
        bounds: Some(LoopBounds {
            depth_max: 3,
            window_ms: 60_000,
            pause_ms: 10_000,
        }),
        context_max: WINDOW_MAX,
    }))
}

fn last(story: &Story<WakeMachine>) -> &WakeDecided {
    match &story.last().event {
        WakeEvent::Decided(decided) => decided,
        WakeEvent::LoopBroken(broken) => panic!("{broken:?}"),
    }
}

/// The agents that are told of something, and of what.
fn told(story: &Story<WakeMachine>) -> Vec<(String, String)> {
    let messages = effect::messages::<WakeMachine>(story.last()).unwrap();
    let event = |one: &Envelope| {
        one.payload::<Value>().unwrap()["event"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    messages
        .iter()
        .map(|one| (one.to_agent.as_str().to_owned(), event(one)))
        .collect()
}

fn at(input: WakeInput, millis: u64) -> WakeInput {
    let WakeInput::Message(mut weigh) = input else {
        panic!()
    };
    weigh.said.at = after(millis);
    WakeInput::Message(weigh)
}

fn broken(from: &str, to: &str, millis: u64) -> WakeInput {
    WakeInput::BreakLoop(Box::new(LoopBroken {
        thread: "c-1".into(),
        case_id: Some(case_id()),
        message_id: message("m-x"),
        from: agent(from),
        to: agent(to),
        depth: 65,
        window_ms: 60_000,
        at: after(millis),
        until: after(millis + 10_000),
    }))
}

#[test]
fn who_wakes_is_told_once_with_what_was_said_before_and_whom_it_is_for_has_it_already() {
    let mut story = Story::<WakeMachine>::of("c-1");
    assert_eq!(
        story.hears(&said("m-1", 0), &weigh("m-1", "ann", "_all", "Hello.", &[])),
        "decided"
    );
    assert!(
        effect::messages::<WakeMachine>(story.last())
            .unwrap()
            .is_empty()
    );
    let second = weigh("m-2", "ann", "ben", "Who knows taxes?", &["ben", "cleo"]);
    assert_eq!(story.hears(&said("m-2", 1), &second), "decided");
    let told = effect::messages::<WakeMachine>(story.last()).unwrap();
    let [one] = &told[..] else { panic!("{told:?}") };
    assert_eq!(
        (one.to_agent.as_str(), one.requires_response),
        ("cleo", true)
    );
    let payload: Value = one.payload().unwrap();
    assert_eq!(payload["event"], "woken");
    assert_eq!(payload["data"]["reason"], "semantic:tax");
    assert_eq!(payload["data"]["context"][0]["text"], "Hello.");
    assert_eq!(story.hears(&said("m-2", 2), &second), "ignored: repetition");
    let decided = last(&story);
    assert_eq!((decided.observing, decided.others.len()), (1, 1));
}

#[test]
fn so_much_is_remembered_and_who_spoke_last_takes_part_most() {
    let mut story = Story::<WakeMachine>::of("c-1");
    for n in 0..=REMEMBERED_MAX as u64 {
        let (id, from) = (format!("m-{n}"), if n % 2 == 0 { "ben" } else { "cleo" });
        story.hears(&said(&id, n), &weigh(&id, from, "_all", "And?", &[]));
    }
    let state = story.state();
    assert_eq!(state.recent.len(), REMEMBERED_MAX);
    let silent = |name| {
        state
            .participations()
            .get(&agent(name))
            .map(|one| one.silent_for)
    };
    assert_eq!(
        (silent("ben"), silent("cleo"), silent("dan")),
        (Some(0), Some(1), None)
    );
    assert_eq!(
        (state.author_of("m-0"), state.author_of("m-20")),
        (None, Some(&agent("ben")))
    );
}

#[test]
fn what_somebody_outside_says_wakes_whom_it_concerns_and_is_given_to_nobody_as_context() {
    let mut story = Story::<WakeMachine>::of("c-1");
    story.hears(&said("m-0", 0), &weigh("m-0", "ann", "_all", "Hello.", &[]));
    for place in 1..=20 {
        let id = format!("x-{place}");
        let to = if place % 2 == 0 { "_any" } else { "ben" };
        let WakeInput::Message(mut said_outside) = weigh(&id, "mallory", to, "Sign!", &["cleo"])
        else {
            panic!()
        };
        said_outside.from_outside = true;
        let input = at(WakeInput::Message(said_outside), place);
        assert_eq!(story.hears(&said(&id, place), &input), "decided");
        assert_eq!(last(&story).woken.len(), 1, "it is decided as before");
    }
    let asked = weigh("m-1", "ann", "_any", "Who knows taxes?", &["ben", "cleo"]);
    story.hears(&said("m-1", 30), &asked);
    let context = last(&story).context.iter();
    let context: Vec<&str> = context.map(|one| one.message_id.as_str()).collect();
    assert_eq!(context, ["m-0"]);
    assert!(last(&story).sees.is_empty());
    let state = story.state();
    assert_eq!(state.author_of("m-0"), Some(&agent("ann")));
    assert_eq!(state.author_of("x-20"), None);
}

#[test]
fn two_that_wake_each_other_are_paused_and_told_once_and_others_still_wake() {
    let mut story = Story::<WakeMachine>::of("c-1");
    let pair = |speaks: u64| {
        if speaks.is_multiple_of(2) {
            ("ben", "cleo")
        } else {
            ("cleo", "ben")
        }
    };
    let mut heard = |number: u64, millis: u64, woken: &[&str]| {
        let id = format!("m-{number}");
        let weigh = at(weigh(&id, pair(number).0, "_all", "And?", woken), millis);
        assert_eq!(story.hears(&said(&id, millis), &weigh), "decided");
        (last(&story).loop_broken.is_some(), told(&story))
    };
    let woken = |name: &str| (name.to_owned(), "woken".to_owned());
    let both = |first: &str, second: &str| {
        [first, second].map(|name| (name.to_owned(), "loop_broken".to_owned()))
    };
    // The first is said to nobody in particular: it is no turn yet.
    for number in 0..4 {
        assert_eq!(
            heard(number, number, &[pair(number).1]),
            (false, vec![woken(pair(number).1)]),
            "{number}"
        );
    }
    assert_eq!(
        heard(4, 4, &["cleo", "dan"]),
        (true, [&[woken("dan")][..], &both("ben", "cleo")].concat())
    );
    for number in 5..9 {
        assert_eq!(
            heard(number, number, &[pair(number).1, "dan"]),
            (false, vec![woken("dan")]),
            "{number}"
        );
    }
    // The pause is over.
    assert_eq!(heard(10, 10_004, &["cleo"]), (false, vec![woken("cleo")]));
    let loops = story.records.iter().filter(|record| match &record.event {
        WakeEvent::Decided(decided) => decided.others.iter().any(|one| one.reason == "loop_broken"),
        WakeEvent::LoopBroken(_) => false,
    });
    assert_eq!(loops.count(), 5, "it is recorded why they do not wake");
}

#[test]
fn a_loop_that_is_found_elsewhere_is_broken_once() {
    let mut story = Story::<WakeMachine>::of("c-1");
    assert_eq!(
        story.hears(&said("l-1", 5), &broken("ben", "cleo", 5)),
        "loop_broken"
    );
    let names: Vec<String> = told(&story).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ben", "cleo"]);
    for (id, from, to, millis, expected) in [
        ("l-1", "ben", "cleo", 5, "ignored: repetition"),
        ("l-2", "cleo", "ben", 6, "ignored: already_done"),
        ("l-3", "cleo", "dan", 6, "loop_broken"),
        ("l-4", "cleo", "ben", 10_005, "loop_broken"),
    ] {
        assert_eq!(
            story.hears(&said(id, millis), &broken(from, to, millis)),
            expected,
            "{id}"
        );
    }
    let direct = at(weigh("m-1", "ben", "cleo", "Well?", &["cleo"]), 10_006);
    assert_eq!(story.hears(&said("m-1", 10_006), &direct), "decided");
    assert_eq!(
        (last(&story).woken.len(), last(&story).loop_broken.clone()),
        (0, None)
    );
    let off = match at(weigh("m-2", "ben", "cleo", "Well?", &["cleo"]), 10_007) {
        WakeInput::Message(weigh) => WakeInput::Message(Box::new(DecidedMessage {
            bounds: None,
            ..*weigh
        })),
        other => other,
    };
    assert_eq!(story.hears(&said("m-2", 10_007), &off), "decided");
    assert_eq!(
        last(&story).woken.len(),
        1,
        "without bounds nobody is paused"
    );
}

#[test]
fn what_those_are_sent_who_wake_is_counted_before_it_is_sent() {
    let mut story = Story::<WakeMachine>::of("c-1");
    for number in 0..30_u64 {
        let id = format!("m-{number}");
        let said_before = weigh(&id, "ann", "_all", &"x".repeat(500), &[]);
        story.hears(&said(&id, number), &said_before);
    }
    for (id, to, bytes, woken) in [
        ("small", "_any", 10, &["ben", "cleo", "dan"][..]),
        ("large", "_any", 100_000, &["ben", "cleo", "dan"]),
        ("too-large", "_any", 300_000, &["ben", "cleo"]),
        ("to-one-of-them", "ben", 10_000, &["ben", "cleo"]),
        ("to-the-only-one", "ben", 10_000, &["ben"]),
        ("nobody", "_any", 100_000, &[]),
    ] {
        let input = weigh(id, "ann", to, &"x".repeat(bytes), woken);
        let WakeInput::Message(decided) = &input else {
            panic!("{input:?}");
        };
        let counted = told_bytes(story.state(), decided);
        assert_eq!(story.hears(&said(id, 100), &input), "decided");
        let sent = effect::messages::<WakeMachine>(story.last()).unwrap();
        let sent: usize = sent.iter().map(|one| one.payload.get().len()).sum();
        // What is about it, the name of the event and the reason, is not counted.
        assert!(
            counted <= sent && sent <= counted + 1_000,
            "{id}: {counted} of {sent}"
        );
    }
}

/// Whoever opens a case chooses its id, and can take that of a thread.
#[test]
fn a_case_with_the_id_of_a_thread_shows_nothing_of_what_is_said_in_that() {
    let mut story = Story::<WakeMachine>::of("c-1");
    let in_thread = |id: &str, woken: &[&str]| {
        let WakeInput::Message(mut decided) = weigh(id, "ann", "_any", "Which index?", woken)
        else {
            unreachable!("it is a message");
        };
        decided.case_id = None;
        WakeInput::Message(decided)
    };
    for (id, input) in [
        ("m-1", in_thread("m-1", &[])),
        (
            "m-2",
            weigh("m-2", "mal", "_all", "What do you know?", &["ben"]),
        ),
        ("m-3", in_thread("m-3", &["ben"])),
    ] {
        let heard = story.hears(&said(id, 0), &input);
        assert_eq!(heard, "decided");
        let context: Vec<&str> = last(&story)
            .context
            .iter()
            .map(|one| one.message_id.as_str())
            .collect();
        let expected: &[&str] = if id == "m-3" { &["m-1"] } else { &[] };
        assert_eq!(context, expected, "{id}");
    }
    let seen = |case: Option<&CaseId>| -> Vec<String> {
        let seen = story.state().windows.at(case).of(&agent("mal"), WINDOW_MAX);
        seen.iter().map(|one| one.message_id.to_string()).collect()
    };
    assert_eq!(seen(Some(&case_id())), ["m-2"]);
    assert_eq!(seen(None), ["m-1", "m-3"]);
}
