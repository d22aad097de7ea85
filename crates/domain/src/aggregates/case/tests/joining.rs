//! Agents that join a case later.

use concord_wire::ErrorCode;
use concord_wire::payload::Role;

use super::*;
use crate::effect;

fn add(by: &str, name: &str, request: Option<&str>, sender: Authority) -> CaseInput {
    let request = request.map(|id| Heard {
        agent_id: agent(by),
        message_id: message(id),
        digest: format!("{by}/{name}"),
    });
    CaseInput::Add(Box::new(ReceivedAddition {
        by: agent(by),
        request,
        agent_id: agent(name),
        sender,
        shared: SharedNow::default(),
        sent_bytes: 0,
    }))
}

/// The request of somebody that an agent joins.
pub(super) fn lets_in(by: &str, name: &str, id: &str) -> CaseInput {
    add(by, name, Some(id), Authority::default())
}

fn collecting() -> CaseStory {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
    story
}

/// Cleo joins while findings are collected.
pub(crate) fn story() -> CaseStory {
    let mut story = collecting();
    let asked = add("olga", "cleo", Some("j-1"), Authority::default());
    assert_eq!(story.hears(&said("j-1", 1), &asked), "joined");
    story
}

#[test]
fn who_joins_while_findings_are_collected_is_briefed_and_awaited() {
    let mut story = story();
    let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
    let kinds: Vec<(&str, &str)> = sent
        .iter()
        .map(|one| (one.message_type.as_str(), one.to_agent.as_str()))
        .collect();
    let expected = [
        ("response", "olga"),
        ("session_briefing", "cleo"),
        ("task_assignment", "cleo"),
        ("notification", "_all"),
    ];
    assert_eq!(kinds, expected);
    let briefing: serde_json::Value = sent[1].payload().unwrap();
    assert_eq!(briefing["so_far"], "0 of 3 findings are there.");
    assert_eq!(briefing["awaited"], json!(["ann", "ben", "cleo"]));
    assert!(briefing["task"].is_object(), "{briefing}");
    for (id, name, expected) in [
        ("f-1", "ann", "finding_recorded"),
        ("f-2", "ben", "finding_recorded"),
        ("f-3", "cleo", "findings_closed"),
    ] {
        let found = received(name, id, 0.9, json!({ "summary": "s" }));
        let heard = story.hears(&said(id, 2), &CaseInput::Finding(Box::new(found)));
        assert_eq!(heard, expected, "{name}");
    }
    let late = add("olga", "dan", None, Authority::default());
    assert_eq!(story.hears(&said("j-2", 3), &late), "joined");
    let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
    let kinds: Vec<&str> = sent.iter().map(|one| one.message_type.as_str()).collect();
    assert_eq!(
        kinds,
        ["session_briefing", "notification"],
        "no finding any more"
    );
    let briefing: serde_json::Value = sent[0].payload().unwrap();
    assert!(briefing["task"].is_object(), "{briefing}");
}

#[test]
fn what_is_sent_to_whoever_joins_is_counted_before_it_is_sent() {
    for (by, bytes) in [
        ("olga", 10),
        ("olga", 100_000),
        ("olga", 400_000),
        ("ann", 100_000),
    ] {
        let mut request = open_request(&["ann", "ben"], policy());
        request.request.task.input = json!("x".repeat(bytes));
        let mut story = CaseStory::of("c-1");
        story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
        let asked = add(by, "cleo", Some("j-1"), Authority::default());
        let CaseInput::Add(mut received) = asked else {
            panic!("{asked:?}");
        };
        received.sent_bytes = sent_bytes(story.state(), &received);
        let asked = CaseInput::Add(received);
        let counted = CaseMachine::fan_out_bytes(&asked);
        if story.hears(&said("j-1", 1), &asked) != "joined" {
            assert_eq!(counted, 0, "{by} causes nothing");
            continue;
        }
        let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
        let sent: usize = sent.iter().map(|one| one.payload.get().len()).sum();
        assert!(sent <= counted + 1_000, "{bytes}: {counted} of {sent}");
    }
}

#[test]
fn the_request_that_opened_the_case_is_the_same_after_somebody_has_joined() {
    let mut story = story();
    let again = open_case(&["ann", "ben"], policy());
    assert_eq!(story.hears(&said("m-1", 5), &again), "ignored: repetition");
    let joined = add("olga", "cleo", Some("j-1"), Authority::default());
    assert_eq!(story.hears(&said("j-1", 5), &joined), "ignored: repetition");
}

#[test]
fn who_may_let_whom_in() {
    let nobody = Authority::default();
    for (by, name, sender, expected) in [
        ("mallory", "mallory", nobody.clone(), "/from_agent"),
        ("ann", "cleo", nobody.clone(), "/from_agent"),
        (
            "olga",
            "ann",
            nobody.clone(),
            "/payload/parameters/agent_id",
        ),
        (
            "olga",
            "coordinator",
            nobody.clone(),
            "/payload/parameters/agent_id",
        ),
        ("opal", "cleo", authority("opal", &[Role::Operator]), ""),
    ] {
        let mut story = collecting();
        let heard = story.hears(&said("j-1", 1), &add(by, name, Some("j-1"), sender));
        match expected {
            "" => assert_eq!(heard, "joined", "{by} lets {name} in"),
            at => assert_eq!(heard, format!("refused: {at}"), "{by} lets {name} in"),
        }
    }
    let mut story = collecting();
    for number in 2..PARTICIPANTS_MAX {
        let asked = add("olga", &format!("a{number}"), None, nobody.clone());
        assert_eq!(
            story.hears(&said(&format!("j-{number}"), 1), &asked),
            "joined"
        );
    }
    let full = story.hears(
        &said("j-full", 1),
        &add("olga", "zoe", None, nobody.clone()),
    );
    assert_eq!(full, "refused: /payload/parameters/agent_id");
    let cancel = CaseInput::Cancel {
        by: agent("opal"),
        why: "a mistake".into(),
    };
    story.hears(&said("m-2", 2), &cancel);
    let late = add("olga", "zoe", None, nobody);
    // No deadline has passed: the case is over, and the same again will not do.
    let over = CaseMachine::decide(story.state(), &said("j-over", 3), &late);
    let Decision::Reject(fault) = over else {
        panic!("{over:?}");
    };
    assert_eq!(
        (fault.code, fault.pointer.as_str()),
        (ErrorCode::InvalidRequest, "/case_id")
    );
}
