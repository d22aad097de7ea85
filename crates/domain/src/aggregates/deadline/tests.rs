use super::*;
use crate::fixtures::*;

fn fire(due: Timestamp) -> Fire {
    Fire {
        aggregate: Aggregate::Case,
        id: token("c-1"),
        deadline: Deadline {
            name: token("findings"),
            due,
        },
        fired_by: FiredBy::Scheduler,
    }
}

#[test]
fn a_deadline_elapses_once_for_each_instant_and_never_early() {
    let mut story = Story::<DeadlineMachine>::of("x");
    for (now, due, expected) in [
        (99, 100, "ignored: deadline_not_open"),
        (100, 100, "case_elapsed"),
        (101, 100, "ignored: already_done"),
        // Moved to another instant, it may elapse again.
        (199, 200, "ignored: deadline_not_open"),
        (207, 200, "case_elapsed"),
        (300, 100, "ignored: already_done"),
    ] {
        assert_eq!(
            story.hears(&said("m-due", now), &fire(after(due))),
            expected,
            "at {now} of {due}"
        );
    }
    let elapsed = story.last().event.elapsed();
    assert_eq!(
        (elapsed.lateness_ms, elapsed.due, elapsed.name.as_str()),
        (7, after(200), "findings")
    );
    assert_eq!(
        story.last().meta.deadlines,
        [],
        "a deadline has none of its own"
    );
}

#[test]
fn the_watchdog_is_told_apart_and_comes_too_late_after_the_scheduler() {
    let mut story = Story::<DeadlineMachine>::of("x");
    let watchdog = Fire {
        fired_by: FiredBy::Watchdog,
        ..fire(after(5))
    };
    assert_eq!(
        story.hears(&said("m-1", 9), &fire(after(5))),
        "case_elapsed"
    );
    assert_eq!(
        story.hears(&said("m-2", 9), &watchdog),
        "ignored: already_done"
    );
    let mut alone = Story::<DeadlineMachine>::of("y");
    assert_eq!(alone.hears(&said("m-2", 9), &watchdog), "case_elapsed");
    let elapsed = alone.last().event.elapsed();
    assert_eq!(elapsed.fired_by, FiredBy::Watchdog);
}

#[test]
fn every_deadline_has_an_aggregate_of_its_own_whatever_its_instant() {
    let base = fire(after(1));
    assert_eq!(base.deadline_id(), fire(after(2)).deadline_id());
    let others = [
        Fire {
            aggregate: Aggregate::Debate,
            ..base.clone()
        },
        Fire {
            id: token("c-2"),
            ..base.clone()
        },
        Fire {
            deadline: Deadline {
                name: token("case"),
                ..base.deadline.clone()
            },
            ..base.clone()
        },
    ];
    for other in others {
        assert_ne!(base.deadline_id(), other.deadline_id(), "{other:?}");
    }
}

#[test]
fn the_scheduler_is_told_what_is_new_or_moved_and_what_is_gone() {
    use crate::aggregates::case::CaseMachine;
    let mut case = Story::<CaseMachine>::of("c-1");
    case.hears(&said("m-open", 0), &open_case(&["ann"], policy()));
    let deadline = |name: &str, due: u64| Deadline {
        name: token(name),
        due: after(due),
    };
    let arm = |name: &str, due: u64| TimerAction::Arm(deadline(name, due));
    assert_eq!(
        timer_actions(&case.last().meta),
        [arm("findings", 30_000), arm("case", 900_000)]
    );
    case.hears(
        &said("m-1", 1),
        &finding("ann", "m-1", serde_json::json!({})),
    );
    assert_eq!(
        timer_actions(&case.last().meta),
        [TimerAction::Cancel(token("findings"))]
    );
    let mut meta = case.last().meta.clone();
    meta.deadlines = vec![deadline("a", 1), deadline("b", 2)];
    (meta.opened, meta.closed) = (vec![token("b")], vec![token("c")]);
    assert_eq!(
        timer_actions(&meta),
        [arm("b", 2), TimerAction::Cancel(token("c"))]
    );
    (meta.opened, meta.closed) = (vec![], vec![]);
    assert_eq!(timer_actions(&meta), []);
}
