//! What can be asked for, and what not.

use concord_wire::payload::{RoleGrant, Task};

use super::*;

fn refusal(asked: OpenedTask) -> String {
    let mut story = Story::<TaskMachine>::of("t-1");
    story.hears(&said("m-open", 1), &TaskInput::Open(Box::new(asked)))
}

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    let long = "x".repeat(40_000);
    for (strategy, names, more, pointer) in [
        ("telepathy", &["ann"][..], json!({}), "strategy"),
        ("round_robin", &[], json!({}), "criteria"),
        ("poll", &[], json!({}), "criteria"),
        ("capability", &["ann"], json!({}), "criteria"),
        ("poll", &["ann"], json!({ "quorum": 2 }), "quorum"),
        ("poll", &["ann"], json!({ "quorum": 0 }), "quorum"),
        ("swarm", &[], json!({ "quorum": 0 }), "quorum"),
        ("poll", &["ann"], json!({ "deadline_ms": 0 }), "deadline_ms"),
        (
            "poll",
            &["ann"],
            json!({ "deadline_ms": u64::MAX }),
            "deadline_ms",
        ),
        ("poll", &["ann"], json!({ "answer_ms": 0 }), "answer_ms"),
        (
            "contract_net",
            &["ann"],
            json!({ "bids_ms": 60_001 }),
            "bids_ms",
        ),
        (
            "contract_net",
            &["ann"],
            json!({ "weights": { "price": -1.0 } }),
            "weights",
        ),
        (
            "consensus",
            &["ann"],
            json!({ "tolerance": 1.5 }),
            "tolerance",
        ),
        (
            "poll",
            &["ann"],
            json!({ "priority": "critical" }),
            "priority",
        ),
        (
            "poll",
            &["ann"],
            json!({ "task": { "type": "sum", "title": long } }),
            "task",
        ),
        (
            "poll",
            &["ann"],
            json!({ "criteria": { "skills": [long] } }),
            "criteria/skills",
        ),
    ] {
        let expected = format!("refused: /payload/parameters/{pointer}");
        assert_eq!(
            refusal(opening(strategy, names, more.clone())),
            expected,
            "{strategy} {more}"
        );
    }
    let many: Vec<String> = (0..=AGENTS_MAX).map(|one| format!("a-{one}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(
        refusal(opening("broadcast", &many, json!({}))),
        "refused: /payload/parameters/criteria"
    );
    assert_eq!(refusal(opening("round_robin", &many, json!({}))), "opened");
}

#[test]
fn the_same_request_is_ignored_and_another_for_the_same_task_refused() {
    let mut stage = Stage::open("poll", &["ann"], json!({}));
    let open = |asked: OpenedTask| TaskInput::Open(Box::new(asked));
    // Who fits may be another by now.
    let same = opening("poll", &["ben"], json!({}));
    assert_eq!(stage.hear(&open(same.clone())), "ignored: repetition");
    let other = OpenedTask {
        opened_by: agent("eve"),
        ..same
    };
    assert_eq!(
        stage.hear(&open(other)),
        "refused: /payload/parameters/task_id"
    );
}

#[test]
fn whoever_is_suspended_opens_nothing() {
    let sender = Authority {
        suspended: Some("on leave".into()),
        ..authority(OPENER, &[Role::Opener])
    };
    assert_eq!(RoleGrant::of(Role::Opener).role, Role::Opener);
    let asked = OpenedTask {
        sender,
        ..opening("poll", &["ann"], json!({}))
    };
    assert!(refusal(asked).starts_with("refused"));
}

#[test]
fn the_largest_results_of_all_fit_into_one_event() {
    let names: Vec<String> = (0..AGENTS_MAX)
        .map(|one| format!("agent-with-a-long-name-{one:040}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let input = Task {
        kind: "t".into(),
        title: String::new(),
        input: json!("\"".repeat(16_000)),
    };
    let mut stage = Stage::open("broadcast", &names, json!({ "task": input }));
    stage.places(&names);
    let largest = json!("x".repeat(384 * 1024 / AGENTS_MAX - 2));
    for name in &names {
        assert_eq!(
            stage.result(name, json!("x".repeat(384 * 1024 / AGENTS_MAX))),
            "refused: /payload/result"
        );
        assert_eq!(stage.result(name, largest.clone()), "reported");
    }
    assert_eq!(stage.completed()["partial"], false);
}
