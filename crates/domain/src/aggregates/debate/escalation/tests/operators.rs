//! Operators and deadlines that fall due while they are held.

use concord_events::names::{HALF, NEARLY, PERSON};
use concord_wire::payload::{Calendar, Weekday};

use super::*;

#[test]
fn a_deadline_that_is_resumed_at_once_is_another_deadline() {
    let mut story = challenged();
    let control = |control| {
        command(Command::Deadlines {
            control,
            later_ms: 0,
            by: agent("olga"),
            why: "maintenance".into(),
        })
    };
    let held = ladder(&story).due("acknowledge").unwrap();
    // The clock of the process that resumes is behind that of the one that held: it says that no time has passed. The
    // deadline may have elapsed meanwhile, and would never elapse again.
    story.hears(&said("o-1", 16 * MINUTE), &control(DeadlineControl::Hold));
    story.hears(&said("o-2", 15 * MINUTE), &control(DeadlineControl::Resume));
    let resumed = ladder(&story).due("acknowledge").unwrap();
    assert_eq!(resumed, held.plus_millis(1));
}

/// A debate at level 3 of which people rule from nine to eleven at night. It came there at a quarter past eight in the evening.
fn in_working_hours() -> Story<DebateMachine> {
    let mut policy = policy();
    policy.ladder.calendar = Some(Calendar {
        time_zone: "UTC".into(),
        days: Weekday::ALL.to_vec(),
        opens: "09:00".into(),
        closes: "23:00".into(),
        holidays: Vec::new(),
    });
    let terms = DebateTerms {
        opened_by: Some(agent("ada")),
        ..terms(None)
    };
    let mut story = challenged_with(policy, terms, PriorKnowledge::default());
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    passes(&mut story, "compare", after(15 * MINUTE));
    story
}

fn controls(story: &mut Story<DebateMachine>, at: u64, control: DeadlineControl, later_ms: u64) {
    let moves = command(Command::Deadlines {
        control,
        later_ms,
        by: agent("olga"),
        why: "maintenance".into(),
    });
    let context = said(&format!("o-{at}"), at);
    assert_eq!(story.hears(&context, &moves), "deadlines_moved");
}

fn open_deadlines(story: &Story<DebateMachine>) -> [Option<Timestamp>; 3] {
    [HALF, NEARLY, PERSON].map(|name| ladder(story).due(name))
}

#[test]
fn the_time_of_a_person_goes_on_in_working_hours_after_a_hold() {
    let mut story = in_working_hours();
    let due = [
        13 * HOUR + 15 * MINUTE,
        15 * HOUR + 39 * MINUTE,
        16 * HOUR + 15 * MINUTE,
    ];
    assert_eq!(open_deadlines(&story), due.map(|at| Some(after(at))));
    // An hour is over, and five are left when it goes on at nine in the morning.
    controls(&mut story, HOUR + 15 * MINUTE, DeadlineControl::Hold, 0);
    controls(
        &mut story,
        3 * HOUR + 30 * MINUTE,
        DeadlineControl::Resume,
        0,
    );
    let due = [15 * HOUR, 17 * HOUR + 24 * MINUTE, 18 * HOUR];
    assert_eq!(open_deadlines(&story), due.map(|at| Some(after(at))));
}

#[test]
fn more_time_of_a_person_is_working_time_and_reminders_keep_their_share_of_it() {
    let mut story = in_working_hours();
    controls(&mut story, HOUR, DeadlineControl::Extend, 10 * HOUR);
    // Sixteen hours of work: half of them are over at a quarter past two in the afternoon, and all on the day after.
    let due = [
        18 * HOUR + 15 * MINUTE,
        24 * HOUR + 39 * MINUTE,
        26 * HOUR + 15 * MINUTE,
    ];
    assert_eq!(open_deadlines(&story), due.map(|at| Some(after(at))));
    // Without working hours all of it is time.
    let (mut story, _) = with_eve();
    controls(&mut story, HOUR, DeadlineControl::Extend, 2 * HOUR);
    let due = [
        4 * HOUR + 15 * MINUTE,
        7 * HOUR + 27 * MINUTE,
        8 * HOUR + 15 * MINUTE,
    ];
    assert_eq!(open_deadlines(&story), due.map(|at| Some(after(at))));
}

#[test]
fn nobody_lets_lie_what_they_have_had_no_working_time_for() {
    let mut story = in_working_hours();
    // Given to somebody after closing, and reminded before it opens, when the time is over.
    let night = 27 * HOUR + 10 * MINUTE;
    let given = story.hears(&happened("q-1", night), &assigned_to("eve"));
    assert_eq!(given, "assigned");
    let due = ladder(&story).due(NEARLY).unwrap();
    let input = DebateInput::Elapsed(elapsed(Aggregate::Debate, &story.id, NEARLY, due));
    let heard = story.hears(&happened("e-nearly", night + MINUTE), &input);
    assert_eq!(heard, "reminded");
    let DebateEvent::Reminded(reminded) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert!(!reminded.returns);
}
