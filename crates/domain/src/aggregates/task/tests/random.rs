//! Whatever is said in whatever order: one has the task at a time where the strategy says so, votes count once, and time alone ends
//! every task, once.

use proptest::prelude::*;

use super::super::Stage as Step;
use super::*;

const NAMES: [&str; 4] = ["ann", "ben", "cyd", "dan"];

fn act(stage: &mut Stage, (kind, who, value): (u8, usize, u8)) -> String {
    let name = NAMES[who];
    match kind {
        0 | 1 => stage.place(name),
        2 => stage.result(
            name,
            json!(["yes", "no", "abstain"][usize::from(value % 3)]),
        ),
        3 => stage.report(name, json!({ "status": "failure" })),
        4 => stage.report(name, json!({ "status": "partial", "result": "yes" })),
        5 => stage.bid(name, f64::from(value), u64::from(value)),
        6 if value % 2 == 0 => stage.say(name, Word::Failed(String::new())),
        6 => stage.say(name, Word::Refuse(String::new())),
        7 => stage.lose(name),
        8 => {
            let to = Some(agent(["eve", "fay", "ann", "gus"][usize::from(value % 4)]));
            let handoff = Handoff {
                to,
                context: Value::Null,
                reason: String::new(),
            };
            stage.say(name, Word::HandOn(handoff, None))
        }
        9 => stage.elapse(ATTEMPT),
        10 => stage.elapse(BIDS),
        11 => {
            let (agent, request_id) = (agent(name), message("m-member"));
            stage.hear(&TaskInput::Member {
                agent,
                request_id,
                joins: value % 2 == 0,
            })
        }
        _ => stage.place(["eve", "fay", "gus", "hal"][who]),
    }
}

proptest! {
    #[test]
    fn every_task_ends_once_and_nobody_has_it_beside_another_without_reason(
        strategy in prop::sample::select(strategy::ALL.map(|(name, _)| name).to_vec()),
        acts in prop::collection::vec((0u8..13, 0usize..4, any::<u8>()), 0..60),
    ) {
        let more = json!({ "criteria": { "skills": ["sum"] }, "answer_ms": 500 });
        let mut stage = Stage::open(strategy, &NAMES, more);
        for one in acts {
            act(&mut stage, one);
            let parts = &stage.story.state().parts;
            let working = parts.values().filter(|part| part.is_working()).count();
            if strategy::named(strategy).unwrap().asks_one() {
                prop_assert!(working <= 1, "{strategy}: {parts:?}");
                prop_assert!(parts.values().filter(|part| part.is_active()).count() <= 1);
            }
            prop_assert!(stage.outcome().is_none() || parts.values().all(|part| !part.is_active()));
        }
        if stage.outcome().is_none() {
            prop_assert_eq!(stage.elapse(DUE), "elapsed");
        }
        prop_assert!(stage.outcome().is_some());
        let ends = stage.story.records.iter().filter(|record| record.event.end().is_some());
        prop_assert_eq!(ends.count(), 1);
        let done = stage.story.state().parts.values().filter(|part| part.stage == Step::Done).count();
        if strategy == "poll"
            && let Some(TaskOutcome::Completed { result, .. }) = stage.outcome()
        {
            let sum: u64 = ["yes", "no", "abstain"].iter().map(|one| result[one].as_u64().unwrap()).sum();
            prop_assert_eq!(sum, done as u64);
        }
        // What is stored gives the same state again.
        let mut again = TaskState::default();
        for record in &stage.story.records {
            TaskMachine::apply(&mut again, record.clone());
        }
        prop_assert_eq!(&again, stage.story.state());
    }
}
