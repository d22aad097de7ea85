//! Operators and deadlines that fall due while they are held.

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
