use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

fn put(from: &str, id: &str, name: &str, based_on: u64, value: Value) -> BoardInput {
    let put = PutEntry {
        name: name.to_owned(),
        based_on,
        value,
        confidence: Some(0.8),
    };
    BoardInput::Put(Box::new(ReceivedPut {
        heard: Heard {
            agent_id: agent(from),
            message_id: message(id),
            digest: crate::digest(format!("{from} {put:?}").as_bytes()),
        },
        case_id: case_id(),
        put,
    }))
}

fn hears(story: &mut Story<BoardMachine>, id: &str, input: &BoardInput) -> String {
    let now = story.records.len() as u64;
    let BoardInput::Put(received) = input;
    let sender = received.heard.agent_id.clone();
    story.hears(&said(id, now).of_sender(sender), input)
}

#[test]
fn the_table_of_the_board() {
    let mut story = Story::<BoardMachine>::of("c-1");
    let stale = "refused: /payload/parameters/based_on";
    for (from, id, name, based_on, value, expected) in [
        ("ann", "m-1", "plan", 3, json!("x"), stale),
        ("ann", "m-2", "plan", 0, json!("a"), "put"),
        ("ann", "m-2", "plan", 0, json!("a"), "ignored: repetition"),
        ("ann", "m-2", "plan", 1, json!("b"), "refused: /message_id"),
        // An id is its sender's own.
        ("ben", "m-2", "plan", 0, json!("a"), stale),
        ("ben", "m-3", "plan", 0, json!("b"), stale),
        ("ben", "m-4", "plan", 2, json!("b"), stale),
        ("ben", "m-5", "plan", 1, json!("b"), "put"),
        ("ann", "m-6", "plan", 1, json!("c"), stale),
        ("ann", "m-7", "other", 0, json!(7), "put"),
        ("ann", "m-8", "plan", 2, Value::Null, "put"),
        ("ben", "m-9", "plan", 0, json!("again"), stale),
        ("ben", "m-7", "third", 0, json!(7), "put"),
        ("ben", "m-7", "third", 0, json!(7), "ignored: repetition"),
    ] {
        let input = put(from, id, name, based_on, value);
        assert_eq!(hears(&mut story, id, &input), expected, "{from} {id}");
    }
    assert!(story.has_one_id_each());
    let plan = &story.state().entries["plan"];
    let listing = &plan.listing;
    assert_eq!(
        (listing.version, listing.author.as_str(), &plan.value),
        (3, "ann", &Value::Null)
    );
}

#[test]
fn who_is_refused_is_told_what_stands_and_who_wrote_it() {
    let mut story = Story::<BoardMachine>::of("c-1");
    hears(&mut story, "m-1", &put("ann", "m-1", "plan", 0, json!(1)));
    let late = put("ben", "m-2", "plan", 0, json!(2));
    let Decision::Reject(fault) = BoardMachine::decide(story.state(), &said("m-2", 9), &late)
    else {
        panic!("it is refused");
    };
    assert_eq!(fault.code, ErrorCode::InvalidRequest);
    assert!(fault.message.contains("version 1, which ann"), "{fault}");
    assert!(fault.advice.contains("based_on 1"), "{fault}");
}

#[test]
fn the_writer_is_answered_and_all_others_hear_of_it_without_the_value() {
    let mut story = Story::<BoardMachine>::of("c-1");
    let secret = json!("a long text that is read by asking");
    hears(&mut story, "m-1", &put("ann", "m-1", "plan", 0, secret));
    let told = crate::effect::messages::<BoardMachine>(story.last()).unwrap();
    let [answer, news] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(answer.reply_to.as_deref(), Some("m-1"));
    assert_eq!(news.to_agent.as_str(), "_all");
    let text = news.payload.get();
    assert!(text.contains("board_changed") && !text.contains("a long text"));
}

#[test]
fn a_board_and_what_one_author_writes_are_bounded() {
    let mut story = Story::<BoardMachine>::of("c-1");
    // Each author has a share of the entries; together they fill the board.
    for author in ["ann", "ben", "cyd", "dan"] {
        for _ in 0..AUTHOR_ENTRIES_MAX {
            let n = story.records.len();
            let (id, name) = (format!("m-{n}"), format!("n-{n}"));
            let one = put(author, &id, &name, 0, json!(n));
            assert_eq!(hears(&mut story, &id, &one), "put");
        }
        let more = put(author, "m-more", "more", 0, json!(1));
        let heard = hears(&mut story, "m-more", &more);
        assert_eq!(heard, "refused: /payload/parameters/name");
    }
    assert_eq!(story.state().entries.len(), ENTRIES_MAX);
    let full = put("eve", "m-x", "one more", 0, json!(1));
    assert_eq!(
        hears(&mut story, "m-x", &full),
        "refused: /payload/parameters/name"
    );
    let large = json!("v".repeat(60_000));
    let mut refused = None;
    for n in 0..9 {
        let (id, name) = (format!("l-{n}"), format!("n-{n}"));
        let heard = hears(&mut story, &id, &put("ben", &id, &name, 1, large.clone()));
        refused = refused.or((heard != "put").then_some((n, heard)));
    }
    let expected = "refused: /payload/parameters/value".to_owned();
    assert_eq!(refused, Some((8, expected)));
    let emptied = put("ben", "m-e", "n-0", 2, Value::Null);
    assert_eq!(hears(&mut story, "m-e", &emptied), "put", "room is made");
    let mut state = story.state().clone();
    state.authors.insert(
        agent("ann"),
        Written {
            puts: AUTHOR_PUTS_MAX,
            ..Written::default()
        },
    );
    let once_more = put("ann", "m-z", "n-9", 1, json!(1));
    let decided = BoardMachine::decide(&state, &said("m-z", 1), &once_more);
    assert!(
        matches!(decided, Decision::Reject(fault) if fault.code == ErrorCode::CapacityExceeded)
    );
}

proptest! {
    #[test]
    fn no_version_is_written_twice_and_each_was_based_on_the_one_before(
        puts in proptest::collection::vec((0usize..3, 0u32..20, 0usize..2, 0u64..4, 0i32..3), 0..60)
    ) {
        let mut story = Story::<BoardMachine>::of("c-1");
        for (who, id, name, based_on, value) in puts {
            let (who, name) = (["ann", "ben", "cyd"][who], ["plan", "risk"][name]);
            let id = format!("m-{id}");
            let before = version_of(story.state(), name);
            let heard = hears(&mut story, &id, &put(who, &id, name, based_on, json!(value)));
            let grown = u64::from(heard == "put");
            prop_assert!(heard != "put" || based_on == before);
            prop_assert_eq!(version_of(story.state(), name), before + grown);
        }
        let (again, differences) = replay::rebuild::<BoardMachine>(&story.records);
        prop_assert_eq!(differences, []);
        prop_assert_eq!(&*again.state, story.state());
        prop_assert_eq!(replay::recount::<BoardMachine>(&story.records), Vec::new());
    }
}
