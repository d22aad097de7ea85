//! What each strategy does with results, failures and time.

use super::*;

#[test]
fn one_has_it_at_a_time_and_the_next_when_one_fails_or_is_gone() {
    for strategy in ["round_robin", "capability"] {
        let more = json!({ "criteria": { "skills": ["sum"] }, "answer_ms": 1_000 });
        let mut stage = Stage::open(strategy, &["ann", "ben", "cyd", "dan"], more);
        assert_eq!(stage.asked(), ["ann"]);
        assert_eq!(stage.sent(), [(MessageType::Response, OPENER.to_owned())]);
        stage.places(&["ann"]);
        assert_eq!(
            stage.sent(),
            [(MessageType::TaskAssignment, "ann".to_owned())]
        );
        assert_eq!(stage.place("ann"), "ignored: already_done");
        assert_eq!(
            stage.report("ann", json!({ "status": "failure", "why": "no" })),
            "reported"
        );
        assert_eq!(stage.asked(), ["ben"]);
        assert_eq!(stage.lose("ben"), "lost", "before it had room");
        assert_eq!(stage.lose("ben"), "ignored: already_done");
        assert_eq!(stage.asked(), ["cyd"]);
        stage.places(&["cyd"]);
        assert_eq!(stage.elapse(ATTEMPT), "elapsed");
        assert_eq!(stage.asked(), ["dan"]);
        assert_eq!(
            stage.sent(),
            [(MessageType::Notification, "cyd".to_owned())]
        );
        assert_eq!(
            stage.result("cyd", json!(3)),
            "refused: /reply_to",
            "too late"
        );
        stage.places(&["dan"]);
        assert_eq!(stage.result("dan", json!(3)), "reported");
        assert_eq!(stage.completed(), json!({ "result": 3, "partial": false }));
        assert_eq!(
            stage.sent(),
            [(MessageType::Notification, OPENER.to_owned())]
        );
        assert_eq!(stage.result("dan", json!(4)), "refused: /reply_to");
        assert_eq!(stage.elapse(DUE), "ignored: deadline_not_open");
    }
}

/// Senders choose the ids of their messages: nobody keeps another's result from counting by using its id first.
#[test]
fn another_agent_under_the_same_message_id_is_told_so() {
    let mut stage = Stage::open("broadcast", &["ann", "ben"], json!({}));
    stage.places(&["ann", "ben"]);
    assert_eq!(stage.result("ann", json!(1)), "reported");
    for (name, result, expected) in [
        ("ann", 1, "ignored: repetition"),
        ("ann", 2, "refused: /message_id"),
        ("ben", 2, "refused: /message_id"),
    ] {
        stage.clock -= 1;
        assert_eq!(stage.result(name, json!(result)), expected);
    }
    assert_eq!(stage.result("ben", json!(2)), "reported");
}

#[test]
fn when_all_have_failed_or_time_is_over_the_opener_is_told_and_a_part_is_better_than_nothing() {
    let mut stage = Stage::open("round_robin", &["ann"], json!({}));
    stage.places(&["ann"]);
    assert_eq!(stage.say("ann", Word::Refuse("busy".into())), "declined");
    assert_eq!(
        stage.failed(),
        (ErrorCode::AgentUnavailable, "all_failed".into())
    );
    assert_eq!(stage.sent(), [(MessageType::Error, OPENER.to_owned())]);

    // A reason that is a sentence of its own does not end twice.
    let mut stage = Stage::open("round_robin", &["ann"], json!({}));
    stage.places(&["ann"]);
    stage.elapse(DUE);
    let Some(TaskOutcome::Failed { why, .. }) = stage.outcome() else {
        panic!("{:?}", stage.outcome());
    };
    assert_eq!(
        why,
        "Nobody has answered in time: ann: It has not answered in time."
    );

    // What is wrong with an agent is told at any length, and kept as far as there is room.
    for why in ["It failed.".to_owned(), "\0".repeat(5_000)] {
        let mut stage = Stage::open("round_robin", &["ann"], json!({}));
        stage.places(&["ann"]);
        assert_eq!(stage.say("ann", Word::Failed(why.clone())), "reported");
        assert_eq!(
            stage.failed(),
            (ErrorCode::AgentUnavailable, "all_failed".into())
        );
        let kept = &stage.story.state().parts[&agent("ann")].why;
        assert!(why.starts_with(kept.as_str()) && !kept.is_empty());
    }

    let mut stage = Stage::open("round_robin", &["ann"], json!({}));
    assert_eq!(stage.elapse(DUE), "elapsed", "it never had room");
    assert_eq!(stage.failed(), (ErrorCode::Timeout, "deadline".into()));

    let mut stage = Stage::open("round_robin", &["ann"], json!({}));
    stage.places(&["ann"]);
    let half = json!({ "status": "partial", "result": "half" });
    assert_eq!(stage.report("ann", half), "reported");
    assert_eq!(stage.elapse(DUE), "elapsed");
    assert_eq!(
        stage.completed(),
        json!({ "result": "half", "partial": true })
    );
}

