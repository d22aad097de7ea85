//! What is new since a head, where streams are as they were and where they are not.

use concord_domain::assurance::evidence::Fold;

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::default().plus_millis(ms)
}

fn end(last_sequence: u64, first_ms: Option<u64>) -> StreamEnd {
    StreamEnd {
        last_sequence,
        first_at: first_ms.map(at),
        kept_ms: None,
    }
}

/// A head, made after a second, that covers so much of the two streams.
fn head(events: u64, messages: u64) -> Head {
    let interval = |stream, last_sequence| StreamInterval {
        last_sequence,
        total: last_sequence,
        ..Fold::after(None, stream, None).interval()
    };
    Head {
        number: 1,
        previous: None,
        at: at(1_000),
        streams: vec![
            interval(StreamKind::Events, events),
            interval(StreamKind::Messages, messages),
        ],
        digest: String::new(),
        signature: None,
    }
}

#[test]
fn a_stream_that_was_made_anew_is_digested_from_its_beginning_and_hides_nothing_of_another() {
    let events = StreamKind::Events;
    let messages = StreamKind::Messages;
    let before = Some(1);
    for (name, ended, first_ms, next, new) in [
        ("nothing new but the head", 200, before, 201, 0),
        ("one new", 201, before, 201, 1),
        ("made anew, with three", 3, Some(2_000), 1, 3),
        ("made anew, and empty", 0, None, 1, 0),
        ("without its end", 150, before, 201, 0),
    ] {
        let last = head(50, 200);
        let messages_end = end(ended, first_ms);
        let fold = goes_on(Some(&last), messages, &messages_end);
        assert_eq!(fold.next(), next, "{name}");
        assert_eq!(fold.interval().total, 200, "{name}");
        for (events_ended, new_events) in [(51, 0), (61, 10)] {
            let ends = [
                (events, end(events_ended, before)),
                (messages, messages_end),
            ];
            assert_eq!(stored_since(Some(&last), &ends), new + new_events, "{name}");
        }
    }
    let ends = [(events, end(5, before)), (messages, end(7, before))];
    assert_eq!(stored_since(None, &ends), 12, "before the first head");
}
