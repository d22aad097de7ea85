//! What the agents of the measurement can do, and what tasks ask for.

use serde_json::{Value, json};

/// How many agents have the same skill: as many are asked by the strategies that ask all.
pub(super) const ALIKE: usize = 5;

/// What agents do with things.
const VERBS: [&str; 8] = [
    "translate",
    "price",
    "summarise",
    "review",
    "schedule",
    "classify",
    "reconcile",
    "archive",
];
/// The things.
const THINGS: [&str; 25] = [
    "leases",
    "invoices",
    "patents",
    "payrolls",
    "tenders",
    "warranties",
    "shipments",
    "permits",
    "mortgages",
    "audits",
    "recipes",
    "timetables",
    "prescriptions",
    "trademarks",
    "dividends",
    "insurances",
    "contracts",
    "complaints",
    "manuals",
    "surveys",
    "elections",
    "harvests",
    "catalogues",
    "inventories",
    "libraries",
];
/// Where they come from.
const PLACES: [&str; 5] = ["Norway", "Kenya", "Chile", "Japan", "Portugal"];

/// The name of an agent.
pub(super) fn name(number: usize) -> String {
    format!("w-{number}")
}

/// What one agent alone does, in words.
pub(super) fn words(number: usize) -> String {
    let pick = |list: &[&'static str], place: usize| {
        list.get(place % list.len()).copied().unwrap_or_default()
    };
    let verb = pick(&VERBS, number);
    let thing = pick(&THINGS, number / VERBS.len());
    let place = pick(&PLACES, number / (VERBS.len() * THINGS.len()));
    format!("{verb} the {thing} from {place}")
}

/// The card of an agent: a skill that it shares with a few others, and one of its own.
pub(super) fn card(number: usize) -> Value {
    let words = words(number);
    json!({
        "agent_id": name(number),
        "skills": [
            { "name": skill(number / ALIKE) },
            { "name": words, "examples": [format!("Please {words}.")] },
        ],
    })
}

fn skill(group: usize) -> String {
    format!("group-{group}")
}

/// The criteria of a task: everybody in turn, or those who are alike.
pub(super) fn criteria(strategy: &str, number: usize, agents: usize) -> Value {
    if strategy == "round_robin" {
        return json!({});
    }
    by_skill(number, agents)
}

/// The criteria by which a few are found who are alike.
pub(super) fn by_skill(number: usize, agents: usize) -> Value {
    json!({ "skills": [skill(number % (agents / ALIKE).max(1))] })
}

/// The criteria by which one is found by its words.
pub(super) fn by_text(number: usize, agents: usize) -> Value {
    json!({ "text": format!("Who can {}?", words(number % agents)) })
}