/// One who gives a part and is silent after it, or fails, has given that part.
#[test]
fn a_part_is_better_than_nothing_also_before_the_time_of_the_task_is_over() {
    let half = || json!({ "status": "partial", "result": "half" });
    let alone = json!({ "result": "half", "partial": true });
    let by_agent = json!({ "result": { "ann": "half", "ben": 2 }, "partial": true });
    for (strategy, names, expected) in [
        ("round_robin", &["ann"][..], &alone),
        ("capability", &["ann"], &alone),
        ("broadcast", &["ann", "ben"], &by_agent),
        ("swarm", &["ann", "ben"], &by_agent),
    ] {
        let skills = json!({ "answer_ms": 1_000, "criteria": { "skills": ["sums"] } });
        let mut stage = Stage::open(strategy, names, skills);
        stage.places(names);
        assert_eq!(stage.report("ann", half()), "reported");
        if names.contains(&"ben") {
            stage.result("ben", json!(2));
        }
        assert_eq!(stage.outcome(), None, "{strategy}: a part is not the end");
        assert_eq!(stage.elapse(ATTEMPT), "elapsed", "{strategy}");
        assert_eq!(stage.completed(), *expected, "{strategy}");
    }
    // Somebody else may give the whole.
    let mut stage = Stage::open("round_robin", &["ann", "ben"], json!({}));
    stage.places(&["ann"]);
    stage.report("ann", half());
    stage.report("ann", json!({ "status": "failure" }));
    assert_eq!(stage.asked(), ["ben"]);
    stage.places(&["ben"]);
    stage.result("ben", json!("whole"));
    let whole = json!({ "result": "whole", "partial": false });
    assert_eq!(stage.completed(), whole);
}

#[test]
fn a_broadcast_collects_what_everybody_gives() {
    let mut stage = Stage::open("broadcast", &["ann", "ben", "cyd"], json!({}));
    assert_eq!(stage.asked(), ["ann", "ben", "cyd"]);
    stage.places(&["ann", "ben", "cyd"]);
    stage.result("ann", json!(1));
    stage.report("ben", json!({ "status": "failure" }));
    assert_eq!(stage.outcome(), None);
    stage.result("cyd", json!(3));
    let expected = json!({ "result": { "ann": 1, "cyd": 3 }, "partial": true });
    assert_eq!(stage.completed(), expected);
    let mut stage = Stage::open("broadcast", &["ann", "ben"], json!({}));
    stage.places(&["ann", "ben"]);
    stage.result("ann", json!(1));
    stage.elapse(DUE);
    assert_eq!(
        stage.completed(),
        json!({ "result": { "ann": 1 }, "partial": true })
    );
}

#[test]
fn a_consensus_is_what_enough_say_whatever_the_order_of_fields() {
    let names = ["ann", "ben", "cyd"];
    let run = |more: Value, results: [Value; 3]| {
        let mut stage = Stage::open("consensus", &names, more);
        stage.places(&names);
        for (name, result) in names.iter().zip(results) {
            stage.result(name, result);
        }
        stage
    };
    let same = [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1.0}), json!(0)];
    let stage = run(json!({}), same.clone());
    assert_eq!(stage.completed()["result"]["votes"], 2);
    assert_eq!(
        stage.completed()["result"]["result"],
        json!({"a": 1, "b": 2})
    );
    let stage = run(json!({ "quorum": 3 }), same);
    assert_eq!(
        stage.failed(),
        (ErrorCode::InvalidRequest, "quorum_not_reached".into())
    );
    let near = [json!(100), json!(103), json!(104)];
    let stage = run(json!({ "tolerance": 0.05, "quorum": 3 }), near.clone());
    assert_eq!(stage.completed()["result"]["result"], 100);
    let stage = run(json!({}), near);
    assert_eq!(stage.failed().1, "quorum_not_reached");
    let large = [1_234_567_890_123_456_789_u64, 1_234_567_890_123_456_790, 7];
    let stage = run(json!({}), large.map(|number| json!(number)));
    assert_eq!(stage.failed().1, "quorum_not_reached");
    let stage = run(json!({ "quorum": 1 }), [json!("c"), json!("b"), json!("a")]);
    assert_eq!(
        stage.completed()["result"]["result"],
        "a",
        "of equals the first in order"
    );
}

