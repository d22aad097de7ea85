//! Copies of a stream that lag: what they do not have yet is not taken for what is not there.

use concord_events::{TaskEvent, WakeEvent};
use concord_wire::Token;
use concord_wire::subject::Service;
use serde_json::json;

use super::{COORDINATOR, Stage};
use crate::policies::SIMULATED;

/// How far a copy lags is random, and so is whether it matters.
const SEEDS: std::ops::Range<u64> = 0..40;

fn token(id: &str) -> Token {
    Token::new(id).unwrap()
}

/// A message in a case concerns nobody outside of it, also when the copy that is asked does not know the case yet.
#[test]
fn a_message_in_a_case_that_a_copy_does_not_know_yet_wakes_nobody_outside() {
    for seed in SEEDS {
        let mut stage = Stage::of(&[Service::Coordinator, Service::AgentAdapter]);
        let parameters = json!({
            "case_id": "c-1", "policy": { "preset": SIMULATED }, "participants": ["ada", "ben"],
            "task": { "type": "review", "title": "x" },
        });
        stage.ask("olga", "open_case", &parameters, &json!({}));
        // The adapter has read of the case when its tasks were assigned.
        stage.replace(Service::AgentAdapter);
        stage.let_copies_lag(seed);
        let content = json!({ "content": "@ben @cleo what do you think?" });
        let more = json!({ "case_id": "c-1" });
        stage.say(("ada", "_all"), "group_query", &content, &more);
        let [decided] = stage
            .all_events::<WakeEvent>()
            .try_into()
            .expect("one event");
        let WakeEvent::Decided(decided) = decided.event else {
            panic!("it was not decided whom the message wakes");
        };
        let woken: Vec<_> = decided
            .woken
            .iter()
            .map(|one| one.agent_id.as_str())
            .collect();
        assert_eq!(woken, ["ben"], "seed {seed}");
    }
}

/// Whoever has a task may say that it failed to a coordinator that has just taken over.
#[test]
fn the_error_of_somebody_who_was_asked_counts_where_a_copy_does_not_know_the_task_yet() {
    for seed in SEEDS {
        let mut stage = Stage::of(&[Service::Coordinator]);
        let card = json!({ "agent_id": "ada", "domains": ["law"] });
        stage.ask("ada", "register_agent", &card, &json!({}));
        let task = json!({
            "task_id": "t-1", "task": { "type": "x" }, "strategy": "capability", "criteria": { "domains": ["law"] },
        });
        stage.ask("olga", "open_task", &task, &json!({}));
        let asked = stage.told("ada", "task_assignment").pop();
        let asked = asked.expect("ada is given the task");
        stage.replace(Service::Coordinator);
        stage.let_copies_lag(seed);
        let report = json!({ "error_code": "INTERNAL_ERROR", "error_message": "It broke." });
        let more = json!({ "reply_to": asked["message_id"] });
        stage.say(("ada", COORDINATOR), "error", &report, &more);
        let last = stage.events::<TaskEvent>(&token("t-1")).pop().unwrap();
        assert!(
            matches!(last.event, TaskEvent::Reported(_)),
            "seed {seed}: {last:?}"
        );
    }
}
