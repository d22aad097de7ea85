//! Opening a case: who takes part, repetitions, and limits.

use concord_wire::id::PolicyName;
use concord_wire::payload::Role;

use super::gates::gate_names;
use super::*;
use crate::aggregates::policy::{PolicyInput, PolicyMachine};
use crate::rules::size_budget::{FAN_OUT_BYTES_MAX, json_bytes};

#[test]
fn opening_says_who_is_in_and_until_when_and_tells_them() {
    let story = story(Phase::Collecting);
    let record = story.last();
    let CaseEvent::Opened(opened) = &record.event else {
        panic!("{record:?}")
    };
    assert_eq!(
        opened.participants,
        [agent("ann"), agent("ben")],
        "ordered, whatever the request's order"
    );
    assert_eq!(
        (opened.findings_due, opened.case_due),
        (after(FINDINGS_DUE), after(CASE_DUE))
    );
    assert_eq!(opened.policy_digest, policy().digest());
    assert_eq!(record.meta.opened, [token(FINDINGS), token(CASE)]);
    let told: Vec<String> = CaseMachine::effects(record)
        .into_iter()
        .map(|effect| match effect {
            Effect::ConfirmCase { to, request_id } => format!("{to} in answer to {request_id}"),
            Effect::AssignTask { to, assignment } => format!("{to} until {}", assignment.deadline),
            other => panic!("{other:?}"),
        })
        .collect();
    let due = after(FINDINGS_DUE);
    assert_eq!(
        told,
        [
            "olga in answer to m-open".to_owned(),
            format!("ann until {due}"),
            format!("ben until {due}")
        ]
    );
}

#[test]
fn who_may_take_part() {
    let many: Vec<String> = (0..=PARTICIPANTS_MAX).map(|n| format!("a{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (participants, expected) in [
        (&[][..], "refused: /payload/parameters/participants"),
        (&many[..], "refused: /payload/parameters/participants"),
        (&many[..PARTICIPANTS_MAX], "opened"),
        (
            &["ann", "coordinator"],
            "refused: /payload/parameters/participants/1",
        ),
        (
            &["ann", "ben", "ann"],
            "refused: /payload/parameters/participants/2",
        ),
        (&["ann"], "opened"),
    ] {
        let heard =
            CaseStory::of("c-1").hears(&said("m-open", 0), &open_case(participants, policy()));
        assert_eq!(heard, expected, "{} participants", participants.len());
    }
}

#[test]
fn the_same_request_again_changes_nothing_and_another_one_for_the_case_is_refused() {
    let same = open_request(&["ben", "ann"], policy());
    let mut task = same.clone();
    task.request.task.title = "Sale".into();
    let rules = open_request(
        &["ann", "ben"],
        Policy {
            rounds_max: 1,
            ..policy()
        },
    );
    let id = OpenRequest {
        request_id: message("m-open-2"),
        ..same.clone()
    };
    let sender = OpenRequest {
        opened_by: agent("otto"),
        ..same.clone()
    };
    // The id of such a case follows from that of the request, so it is the request's id that was
    // used before.
    let mut unnamed = task.clone();
    unnamed.request.case_id = None;
    let other = "refused: /payload/parameters/case_id";
    for (what, request, expected) in [
        ("the same", same, "ignored: repetition"),
        ("another task", task, other),
        ("another policy", rules, other),
        ("another request", id, other),
        ("another sender", sender, other),
        (
            "another task under no case id",
            unnamed,
            "refused: /message_id",
        ),
    ] {
        for phase in [
            Phase::Collecting,
            Phase::Detecting,
            Phase::Deliberating,
            Phase::Decided,
        ] {
            let heard = story(phase).hears(
                &said("m-again", 5),
                &CaseInput::Open(Box::new(request.clone())),
            );
            assert_eq!(heard, expected, "{phase:?}: {what}");
        }
    }
}

#[test]
fn whoever_opens_a_case_that_exists_is_told_which_one_and_what_to_do() {
    let again = OpenRequest {
        request_id: message("m-open-2"),
        ..open_request(&["ann", "ben"], policy())
    };
    let state = story(Phase::Collecting).state().clone();
    let decided = CaseMachine::decide(
        &state,
        &said("m-open-2", 5),
        &CaseInput::Open(Box::new(again)),
    );
    let Decision::Reject(fault) = decided else {
        panic!("{decided:?}")
    };
    assert_eq!(fault.code, concord_wire::ErrorCode::InvalidRequest);
    assert_eq!(fault.message, "The case c-1 exists already.");
    assert!(
        fault.advice.contains("another case_id") && fault.advice.contains("concord case show c-1"),
        "{fault:?}"
    );
}

#[test]
fn what_is_too_large_for_a_fact_is_refused_with_the_limit() {
    let rules = Policy {
        finding_bytes_max: 1_024,
        ..policy()
    };
    let mut request = open_request(&["ann", "ben"], rules);
    request.request.task.input = json!("x".repeat(crate::rules::size_budget::TASK_BYTES_MAX));
    let mut story = CaseStory::of("c-1");
    let asked = CaseInput::Open(Box::new(request.clone()));
    assert_eq!(
        story.hears(&said("m-open", 0), &asked),
        "refused: /payload/parameters/task"
    );
    request.request.task.input = json!("x".repeat(crate::rules::size_budget::TASK_BYTES_MAX - 100));
    assert_eq!(
        story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request))),
        "opened"
    );
    let empty = serde_json::to_vec(&received("ann", "m-1", 0.5, json!({"evidence": [""]})).finding)
        .unwrap()
        .len();
    let of = |bytes: usize| {
        finding(
            "ann",
            "m-1",
            json!({"evidence": ["x".repeat(bytes - empty)]}),
        )
    };
    let decided = CaseMachine::decide(story.state(), &said("m-1", 1), &of(1_025));
    let Decision::Reject(fault) = decided else {
        panic!("{decided:?}")
    };
    assert_eq!(
        (fault.code, fault.pointer.as_str()),
        (concord_wire::ErrorCode::CapacityExceeded, "/payload")
    );
    assert!(
        fault.message.contains("1025 bytes; at most 1024"),
        "{fault}"
    );
    assert_eq!(story.hears(&said("m-1", 1), &of(1_024)), "finding_recorded");
}

