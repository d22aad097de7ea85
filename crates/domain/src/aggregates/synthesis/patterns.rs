//! What entries of several agents have in common: they are about the same, by topic or tag.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;
use concord_wire::payload::{Insight, PATTERNS_MAX, Pattern};
use concord_wire::policy::plain_form;

use crate::aggregates::case::strengthened;

/// The entries about one thing: how many, and how sure each agent is.
#[derive(Default)]
struct Entries {
    count: u32,
    sure: BTreeMap<AgentId, Option<f64>>,
}

/// The patterns among entries that are told together: whatever two agents or more have written of, most agents first.
pub fn patterns(insights: &[Insight]) -> Vec<Pattern> {
    let mut by_name: BTreeMap<String, Entries> = BTreeMap::new();
    for insight in insights {
        for name in names(insight) {
            let entries = by_name.entry(name).or_default();
            entries.count = entries.count.saturating_add(1);
            let sure = entries.sure.entry(insight.agent.clone()).or_default();
            *sure = [*sure, insight.confidence]
                .into_iter()
                .flatten()
                .reduce(f64::max);
        }
    }
    let several = by_name
        .into_iter()
        .filter(|(_, entries)| entries.sure.len() > 1);
    let mut found: Vec<Pattern> = several.map(|(about, one)| pattern(about, one)).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.agents.len()));
    found.truncate(PATTERNS_MAX);
    found
}

/// What an entry is about, each once: its topic and its tags, in the form in which they are compared.
fn names(insight: &Insight) -> BTreeSet<String> {
    let tags = insight.tags.iter().map(String::as_str);
    let names = tags.chain([insight.topic.as_str()]);
    let compared = names.map(|name| plain_form(&name.replace('_', " ")));
    compared.filter(|name| !name.is_empty()).collect()
}

fn pattern(about: String, entries: Entries) -> Pattern {
    let mut sure: Vec<f64> = entries.sure.values().copied().flatten().collect();
    sure.sort_by(|one, other| other.total_cmp(one));
    let mut sure = sure.into_iter();
    let confidence = sure.next().map(|surest| strengthened(surest, sure));
    Pattern {
        about,
        agents: entries.sure.into_keys().collect(),
        entries: entries.count,
        confidence,
    }
}
