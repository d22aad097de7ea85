use std::collections::{BTreeMap, BTreeSet};

use concord_wire::payload::{Card, Skill};
use concord_wire::{AgentId, MessageType, Recipient};

use super::*;

mod matching;
mod mentions;
mod properties;
mod several;
mod tree;

fn id(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn skill(name: &str, examples: &[&str]) -> Skill {
    Skill {
        name: name.to_owned(),
        examples: examples.iter().map(ToString::to_string).collect(),
        ..Skill::default()
    }
}

fn card(name: &str, skills: Vec<Skill>) -> Card {
    Card {
        skills,
        ..Card::new(id(name))
    }
}

/// The agents of the specification's scenarios.
fn panel() -> Vec<Card> {
    let accounting = skill(
        "exchange_rate",
        &[
            "what is the exchange rate from dollars to euros",
            "convert this currency",
        ],
    );
    let tax = skill("tax", &["how much tax do we owe", "file the tax return"]);
    let schema = skill(
        "schema",
        &[
            "design a database schema",
            "which tables and columns do we need",
        ],
    );
    let pooling = skill(
        "pooling",
        &["postgres connection pooling", "too many open connections"],
    );
    let login = skill(
        "authentication",
        &["is this login safe", "how do we store oauth tokens"],
    );
    let mut generalist = card("generalist", vec![]);
    generalist.triggers = vec!["Help me".to_owned(), "c++".to_owned()];
    vec![
        card("accounting", vec![accounting, tax]),
        card("database", vec![schema, pooling]),
        generalist,
        card("security", vec![login]),
    ]
}

fn matcher_of(cards: &[Card]) -> Matcher {
    let mut matcher = Matcher::default();
    cards.iter().for_each(|card| matcher.insert(card, |_| None));
    matcher
}

const NOBODY: &BTreeMap<AgentId, Participation> = &BTreeMap::new();

fn asking(text: &str) -> Query<'_> {
    Query {
        text,
        vector: None,
        parts: &[],
        previous: None,
        participations: NOBODY,
        audience: None,
        from: None,
    }
}

const NO_ONE: &BTreeSet<AgentId> = &BTreeSet::new();

const ALONE: Conversation<'static> = Conversation {
    previous: None,
    parts: &[],
    assignment: None,
    positions: NO_ONE,
    participations: NOBODY,
    audience: None,
};

/// What everyone does about a message, as `agent: outcome reason`.
fn decided(decisions: &Decisions) -> Vec<String> {
    let outcome = |outcome| match outcome {
        Outcome::Wake => "wake",
        Outcome::Observe => "observe",
        Outcome::Ignore => "ignore",
    };
    decisions
        .decisions
        .iter()
        .map(|(agent, d)| format!("{agent}: {} {}", outcome(d.outcome), d.reason))
        .collect()
}

/// What one agent does about a message.
fn reason_of(decisions: &Decisions, agent: &str) -> String {
    let start = format!("{agent}: ");
    decided(decisions)
        .into_iter()
        .find_map(|line| line.strip_prefix(&start).map(str::to_owned))
        .unwrap()
}