/// What becomes of a request for this policy, and what its event says of policy and opener.
fn opened_by(sender: Authority, policy: serde_json::Value) -> (String, Option<CaseOpened>) {
    let mut request = OpenRequest {
        sender,
        ..open_request(&["ann", "ben"], self::policy())
    };
    request.request.policy = policy;
    let mut story = CaseStory::of("c-1");
    let heard = story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
    let opened = story.records.pop().map(|record| match record.event {
        CaseEvent::Opened(opened) => opened,
        other => panic!("{other:?}"),
    });
    (heard, opened)
}

#[test]
fn who_is_no_operator_is_held_by_the_bounds_of_the_policy() {
    let loose = json!({ "preset": "quick", "ladder": { "time_scale": 60 } });
    let tight = json!({ "preset": "quick", "case_timeout_ms": 30_000 });
    let refused = "refused: /payload/parameters/policy/ladder/time_scale";
    let suspended = Authority {
        suspended: Some("left".into()),
        ..authority("olga", &[Role::Operator])
    };
    for (sender, policy, expected) in [
        (Authority::default(), json!("investment"), "opened"),
        (Authority::default(), tight, "opened"),
        (Authority::default(), loose.clone(), refused),
        (authority("olga", &[Role::Opener]), loose.clone(), refused),
        (
            authority("olga", &[Role::Operator]),
            loose.clone(),
            "opened",
        ),
        (Authority::of_installation(), loose, "opened"),
        (suspended, json!("quick"), "refused: /from_agent"),
        (
            Authority::of_installation(),
            json!("quicker"),
            "refused: /payload/parameters/policy",
        ),
        (
            Authority::of_installation(),
            json!({ "rounds_max": 99 }),
            "refused: /payload/parameters/policy/rounds_max",
        ),
    ] {
        let is_operator = sender.holds(Role::Operator);
        let (heard, opened) = opened_by(sender, policy.clone());
        assert_eq!(heard, expected, "{policy}");
        if let Some(opened) = opened {
            assert_eq!(opened.policy_version, Some(0));
            assert_eq!(opened.by_operator, is_operator);
        }
    }
}

