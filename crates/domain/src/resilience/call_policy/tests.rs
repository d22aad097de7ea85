//! The tables, and the bounds of the queue whoever comes and goes.

use concord_wire::Priority;
use proptest::prelude::*;

use super::*;

use CallFailure::{
    Broken, Garbage, Late, NotAllowed, ProgramEnded, ProgramLate, Status, TooLong, Unreachable,
};
use End::{Failure, Unknown};
use ErrorCode::{AgentUnavailable, CapacityExceeded, InternalError, Timeout};

const ARRIVED: CallFailure = Late {
    may_have_arrived: true,
};
const LOST: CallFailure = Late {
    may_have_arrived: false,
};

/// A failure, its code, whether it is retried at a server and at an idempotent one, and what the
/// breaker is told.
const CLASSIFIED: [(CallFailure, ErrorCode, Retry, Retry, End); 16] = [
    (
        NotAllowed,
        InternalError,
        Retry::Never,
        Retry::Never,
        Failure,
    ),
    (
        TooLong,
        CapacityExceeded,
        Retry::Never,
        Retry::Never,
        Failure,
    ),
    (Garbage, InternalError, Retry::Never, Retry::Never, Failure),
    (
        Unreachable,
        AgentUnavailable,
        Retry::Safe,
        Retry::Safe,
        Failure,
    ),
    (Broken, AgentUnavailable, Retry::Never, Retry::Safe, Failure),
    (ARRIVED, Timeout, Retry::Never, Retry::Safe, Failure),
    (LOST, Timeout, Retry::Safe, Retry::Safe, Failure),
    (
        Status(429),
        CapacityExceeded,
        Retry::Safe,
        Retry::Safe,
        Unknown,
    ),
    (
        Status(503),
        AgentUnavailable,
        Retry::Safe,
        Retry::Safe,
        Failure,
    ),
    (
        Status(500),
        AgentUnavailable,
        Retry::Never,
        Retry::Safe,
        Failure,
    ),
    (
        Status(504),
        AgentUnavailable,
        Retry::Never,
        Retry::Safe,
        Failure,
    ),
    (
        Status(307),
        InternalError,
        Retry::Never,
        Retry::Never,
        Failure,
    ),
    (
        Status(404),
        InternalError,
        Retry::Never,
        Retry::Never,
        Failure,
    ),
    (
        Status(400),
        InternalError,
        Retry::Never,
        Retry::Never,
        Unknown,
    ),
    (ProgramLate, Timeout, Retry::Never, Retry::Never, Failure),
    (
        ProgramEnded,
        AgentUnavailable,
        Retry::Redelivered,
        Retry::Redelivered,
        Failure,
    ),
];

#[test]
fn what_a_call_without_an_answer_means() {
    for (failure, code, once, idempotent, end) in CLASSIFIED {
        assert_eq!(
            classify(failure, false),
            Classification {
                code,
                retry: once,
                end
            },
            "{failure:?}"
        );
        assert_eq!(
            classify(failure, true),
            Classification {
                code,
                retry: idempotent,
                end
            },
            "{failure:?}"
        );
    }
    assert_eq!(
        classify(ARRIVED, true).end_within(true),
        Unknown,
        "it had less than its time"
    );
    assert_eq!(classify(ARRIVED, true).end_within(false), Failure);
    assert_eq!(classify(Broken, true).end_within(true), Failure);
}

#[test]
fn pauses_double_up_to_a_bound_unless_the_server_says_how_long() {
    let millis = Duration::from_millis;
    let pause = |tried| next_retry(Retry::Safe, tried, 100, None).unwrap();
    let most = [1, 2, 3, 6, 7, 99].map(|tried| pause(tried).jitter_max.as_millis());
    assert_eq!(most, [250, 500, 1_000, 8_000, 10_000, 10_000]);
    assert_eq!(pause(1).fixed, Duration::ZERO);
    let asked = next_retry(Retry::Safe, 3, 4, Some(millis(7_000)));
    assert_eq!(
        asked,
        Some(Pause {
            fixed: millis(7_000),
            jitter_max: millis(250)
        })
    );
    assert_eq!(next_retry(Retry::Safe, 3, 3, None), None);
    assert_eq!(next_retry(Retry::Never, 1, 3, None), None);
    assert_eq!(next_retry(Retry::Redelivered, 1, 3, None), None);
}