#[test]
fn a_poll_counts_each_vote_once_and_by_its_rule() {
    let names = ["ann", "ben", "cyd", "dan"];
    for (votes, rule, expected) in [
        (["yes", "yes", "no", "abstain"], "majority", Some(true)),
        (["yes", "no", "no", "yes"], "majority", Some(false)),
        (["yes", "yes", "no", "abstain"], "supermajority", Some(true)),
        (["yes", "yes", "no", "no"], "supermajority", Some(false)),
        (["yes", "yes", "no", "yes"], "unanimous", Some(false)),
        (
            ["yes", "abstain", "abstain", "yes"],
            "unanimous",
            Some(true),
        ),
        (
            ["abstain", "abstain", "abstain", "abstain"],
            "unanimous",
            Some(false),
        ),
        (["yes", "", "", ""], "majority", None),
    ] {
        let mut stage = Stage::open("poll", &names, json!({ "majority": rule }));
        stage.places(&names);
        assert_eq!(
            stage.result("ann", json!("maybe")),
            "refused: /payload/result"
        );
        for (name, vote) in names.iter().zip(votes).filter(|(_, vote)| !vote.is_empty()) {
            assert_eq!(stage.result(name, json!(vote)), "reported");
            if stage.outcome().is_none() {
                assert_eq!(
                    stage.result(name, json!(vote)),
                    "refused: /reply_to",
                    "twice"
                );
            }
        }
        if stage.outcome().is_none() {
            stage.elapse(DUE);
        }
        match expected {
            Some(accepted) => assert_eq!(
                stage.completed()["result"]["accepted"],
                accepted,
                "{votes:?} {rule}"
            ),
            None => {
                assert_eq!(stage.failed().1, "quorum_not_reached");
                let said = format!("{:?}", stage.outcome());
                assert!(!said.contains("tolerance"), "{said}");
            }
        }
    }
}

#[test]
fn a_vote_may_be_a_boolean_and_in_any_case() {
    let names = ["ann", "ben", "cyd", "dan", "eve"];
    let mut stage = Stage::open("poll", &names, json!({}));
    stage.places(&names);
    for (name, vote) in names.iter().zip([
        json!(true),
        json!("Yes"),
        json!(false),
        json!(" NO"),
        json!("ABSTAIN"),
    ]) {
        assert_eq!(stage.result(name, vote.clone()), "reported", "{vote}");
    }
    assert_eq!(
        stage.completed()["result"],
        json!({ "accepted": false, "yes": 2, "no": 2, "abstain": 1, "of": 5 })
    );
}

#[test]
fn a_swarm_waits_for_members_and_not_for_those_who_left() {
    let mut stage = Stage::open("swarm", &[], json!({ "quorum": 2 }));
    let member = |stage: &mut Stage, name: &str, joins| {
        let (agent, request_id) = (agent(name), message("m-member"));
        stage.hear(&TaskInput::Member {
            agent,
            request_id,
            joins,
        })
    };
    assert_eq!(
        member(&mut stage, "ann", false),
        "refused: /payload/parameters/task_id"
    );
    // Whoever opens a task is never given it.
    assert_eq!(
        member(&mut stage, OPENER, true),
        "refused: /payload/parameters/task_id"
    );
    for name in ["ann", "ben", "cyd"] {
        assert_eq!(member(&mut stage, name, true), "joined");
        assert_eq!(stage.asked(), [name]);
        stage.places(&[name]);
    }
    assert_eq!(
        member(&mut stage, "ann", true),
        "refused: /payload/parameters/task_id"
    );
    stage.result("ann", json!("a"));
    assert_eq!(member(&mut stage, "cyd", false), "left");
    assert_eq!(stage.outcome(), None);
    stage.result("ben", json!("b"));
    let expected = json!({ "result": { "ann": "a", "ben": "b" }, "partial": false });
    assert_eq!(stage.completed(), expected);
    let mut poll = Stage::open("poll", &["ann"], json!({}));
    assert_eq!(
        member(&mut poll, "ben", true),
        "refused: /payload/parameters/task_id"
    );
}

