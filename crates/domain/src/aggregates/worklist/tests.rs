use proptest::prelude::*;

use super::*;
use crate::fixtures::*;

fn take(task: &str, priority: Priority, capacity: u32) -> WorklistInput {
    WorklistInput::Take(WorkTaken {
        task_id: token(task),
        priority,
        capacity: Some(capacity),
    })
}

fn release(task: &str, done: Option<bool>) -> WorklistInput {
    WorklistInput::Release {
        task_id: token(task),
        done,
    }
}

#[test]
fn what_has_no_room_waits_and_goes_by_priority_and_age() {
    use Priority::{High, Low, Normal};
    let mut story = Story::<WorklistMachine>::of("ann");
    let steps = [
        (release("t-1", None), "ignored: already_done", ""),
        (take("t-1", Normal, 1), "taken", ""),
        (take("t-1", Normal, 1), "ignored: already_done", ""),
        (take("t-2", Low, 1), "queued", ""),
        (take("t-3", Normal, 1), "queued", ""),
        (take("t-4", High, 1), "queued", ""),
        (take("t-5", High, 1), "queued", ""),
        (take("t-2", Low, 1), "ignored: already_done", ""),
        (release("t-1", Some(true)), "released", "t-4"),
        // What only waits makes no room.
        (release("t-5", None), "released", ""),
        (release("t-4", Some(false)), "released", "t-3"),
        (release("t-3", Some(true)), "released", "t-2"),
        (release("t-2", Some(true)), "released", ""),
    ];
    for (place, (input, expected, next)) in steps.into_iter().enumerate() {
        let heard = story.hears(&said(&format!("m-{place}"), 1), &input);
        assert_eq!(heard, expected, "{input:?}");
        if let WorklistEvent::Released(released) = &story.records.last().map_or(
            WorklistEvent::Taken(WorkTaken {
                task_id: token("t"),
                priority: Low,
                capacity: None,
            }),
            |one| one.event.clone(),
        ) && expected == "released"
        {
            assert_eq!(released.next.as_ref().map_or("", Token::as_str), next);
        }
    }
    assert!(story.state().held.is_empty() && story.state().waiting.is_empty());
    assert_eq!((story.state().done, story.state().undone), (3, 1));
    assert!((story.state().reliability() - 4.0 / 6.0).abs() < 1e-9);
}

fn restate(capacity: impl Into<Option<u32>>) -> WorklistInput {
    WorklistInput::Restate {
        capacity: capacity.into(),
    }
}

#[test]
fn who_states_a_greater_capacity_has_what_waits_at_once_and_a_smaller_one_gives_nothing_more() {
    use Priority::{High, Low, Normal};
    let mut story = Story::<WorklistMachine>::of("ann");
    let steps = [
        (restate(3), "ignored: already_done", ""),
        (take("t-1", Normal, 1), "taken", "t-1"),
        (restate(3), "ignored: already_done", "t-1"),
        (take("t-2", Low, 1), "queued", "t-1"),
        (take("t-3", High, 1), "queued", "t-1"),
        (take("t-4", High, 1), "queued", "t-1"),
        (restate(1), "ignored: already_done", "t-1"),
        // By priority and age, one at a time.
        (restate(2), "taken", "t-1 t-3"),
        (restate(2), "ignored: already_done", "t-1 t-3"),
        // One fewer again: nothing is taken away, and what is done makes no room.
        (restate(1), "queued", "t-1 t-3"),
        (restate(1), "ignored: already_done", "t-1 t-3"),
        (release("t-1", Some(true)), "released", "t-3"),
        (release("t-3", Some(true)), "released", "t-4"),
        (take("t-5", Low, 1), "queued", "t-4"),
        (restate(None), "taken", "t-2 t-4"),
        (restate(None), "taken", "t-2 t-4 t-5"),
        (restate(None), "ignored: already_done", "t-2 t-4 t-5"),
    ];
    for (place, (input, expected, held)) in steps.into_iter().enumerate() {
        if let WorklistInput::Restate { capacity } = &input {
            let is_changed = story.state().is_changed_by(*capacity);
            assert_eq!(is_changed, expected != "ignored: already_done", "{place}");
        }
        let heard = story.hears(&said(&format!("m-{place}"), 1), &input);
        assert_eq!(heard, expected, "{place}: {input:?}");
        let of_it: Vec<&str> = story.state().held.iter().map(Token::as_str).collect();
        assert_eq!(of_it.join(" "), held, "{place}: {input:?}");
    }
    assert!(story.state().waiting.is_empty());
}

#[test]
fn who_has_left_keeps_its_capacity_and_gets_one_at_a_time_if_it_never_had_any() {
    let mut story = Story::<WorklistMachine>::of("ann");
    assert_eq!(story.state().capacity_of_absent(), Some(1));
    for (place, input) in [take("t-1", Priority::Normal, 3), release("t-1", Some(true))]
        .iter()
        .enumerate()
    {
        story.hears(&said(&format!("m-{place}"), 1), input);
        assert_eq!(story.state().capacity_of_absent(), Some(3));
    }
}

proptest! {
    #[test]
    fn nobody_has_more_than_its_capacity_and_nothing_waits_while_there_is_room(
        capacity in 1u32..4, steps in prop::collection::vec((0usize..9, 0u8..3, any::<bool>()), 0..80),
    ) {
        let mut story = Story::<WorklistMachine>::of("ann");
        for (place, (task, priority, takes)) in steps.into_iter().enumerate() {
            let priority = [Priority::Low, Priority::Normal, Priority::High][usize::from(priority)];
            let task = format!("t-{task}");
            let input = if takes { take(&task, priority, capacity) } else { release(&task, Some(true)) };
            story.hears(&said(&format!("m-{place}"), 1), &input);
            let WorklistState { held, waiting, .. } = story.state();
            prop_assert!(held.len() <= capacity as usize);
            prop_assert!(waiting.is_empty() || held.len() == capacity as usize);
            prop_assert!(held.iter().all(|task| !waiting.contains_key(task)));
        }
    }
}
