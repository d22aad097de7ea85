use concord_events::topology::StreamKind;
use concord_events::{AggregateEvent, EventMeta, Head, HeadEvent, StoredEvent, StreamInterval};
use concord_wire::{MessageId, Timestamp};

use super::*;
use crate::machine::Decision;

fn interval(first: u64, last: u64) -> StreamInterval {
    StreamInterval {
        stream: StreamKind::Events,
        first_sequence: first,
        last_sequence: last,
        count: last + 1 - first,
        total: last,
        digest: "d".into(),
        since: None,
        until: None,
        kept_ms: None,
        gaps: Vec::new(),
    }
}

fn head(number: u64, previous: Option<&Head>, interval: StreamInterval) -> Head {
    let mut head = Head {
        number,
        previous: previous.map(|head| head.digest.clone()),
        at: Timestamp::from_unix_millis(0),
        streams: vec![interval],
        digest: String::new(),
        signature: None,
    };
    head.digest = digest_of(&head);
    head
}

fn after(head: &Head) -> HeadState {
    let mut state = HeadState::default();
    let meta = EventMeta {
        event_id: MessageId::derived("e"),
        id: head_id(),
        at: head.at,
        cause: MessageId::derived("c"),
        deadlines: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
        earlier: Vec::new(),
        memory_snapshot: None,
        state: None,
    };
    let event = HeadEvent::Advanced(head.clone());
    HeadMachine::apply(
        &mut state,
        StoredEvent {
            meta,
            sequence: 1,
            event,
        },
    );
    state
}

fn is_taken(state: &HeadState, head: &Head) -> bool {
    let context = Context::of_message(head.at, MessageId::derived("c"));
    let decision = HeadMachine::decide(state, &context, &Advance(head.clone()));
    let taken = matches!(decision, Decision::Append(_));
    let event = HeadEvent::Advanced(head.clone());
    assert_eq!(taken, HeadMachine::misplaced(state, &event).is_none());
    taken
}

#[test]
fn a_head_follows_the_last_one_and_no_other() {
    let first = head(1, None, interval(1, 5));
    let none = HeadState::default();
    assert!(is_taken(&none, &first));
    let last = after(&first);
    let other = head(1, None, interval(1, 4));
    for (name, next, taken) in [
        ("the next", head(2, Some(&first), interval(6, 9)), true),
        ("the same again", first.clone(), false),
        (
            "one number too far",
            head(3, Some(&first), interval(6, 9)),
            false,
        ),
        (
            "one of another history",
            head(2, Some(&other), interval(6, 9)),
            false,
        ),
        (
            "one with a hole",
            head(2, Some(&first), interval(7, 9)),
            false,
        ),
        (
            "one over a part again",
            head(2, Some(&first), interval(5, 9)),
            false,
        ),
        (
            "one over a stream that was made anew",
            head(2, Some(&first), interval(1, 2)),
            true,
        ),
    ] {
        assert_eq!(is_taken(&last, &next), taken, "{name}");
    }
    assert!(!is_taken(&none, &head(2, Some(&first), interval(6, 9))));
}

#[test]
fn a_head_whose_digest_is_not_its_own_is_found() {
    let mut changed = head(1, None, interval(1, 5));
    changed.streams[0].count = 4;
    let event = HeadEvent::Advanced(changed);
    let found = HeadMachine::misplaced(&HeadState::default(), &event);
    assert!(found.unwrap().contains("Its digest"));
    assert_eq!(HeadEvent::EVENTS.len(), 1);
}