#[test]
fn of_two_whose_time_is_over_the_later_may_be_heard_of_first() {
    let more = json!({ "answer_ms": 1_000 });
    let mut stage = Stage::open("broadcast", &["ann", "ben"], more);
    stage.places(&["ann"]);
    stage.places(&["ben"]);
    let parts = &stage.story.state().parts;
    let dues: Vec<_> = parts.values().filter_map(|part| part.due).collect();
    let (first, last) = (dues.iter().min().unwrap(), dues.iter().max().unwrap());
    assert!(first < last, "each has its own time: {dues:?}");
    let passed = |due| TaskInput::Elapsed(elapsed(Aggregate::Task, &token("t-1"), ATTEMPT, due));
    let (first, last) = (passed(*first), passed(*last));
    assert_eq!(stage.hear(&last), "elapsed", "it elapses once");
    let parts = stage.story.state().parts.values();
    assert_eq!(parts.filter(|part| part.is_working()).count(), 0);
    assert!(stage.hear(&first).starts_with("ignored"));
}

/// With what nobody can do in time whoever opens tasks would make others unreliable.
#[test]
fn what_nobody_could_do_in_time_counts_against_nobody() {
    for (deadline_ms, done) in [(500, None), (60_000, Some(false))] {
        let more = json!({ "deadline_ms": deadline_ms });
        let mut stage = Stage::open("broadcast", &["ann"], more);
        stage.places(&["ann"]);
        assert_eq!(stage.elapse(DUE), "elapsed");
        let TaskEvent::Elapsed(elapsed) = &stage.story.last().event else {
            panic!("{:?}", stage.story.last());
        };
        let released = &elapsed.next.release;
        let told: Vec<_> = released.iter().map(|one| one.told.as_deref()).collect();
        assert_eq!(told, [Some("It was not done in time.")]);
        assert_eq!(released[0].done, done, "{deadline_ms}");
        assert_eq!(elapsed.silent, [agent("ann")]);
    }
}

#[test]
fn a_panel_waits_for_its_case_which_ends_it_once() {
    let fit = json!({ "criteria": { "skills": ["sum"] } });
    let decided = || TaskOutcome::Completed {
        result: json!({ "case_id": "t-1", "version": 1 }),
        by: vec![agent("ann")],
        partial: true,
    };
    let ended = || TaskInput::CaseEnded {
        case_id: CaseId::new("t-1").unwrap(),
        outcome: Box::new(decided()),
    };
    let mut stage = Stage::open("panel", &["ann", "ben"], fit.clone());
    assert!(stage.asked().is_empty(), "its case asks them");
    assert_eq!(stage.place("ann"), "ignored: already_done");
    assert_eq!(stage.hear(&ended()), "case_ended");
    assert_eq!(stage.outcome(), Some(decided()));
    assert_eq!(stage.hear(&ended()), "ignored: already_done");
    assert!(stage.elapse(DUE).starts_with("ignored"));

    let mut stage = Stage::open("panel", &["ann", "ben"], fit.clone());
    assert_eq!(stage.elapse(DUE), "elapsed");
    assert_eq!(stage.failed().1, "deadline");
    assert!(
        stage.hear(&ended()).starts_with("ignored"),
        "it is too late"
    );

    // A case with the id of another task does not end that.
    let mut other = Stage::open("broadcast", &["ann"], fit);
    assert!(other.hear(&ended()).starts_with("ignored"));
    assert_eq!(other.outcome(), None);
}

/// The id of a result can be foreseen, so another may have used it first.
#[test]
fn a_result_counts_whoever_has_used_its_id_before() {
    let mut stage = Stage::open("broadcast", &["ann", "ben"], json!({}));
    stage.places(&["ann", "ben"]);
    for name in ["ann", "ben", "ben"] {
        let by = agent(name);
        let asked = stage.story.state().parts[&by].assignment;
        let word = Word::Result(serde_json::from_value(json!({ "result": 1 })).unwrap());
        let context = said("m-x", 9).of_sender(by.clone());
        let said = TaskInput::Say(Box::new(Said { by, asked, word }));
        let heard = stage.story.hears(&context, &said);
        assert!(
            ["reported", "ignored: repetition"].contains(&heard.as_str()),
            "{name}: {heard}"
        );
    }
    assert!(stage.outcome().is_some(), "both results count");
    assert!(stage.story.has_one_id_each());
}
