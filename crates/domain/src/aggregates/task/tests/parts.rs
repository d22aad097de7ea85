//! What becomes of parts of a result where nobody gives more.

use super::*;

/// What was given so far is the result when time is over, however many have succeeded; before that others may join.
#[test]
fn a_swarm_without_its_quorum_waits_and_ends_with_what_was_given() {
    for (status, given) in [("success", "whole"), ("partial", "half")] {
        let more = json!({ "quorum": 2, "answer_ms": 1_000 });
        let mut stage = Stage::open("swarm", &["ann", "ben"], more);
        stage.places(&["ann", "ben"]);
        let report = json!({ "status": status, "result": given });
        assert_eq!(stage.report("ann", report), "reported");
        assert_eq!(stage.elapse(ATTEMPT), "elapsed");
        assert_eq!(stage.outcome(), None, "{status}: others may join");
        assert_eq!(stage.elapse(DUE), "elapsed");
        let expected = json!({ "result": { "ann": given }, "partial": true });
        assert_eq!(stage.completed(), expected, "{status}");
    }
}

#[test]
fn of_several_parts_the_last_one_that_was_given_is_the_result() {
    for strategy in ["round_robin", "capability"] {
        for names in [["zoe", "ann"], ["ann", "zoe"]] {
            let skills = json!({ "criteria": { "skills": ["sums"] } });
            let mut stage = Stage::open(strategy, &names, skills);
            for name in names {
                stage.places(&[name]);
                let part = json!({ "status": "partial", "result": format!("by {name}") });
                assert_eq!(stage.report(name, part), "reported");
                if name == names[0] {
                    stage.report(name, json!({ "status": "failure" }));
                }
            }
            assert_eq!(stage.elapse(DUE), "elapsed");
            let last = json!({ "result": format!("by {}", names[1]), "partial": true });
            assert_eq!(stage.completed(), last, "{strategy}");
        }
    }
}