#[test]
fn an_asker_is_told_once_and_a_program_is_given_a_message_three_times() {
    let ended = classify(CallFailure::ProgramEnded, false);
    assert_eq!(
        [1, 2, 3].map(|deliveries| handling(&ended, deliveries, false)),
        [
            FailureHandling::Later,
            FailureHandling::Later,
            FailureHandling::Error
        ]
    );
    for verdict in [
        ended,
        Classification::here(ErrorCode::Timeout),
        Classification::here(ErrorCode::AgentUnavailable),
    ] {
        assert_eq!(
            (handling(&verdict, 1, true), handling(&verdict, 3, false)),
            (FailureHandling::Nothing, FailureHandling::Error),
            "{verdict:?}"
        );
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Come(Priority),
    GiveUp(usize),
    Leave,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High),
        Just(Priority::Critical)
    ];
    let act = prop_oneof![4 => priority.prop_map(Act::Come), 1 => (0_usize..20).prop_map(Act::GiveUp), 2 => Just(Act::Leave)];
    proptest::collection::vec(act, 1..200)
}

proptest! {
    /// Never more than there are seats and places; no seat is lost or given twice; who waits comes
    /// in its turn.
    #[test]
    fn seats_and_places_are_bounded(acts in acts(), seats in 1_usize..4, places in 0_usize..4) {
        let mut queue = Queue::new(seats, places);
        let (mut seated, mut waiting) = (0, Vec::<(usize, Priority)>::new());
        for (number, act) in acts.into_iter().enumerate() {
            let waits = waiting.clone();
            let waits = |one: &usize| waits.iter().any(|(number, _)| number == one);
            match act {
                Act::Come(priority) => match queue.admit(priority, waits) {
                    Admission::Seat => {
                        prop_assert!(waiting.is_empty());
                        seated += 1;
                    }
                    Admission::Wait => {
                        queue.wait(priority, number);
                        waiting.push((number, priority));
                    }
                    Admission::InPlaceOf(displaced) => {
                        let lowest = waiting.iter().map(|(_, one)| *one).min().unwrap();
                        prop_assert!(lowest.lane() < priority.lane());
                        let last = waiting.iter().rposition(|(_, one)| *one == lowest).unwrap();
                        prop_assert_eq!(waiting.remove(last).0, displaced);
                        queue.wait(priority, number);
                        waiting.push((number, priority));
                    }
                    Admission::Full => prop_assert_eq!((seated, waiting.len()), (seats, places)),
                },
                Act::GiveUp(place) if place < waiting.len() => drop(waiting.remove(place)),
                Act::GiveUp(_) => {}
                Act::Leave if seated > 0 => loop {
                    match queue.leave() {
                        Some(next) if !waits(&next) => {}
                        Some(next) => {
                            let highest = waiting.iter().map(|(_, one)| *one).max();
                            let first = waiting.iter().position(|(_, one)| Some(*one) == highest);
                            prop_assert_eq!(waiting.remove(first.unwrap()).0, next);
                            break;
                        }
                        None => {
                            prop_assert!(waiting.is_empty());
                            seated -= 1;
                            break;
                        }
                    }
                },
                Act::Leave => {}
            }
            prop_assert_eq!(queue.working(), seated);
            let waits = waiting.clone();
            prop_assert_eq!(queue.waiting(|one| waits.iter().any(|(number, _)| number == one)), waiting.len());
            prop_assert!(seated <= seats && waiting.len() <= places);
        }
    }
}

#[test]
fn an_alert_goes_before_what_is_urgent_and_takes_its_place_where_all_are_taken() {
    let waits = |_: &&str| true;
    let mut queue = Queue::new(1, 2);
    assert_eq!(queue.admit(Priority::Normal, waits), Admission::Seat);
    for urgent in ["first", "second"] {
        assert_eq!(queue.admit(Priority::Critical, waits), Admission::Wait);
        queue.wait(Priority::Critical, urgent);
    }
    assert_eq!(queue.admit(Priority::Critical, waits), Admission::Full);
    assert_eq!(
        queue.admit(Rank::Alert, waits),
        Admission::InPlaceOf("second")
    );
    queue.wait(Rank::Alert, "alert");
    assert_eq!(queue.leave(), Some("alert"));
    assert_eq!(queue.leave(), Some("first"));
    assert_eq!(queue.leave(), None);
}
