use concord_events::CardChange;
use concord_wire::payload::{AgentStatus, Card, Skill};

use super::*;
use crate::effect;
use crate::fixtures::*;

fn register(card: Card) -> AgentInput {
    let by = card.agent_id.clone();
    AgentInput::Register {
        card: Box::new(card),
        by,
        request_id: Some(message("m-ask")),
        must_exist: false,
    }
}

fn status(status: AgentStatus) -> AgentInput {
    AgentInput::Status {
        agent_id: agent("ann"),
        status,
        why: "lunch".into(),
    }
}

fn leave() -> AgentInput {
    AgentInput::Deregister {
        agent_id: agent("ann"),
        by: agent("ann"),
        why: String::new(),
        request_id: None,
    }
}

fn card() -> Card {
    Card::new(agent("ann"))
}

fn change(story: &Story<AgentMachine>) -> CardChange {
    match &story.last().event {
        AgentEvent::Registered(registered) => registered.change,
        other => panic!("{other:?}"),
    }
}

fn told(story: &Story<AgentMachine>) -> Vec<String> {
    let messages = effect::messages::<AgentMachine>(story.last()).unwrap();
    messages
        .iter()
        .map(|message| format!("{} to {}", message.message_type, message.to_agent.as_str()))
        .collect()
}

/// An agent that has registered, at the millisecond 1.
fn joined() -> Story<AgentMachine> {
    let mut story = Story::<AgentMachine>::of("ann");
    let joins = story.hears(&said("m-1", 1), &register(card()));
    assert_eq!(joins, "registered");
    story
}

#[test]
fn an_agent_that_is_not_registered_has_no_status_and_nothing_to_update() {
    let mut story = Story::<AgentMachine>::of("ann");
    let update = AgentInput::Register {
        card: Box::new(card()),
        by: agent("ann"),
        request_id: None,
        must_exist: true,
    };
    for input in [status(AgentStatus::Busy), leave(), update] {
        assert_eq!(story.hears(&said("m-0", 0), &input), "refused: /from_agent");
    }
}

#[test]
fn another_card_under_the_same_message_id_is_refused_and_the_first_stays() {
    let mut story = joined();
    let again = story.hears(&said("m-1", 2), &register(card()));
    assert_eq!(again, "ignored: repetition");
    let mut other = card();
    other.description = "Reads leases.".into();
    let refused = story.hears(&said("m-1", 3), &register(other.clone()));
    assert_eq!(refused, "refused: /message_id");
    assert_eq!(story.state().card, Some(card()));
    assert_eq!(story.hears(&said("m-2", 4), &register(other)), "registered");
}

#[test]
fn an_agent_joins_and_is_updated() {
    let mut story = joined();
    assert_eq!(
        (change(&story), story.state().status),
        (CardChange::Joined, AgentStatus::Available)
    );
    assert_eq!(told(&story), ["response to ann", "agent_joined to _all"]);
    assert_eq!(
        story.hears(&said("m-1", 2), &register(card())),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&said("m-2", 2), &register(card())),
        "registered"
    );
    assert_eq!(
        (change(&story), told(&story)),
        (CardChange::Same, vec!["response to ann".to_owned()])
    );
    let better = Card {
        skills: vec![Skill {
            name: "tax".into(),
            ..Skill::default()
        }],
        ..card()
    };
    assert_eq!(
        story.hears(&said("m-3", 3), &register(better.clone())),
        "registered"
    );
    assert_eq!(
        (change(&story), story.state().card.as_ref()),
        (CardChange::Updated, Some(&better))
    );
}

#[test]
fn an_agent_changes_its_status_and_leaves() {
    let mut story = joined();
    assert_eq!(
        story.hears(&said("m-4", 4), &status(AgentStatus::Busy)),
        "status_changed"
    );
    assert_eq!(
        (story.state().since, told(&story)),
        (Some(after(4)), vec!["status to _all".to_owned()])
    );
    assert_eq!(
        story.hears(&said("m-5", 5), &status(AgentStatus::Busy)),
        "ignored: already_done"
    );
    assert_eq!(story.hears(&said("m-6", 6), &leave()), "deregistered");
    assert_eq!(
        (story.state().card.clone(), story.state().status),
        (None, AgentStatus::Unavailable)
    );
    assert_eq!(told(&story), ["status to _all"]);
    assert_eq!(
        story.hears(&said("m-7", 7), &register(card())),
        "registered"
    );
    assert_eq!(change(&story), CardChange::Joined);
}

#[test]
fn an_agent_that_was_lost_and_registers_again_is_news() {
    let mut story = Story::<AgentMachine>::of("ann");
    story.hears(&said("m-1", 1), &register(card()));
    story.hears(&said("m-2", 2), &status(AgentStatus::Unavailable));
    assert_eq!(
        story.hears(&said("m-3", 3), &register(card())),
        "registered"
    );
    assert_eq!(
        (change(&story), story.state().status),
        (CardChange::Joined, AgentStatus::Available)
    );
}

#[test]
fn a_card_that_is_not_valid_is_refused_at_its_place() {
    let mut story = Story::<AgentMachine>::of("ann");
    let skills = (0..10_000)
        .map(|n| Skill {
            name: format!("s{n}"),
            ..Skill::default()
        })
        .collect();
    let input = register(Card { skills, ..card() });
    assert_eq!(
        story.hears(&said("m-1", 1), &input),
        "refused: /payload/parameters/skills"
    );
    assert_eq!(story.records.len(), 0);
}
