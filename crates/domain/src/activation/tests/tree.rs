//! The decision tree, branch by branch.

use super::*;

mod branches;

/// A message to everyone that asks nothing.
pub(super) fn saying(from: &AgentId) -> Message<'_> {
    Message {
        message_type: &MessageType::GroupQuery,
        from,
        to: &Recipient::Any,
        content: "zzz",
        assigned: None,
        preferred: &[],
        reply_to_author: None,
        asks_for_objections: false,
    }
}

#[test]
fn an_agent_decides_nothing_about_its_own_message_however_it_is_addressed() {
    let ann = id("ann");
    let to = Recipient::Agent(ann.clone());
    let view = View {
        mentioned: Naming::Named,
        preferred: Naming::Named,
        takes_part: true,
        candidate: None,
        in_context: None,
        has_position: true,
        background: 0.0,
        rival: None,
        threshold: 0.7,
        observe: 0.0,
        trigger: Some("x"),
    };
    let message = Message {
        to: &to,
        assigned: Some(&ann),
        reply_to_author: Some(&ann),
        ..saying(&ann)
    };
    let decision = decide(&message, &ann, &view);
    assert_eq!(
        (decision.outcome, decision.reason),
        (Outcome::Ignore, Reason::OwnMessage)
    );
}

#[test]
fn a_question_to_the_group_is_decided_by_the_best_skill_and_its_lead() {
    let user = id("user");
    let content = "What's the current exchange rate for USD to MYR?";
    let decisions = decide_all(
        &matcher_of(&panel()),
        &Message {
            content,
            ..saying(&user)
        },
        None,
        &ALONE,
    );
    assert_eq!(
        reason_of(&decisions, "accounting"),
        "wake semantic:exchange_rate"
    );
    assert_eq!(decisions.woken().count(), 1, "{:?}", decided(&decisions));
    let woken = &decisions.decisions[&id("accounting")];
    let other = &decisions.decisions[&id("database")];
    assert!(
        woken.score.unwrap() >= 0.7 && woken.runner_up.as_ref().unwrap().score < 0.7,
        "{woken:?}"
    );
    assert_eq!(
        other
            .runner_up
            .as_ref()
            .map(|r| (r.agent_id.as_str(), r.score)),
        Some(("accounting", woken.score.unwrap()))
    );
}

#[test]
fn phrases_wake_where_meaning_cannot_be_matched() {
    let user = id("user");
    let mut cards = panel();
    cards[3].triggers = vec!["pgbouncer".to_owned()];
    let mut matcher = matcher_of(&cards);
    let say = |content| Message {
        content,
        ..saying(&user)
    };
    for (content, expected) in [
        ("Can you HELP ME with this?", "wake keyword:Help me"),
        ("help men", "ignore irrelevant"),
        ("whelp me", "ignore irrelevant"),
        ("is it C++?", "wake keyword:c++"),
        ("help  me", "ignore irrelevant"),
    ] {
        assert_eq!(
            reason_of(
                &decide_all(&matcher, &say(content), None, &ALONE),
                "generalist"
            ),
            expected,
            "{content}"
        );
    }
    let decisions = decide_all(&matcher, &say("pgbouncer"), None, &ALONE);
    assert_eq!(reason_of(&decisions, "security"), "wake keyword:pgbouncer");
    // With a model its skills are matched by their meaning, and the phrase is not needed. Without
    // skills it still is.
    cards
        .iter()
        .for_each(|card| matcher.insert(card, |_| Some(vec![1.0, 0.0])));
    let decisions = decide_all(
        &matcher,
        &say("pgbouncer, help me"),
        Some(&[0.0, 1.0]),
        &ALONE,
    );
    assert_eq!(reason_of(&decisions, "security"), "ignore irrelevant");
    assert_eq!(reason_of(&decisions, "generalist"), "wake keyword:Help me");
}

#[test]
fn who_has_spoken_observes_what_hardly_concerns_it() {
    let user = id("user");
    let participations = [(id("database"), Participation { silent_for: 1_000 })].into();
    let conversation = Conversation {
        participations: &participations,
        ..ALONE
    };
    let decisions = decide_all(&matcher_of(&panel()), &saying(&user), None, &conversation);
    assert_eq!(reason_of(&decisions, "database"), "observe below_threshold");
    assert_eq!(reason_of(&decisions, "security"), "ignore irrelevant");
}

#[test]
fn only_those_who_hear_a_message_decide_about_it() {
    let user = id("user");
    let audience = [id("database"), id("stranger")].into();
    let conversation = Conversation {
        audience: Some(&audience),
        ..ALONE
    };
    let message = Message {
        content: "@security is this login safe",
        ..saying(&user)
    };
    let decisions = decide_all(&matcher_of(&panel()), &message, None, &conversation);
    assert_eq!(
        decisions
            .decisions
            .keys()
            .map(AgentId::as_str)
            .collect::<Vec<_>>(),
        ["database"]
    );
}

#[test]
fn decisions_are_recorded_as_text_and_read_again() {
    let user = id("user");
    let content = "is this login safe? @database";
    let decisions = decide_all(
        &matcher_of(&panel()),
        &Message {
            content,
            ..saying(&user)
        },
        None,
        &ALONE,
    );
    let json = serde_json::to_value(&decisions.decisions).unwrap();
    assert_eq!(
        json["database"],
        serde_json::json!({ "outcome": "wake", "reason": "mention" })
    );
    assert_eq!(json["security"]["reason"], "semantic:authentication");
    let again: BTreeMap<AgentId, Decision> = serde_json::from_value(json).unwrap();
    assert_eq!(again, decisions.decisions);
    for text in [
        "own_message",
        "semantic:a:b",
        "keyword:c++",
        "named_beyond",
        "semantic:",
    ] {
        assert_eq!(text.parse::<Reason>().unwrap().to_string(), text);
    }
    assert!("sleepy".parse::<Reason>().is_err());
}
