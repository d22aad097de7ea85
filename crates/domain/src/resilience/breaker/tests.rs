//! The table of states and inputs, and what holds whatever happens.

use proptest::prelude::*;

use super::*;

const RULES: Rules = Rules {
    failures_max: 3,
    open_ms: 1_000,
    open_max_ms: 3_000,
    successes_min: 2,
    probe_ms: 500,
};

fn at(ms: u64) -> Timestamp {
    Timestamp::default().plus_millis(ms)
}

/// What is done, in the order of time.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A call that ends at once, and whether it may pass.
    Call(u64, End, bool),
    /// How it must stand.
    Stands(u64, BreakerState),
}

use Act::{Call, Stands};
use BreakerState::{Closed, HalfOpen, Open};
use End::{Failure, Success, Unknown};

fn play(acts: &[Act]) {
    let mut breaker = Breaker::new(RULES);
    for (place, act) in acts.iter().enumerate() {
        match *act {
            Call(ms, end, passes) => {
                let passed = breaker.pass(at(ms));
                assert_eq!(passed.is_ok(), passes, "{place}: {act:?}: {breaker:?}");
                if let Ok(pass) = passed {
                    breaker.ended(at(ms), pass, end);
                }
            }
            Stands(ms, standing) => {
                assert_eq!(breaker.state(at(ms)), standing, "{place}: {breaker:?}")
            }
        }
    }
}

#[test]
fn the_table() {
    // Closed: only failures in a row count, and what says nothing counts for nothing.
    play(&[
        Call(0, Failure, true),
        Call(0, Failure, true),
        Call(0, Success, true),
        Call(0, Failure, true),
    ]);
    play(&[
        Call(0, Failure, true),
        Call(0, Unknown, true),
        Call(0, Failure, true),
        Stands(0, Closed),
    ]);
    let open = [
        Call(0, Failure, true),
        Call(0, Failure, true),
        Call(0, Failure, true),
        Stands(0, Open),
    ];
    play(&open);
    // Open: refused until its time, then one is tried.
    play(
        &[
            &open[..],
            &[
                Call(999, Success, false),
                Stands(999, Open),
                Stands(1_000, HalfOpen),
            ],
        ]
        .concat(),
    );
    // Half-open: enough successes close it; what says nothing leaves it as it is.
    let half = [
        &open[..],
        &[Call(1_000, Success, true), Stands(1_000, HalfOpen)],
    ]
    .concat();
    play(
        &[
            &half[..],
            &[Call(1_000, Unknown, true), Stands(1_000, HalfOpen)],
        ]
        .concat(),
    );
    play(
        &[
            &half[..],
            &[
                Call(1_001, Success, true),
                Stands(1_001, Closed),
                Call(1_001, Failure, true),
            ],
        ]
        .concat(),
    );
    // Half-open: one failure opens it, for twice as long, up to the longest.
    let again = [
        &half[..],
        &[
            Call(1_100, Failure, true),
            Stands(3_099, Open),
            Stands(3_100, HalfOpen),
        ],
    ]
    .concat();
    play(&again);
    let third = [
        &again[..],
        &[
            Call(3_100, Failure, true),
            Stands(6_099, Open),
            Stands(6_100, HalfOpen),
        ],
    ]
    .concat();
    play(&third);
    // Once it has closed, it opens for the first time again.
    let closed = [
        &third[..],
        &[
            Call(6_100, Success, true),
            Call(6_100, Success, true),
            Stands(6_100, Closed),
        ],
    ]
    .concat();
    let failing = [Call(7_000, Failure, true); 3];
    play(
        &[
            &closed[..],
            &failing[..],
            &[Stands(7_999, Open), Stands(8_000, HalfOpen)],
        ]
        .concat(),
    );
}

#[test]
fn one_call_is_tried_at_a_time_and_one_that_hangs_makes_way() {
    let mut breaker = Breaker::new(Rules {
        failures_max: 1,
        ..RULES
    });
    let first = breaker.pass(at(0)).unwrap();
    breaker.ended(at(0), first, Failure);
    let hangs = breaker.pass(at(1_000)).unwrap();
    assert_eq!(breaker.pass(at(1_499)), Err(at(1_500)));
    let second = breaker.pass(at(1_500)).unwrap();
    breaker.ended(at(1_500), hangs, Failure);
    assert_eq!(
        breaker.state(at(1_500)),
        HalfOpen,
        "what was given up says nothing any more"
    );
    breaker.ended(at(1_500), second, Success);
    assert_eq!(breaker.refuses_until(at(1_500)), None);
}

#[test]
fn calls_that_were_under_way_when_it_opened_say_nothing() {
    let mut breaker = Breaker::new(RULES);
    let passes: Vec<Pass> = (0..5).map(|_| breaker.pass(at(0)).unwrap()).collect();
    for pass in &passes[..3] {
        breaker.ended(at(10), *pass, Failure);
    }
    breaker.ended(at(20), passes[3], Success);
    breaker.ended(at(30), passes[4], Failure);
    assert_eq!(
        breaker.refuses_until(at(30)),
        Some(at(1_010)),
        "neither closed nor opened again"
    );
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![Just(Success), Just(Failure), Just(Unknown)]
}

proptest! {
    /// Whatever ends when and in which order: it is never refused for longer than the longest time, whoever is refused is
    /// told a time after now, and one call at a time is under way while half-open.
    #[test]
    fn it_always_lets_calls_pass_again(
        steps in proptest::collection::vec((0_u64..2_000, ends(), 0_usize..4), 1..200),
        failures_max in 1_u32..5,
        successes_min in 1_u32..4,
    ) {
        let rules = Rules { failures_max, successes_min, ..RULES };
        let mut breaker = Breaker::new(rules);
        let (mut now, mut under_way) = (0, Vec::new());
        for (wait, end, which) in steps {
            now += wait;
            let before = breaker.state(at(now));
            match breaker.pass(at(now)) {
                Ok(pass) => {
                    prop_assert!(before != Open);
                    if before == HalfOpen {
                        prop_assert!(breaker.pass(at(now)).is_err(), "a second one at the same time");
                    }
                    under_way.push(pass);
                }
                Err(until) => {
                    prop_assert!(until > at(now));
                    prop_assert!(until.millis_since(at(now)) <= rules.open_max_ms.max(rules.probe_ms));
                    prop_assert!(before != Closed);
                }
            }
            if which < under_way.len() {
                let pass = under_way.remove(which);
                breaker.ended(at(now), pass, end);
            }
        }
        let later = now + rules.open_max_ms.max(rules.probe_ms);
        prop_assert!(breaker.pass(at(later)).is_ok());
    }

    /// With successes alone from some time on, it closes.
    #[test]
    fn it_closes_when_all_is_well_again(failures in 0_usize..30, successes_min in 1_u32..4) {
        let mut breaker = Breaker::new(Rules { successes_min, ..RULES });
        let mut now = 0;
        for _ in 0..failures {
            now += 700;
            if let Ok(pass) = breaker.pass(at(now)) {
                breaker.ended(at(now), pass, Failure);
            }
        }
        now += RULES.open_max_ms;
        for _ in 0..successes_min {
            let pass = breaker.pass(at(now)).unwrap();
            breaker.ended(at(now), pass, Success);
        }
        prop_assert_eq!(breaker.state(at(now)), Closed);
        prop_assert_eq!(breaker.failures(), 0);
    }
}