/// The policies of an installation after two versions of `quick` were stored: three rounds, of which an opener may have fewer, then
/// four, which nobody may change.
fn stored(versions: usize) -> KnownPolicies {
    let mut story = Story::<PolicyMachine>::of("quick");
    let all = [(3, json!({ "rounds_max": "lower" })), (4, json!({}))];
    for (rounds_max, bounds) in all.into_iter().take(versions) {
        let policy = Policy {
            rounds_max,
            ..Policy::quick()
        };
        let input = PolicyInput::Put {
            name: PolicyName::parse("quick").unwrap(),
            policy: Box::new(policy),
            bounds: serde_json::from_value(bounds).unwrap(),
            by: agent("olga"),
            why: "ours".into(),
        };
        let context = said(&format!("m-{rounds_max}"), 0);
        assert_eq!(story.hears(&context, &input), "put");
    }
    KnownPolicies {
        stored: story.versioned.state,
        ..KnownPolicies::default()
    }
}

#[test]
fn a_case_begins_with_the_last_version_and_keeps_it() {
    let asked = |known: KnownPolicies, rounds: u64| {
        let mut request = OpenRequest {
            sender: Authority::default(),
            known,
            ..open_request(&["ann", "ben"], policy())
        };
        request.request.policy = json!({ "preset": "quick", "rounds_max": rounds });
        CaseInput::Open(Box::new(request))
    };
    let refused = "refused: /payload/parameters/policy/rounds_max";
    for (versions, rounds, expected) in [
        (0, 1, ("opened", Some(0))),
        (0, 2, (refused, None)),
        (1, 2, ("opened", Some(1))),
        (1, 4, (refused, None)),
        (2, 3, (refused, None)),
        (2, 4, ("opened", Some(2))),
    ] {
        let mut story = CaseStory::of("c-1");
        let heard = story.hears(&said("m-open", 0), &asked(stored(versions), rounds));
        let version = story.state().opened.as_ref().map(|one| one.policy_version);
        assert_eq!(
            (heard.as_str(), version.flatten()),
            expected,
            "{versions}, {rounds}"
        );
    }
    // The same request, when there is another version: it is the request that has opened the case.
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &asked(stored(1), 2));
    let again = story.hears(&said("m-open", 5), &asked(stored(2), 2));
    assert_eq!(again, "ignored: repetition");
    let other = story.hears(&said("m-open", 5), &asked(stored(2), 3));
    assert_eq!(other, "refused: /payload/parameters/case_id");
}

/// The task goes to each participant, and what is sent in all is bounded and counted.
#[test]
fn a_task_times_its_participants_is_bounded() {
    let names: Vec<String> = (0..PARTICIPANTS_MAX).map(|n| format!("a{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let most = FAN_OUT_BYTES_MAX / PARTICIPANTS_MAX;
    for (bytes, expected) in [
        (most, "opened"),
        (most + 1, "refused: /payload/parameters/task"),
    ] {
        let mut request = open_request(&names, policy());
        request.request.task.input = json!("");
        let empty = json_bytes(&request.request.task);
        request.request.task.input = json!("x".repeat(bytes - empty));
        let asked = CaseInput::Open(Box::new(request));
        let sent = CaseMachine::fan_out_bytes(&asked);
        let heard = CaseStory::of("c-1").hears(&said("m-open", 0), &asked);
        assert_eq!(heard, expected, "{bytes}");
        // Nothing is sent because of what is refused.
        let counted = if bytes == most { FAN_OUT_BYTES_MAX } else { 0 };
        assert_eq!(sent, counted);
    }
}

#[test]
fn gates_are_named_once_and_are_few() {
    for (gates, pointer) in [(vec!["a", "a"], "/1"), (vec!["x"; 17], "")] {
        let mut request = open_request(&["finance"], policy());
        request.request.gates = gate_names(&gates);
        let mut story = Story::<CaseMachine>::of("c-1");
        let heard = story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
        assert_eq!(
            heard,
            format!("refused: /payload/parameters/gates{pointer}")
        );
    }
}
