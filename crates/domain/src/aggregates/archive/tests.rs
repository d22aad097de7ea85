use concord_events::{EventMeta, SealedCase};
use concord_wire::MessageId;

use super::*;

fn segment(number: u64, previous: Option<&str>, case: &str) -> SegmentSealed {
    SegmentSealed {
        number,
        previous: previous.map(str::to_owned),
        manifest: format!("m{number}"),
        name: format!("{number}"),
        at: Timestamp::from_unix_millis(0),
        bytes: 1,
        plain_bytes: 1,
        cases: vec![SealedCase {
            case_id: CaseId::new(case).unwrap(),
            aggregates: Vec::new(),
        }],
        streams: Vec::new(),
    }
}

fn purged(through: u64) -> ArchiveInput {
    ArchiveInput::Purge(SegmentsPurged {
        through,
        kept: Vec::new(),
    })
}

fn context() -> Context {
    Context::of_message(Timestamp::from_unix_millis(0), MessageId::derived("m"))
}

/// The state after these inputs, each of which must lead to an event.
fn after(inputs: impl IntoIterator<Item = ArchiveInput>) -> ArchiveState {
    let mut state = ArchiveState::default();
    for (sequence, input) in (1..).zip(inputs) {
        let Decision::Append(event) = ArchiveMachine::decide(&state, &context(), &input) else {
            panic!("{input:?} was not taken in {state:?}");
        };
        let meta = EventMeta {
            event_id: MessageId::derived("e"),
            id: archive_id(),
            at: Timestamp::from_unix_millis(0),
            cause: MessageId::derived("c"),
            deadlines: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            earlier: Vec::new(),
            memory_snapshot: None,
            state: None,
        };
        ArchiveMachine::apply(
            &mut state,
            StoredEvent {
                meta,
                sequence,
                event,
            },
        );
    }
    state
}

fn is_taken(state: &ArchiveState, input: &ArchiveInput) -> bool {
    matches!(
        ArchiveMachine::decide(state, &context(), input),
        Decision::Append(_)
    )
}

#[test]
fn one_segment_follows_another() {
    let seal = ArchiveInput::Seal;
    let state = after([
        seal(segment(1, None, "a")),
        seal(segment(2, Some("m1"), "b")),
    ]);
    for (input, taken) in [
        (segment(3, Some("m2"), "c"), true),
        (segment(2, Some("m1"), "c"), false),
        (segment(4, Some("m2"), "c"), false),
        (segment(3, Some("m1"), "c"), false),
        (segment(3, None, "c"), false),
        (segment(3, Some("m2"), "a"), false),
    ] {
        assert_eq!(is_taken(&state, &seal(input.clone())), taken, "{input:?}");
    }
}

#[test]
fn what_waits_is_purged_once_and_may_be_sealed_again_after_that() {
    let seal = ArchiveInput::Seal;
    let two = || {
        [
            seal(segment(1, None, "a")),
            seal(segment(2, Some("m1"), "b")),
        ]
    };
    let waiting = after(two());
    assert!(is_taken(&waiting, &purged(1)) && is_taken(&waiting, &purged(2)));
    assert!(!is_taken(&waiting, &purged(3)) && !is_taken(&ArchiveState::default(), &purged(1)));
    let state = after(two().into_iter().chain([purged(1)]));
    let b = CaseId::new("b").unwrap();
    assert_eq!(state.waiting_cases(), [&b].into());
    assert!(!is_taken(&state, &purged(1)));
    assert!(is_taken(&state, &seal(segment(3, Some("m2"), "a"))));
}

#[test]
fn a_segment_has_bounds() {
    let mut large = segment(1, None, "a");
    large.cases = (0..=SEGMENT_CASES_MAX)
        .map(|number| SealedCase {
            case_id: CaseId::new(format!("c-{number}")).unwrap(),
            aggregates: Vec::new(),
        })
        .collect();
    let state = ArchiveState::default();
    assert!(!is_taken(&state, &ArchiveInput::Seal(large.clone())));
    large.cases.pop();
    assert!(is_taken(&state, &ArchiveInput::Seal(large)));
}
