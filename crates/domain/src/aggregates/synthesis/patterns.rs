//! What entries of several agents have in common: they are about the same, by topic or tag.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;
use concord_wire::payload::{Insight, PATTERNS_MAX, Pattern};
use concord_wire::policy::plain_form;

use crate::aggregates::case::strengthened;

/// The entries about one thing: how many, how sure each agent is, and whether one of them is new.
#[derive(Default)]
struct Entries {
    count: u32,
    has_new: bool,
    sure: BTreeMap<AgentId, Option<f64>>,
}

/// The patterns among entries that are told together: whatever two agents or more have written of, most agents first.
pub fn patterns(insights: &[Insight]) -> Vec<Pattern> {
    patterns_with(insights, &[], 0)
}

/// The same together with entries that were told at once, each alone. Where none of a pattern is told now, one must have been written after the
/// snapshot `after`: what was known at the checkpoint before is not told again.
pub(super) fn patterns_with(told: &[Insight], shared: &[Insight], after: u64) -> Vec<Pattern> {
    let mut by_name: BTreeMap<String, Entries> = BTreeMap::new();
    let told = told.iter().map(|insight| (insight, true));
    let shared = shared
        .iter()
        .map(|insight| (insight, insight.since.0 > after));
    for (insight, is_new) in told.chain(shared) {
        for name in names(insight) {
            let entries = by_name.entry(name).or_default();
            entries.count = entries.count.saturating_add(1);
            entries.has_new |= is_new;
            let sure = entries.sure.entry(insight.agent.clone()).or_default();
            *sure = [*sure, insight.confidence]
                .into_iter()
                .flatten()
                .reduce(f64::max);
        }
    }
    let several = by_name
        .into_iter()
        .filter(|(_, entries)| entries.has_new && entries.sure.len() > 1);
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
