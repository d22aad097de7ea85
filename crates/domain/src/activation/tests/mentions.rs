//! Who is mentioned, and who is not.

use super::*;

fn found(text: &str) -> Vec<String> {
    let known = [
        id("ann"),
        id("bob"),
        id("bob-"),
        id("Override"),
        id("risk_assessor"),
        id("ANN"),
    ];
    let named = mentions(text, |name| {
        known.iter().find(|agent| agent.as_str() == name)
    });
    named.within.iter().map(ToString::to_string).collect()
}

#[test]
fn a_mention_is_an_at_sign_and_the_id_of_an_agent() {
    for (text, expected) in [
        ("@ann", &["ann"][..]),
        ("@ann, please look", &["ann"]),
        ("Could you look, @ann?", &["ann"]),
        (
            "Thanks (@ann). And @risk_assessor: what now?",
            &["ann", "risk_assessor"],
        ),
        ("@ann @bob @ann", &["ann", "bob"]),
        ("@ann/@bob", &["ann"]),
        ("@bob- and @bob_", &["bob-", "bob"]),
        ("_@ann_", &[]),
        ("*@ann*", &["ann"]),
        ("请@ann看", &["ann"]),
        ("@ann.", &["ann"]),
        ("@ann...", &["ann"]),
        ("\"@ann\"", &["ann"]),
        ("\n@ann\n", &["ann"]),
    ] {
        assert_eq!(found(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_part_of_something_else_is_no_mention() {
    for text in [
        "",
        "@",
        "@@",
        "@ ann",
        "ann",
        "write to jim@ann",
        "jim@ann.com",
        "jim.smith+x@ann.example.org",
        "@ann.example.org",
        "@ann@example.social",
        "@@ann",
        "https://example.org/@ann",
        "npm install @ann/tools",
        "user=jim%40@ann",
        "@annabel",
        "@an",
        "@nobody",
        "@ann_and_bob",
        "\\@ann",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn a_name_is_known_by_its_case_and_else_by_being_the_only_one() {
    let matcher = matcher_of(&["ann", "ANN", "Bob"].map(|name| card(name, vec![])));
    for (name, expected) in [
        ("ann", Some("ann")),
        ("ANN", Some("ANN")),
        ("Ann", None),
        ("bob", Some("Bob")),
        ("", None),
    ] {
        assert_eq!(
            matcher.agent_named(name).map(AgentId::as_str),
            expected,
            "{name:?}"
        );
    }
}

#[test]
fn only_so_many_are_woken_by_one_message_and_it_says_how_many_were_not() {
    let cards: Vec<Card> = (0..20).map(|n| card(&format!("a{n:02}"), vec![])).collect();
    let everyone: Vec<String> = cards
        .iter()
        .map(|card| format!("@{}", card.agent_id))
        .collect();
    let (matcher, from) = (matcher_of(&cards), id("a03"));
    // Its own name and those of nobody do not count.
    let content = format!("@nobody @param {} @a00", everyone.join(" "));
    let (message_type, to) = (MessageType::InfoUpdate, Recipient::All);
    let message = Message {
        content: &content,
        message_type: &message_type,
        to: &to,
        ..tree::saying(&from)
    };
    let decisions = decide_all(&matcher, &message, None, &ALONE);
    let woken: Vec<&str> = decisions.woken().map(|(agent, _)| agent.as_str()).collect();
    assert_eq!(
        woken,
        ["a00", "a01", "a02", "a04", "a05", "a06", "a07", "a08"]
    );
    assert_eq!((woken.len(), decisions.named_beyond), (NAMED_MAX, 11));
    assert_eq!(reason_of(&decisions, "a09"), "observe named_beyond");
    assert!(!decisions.decisions.contains_key(&from));
}
