//! Which agents can do something: an index of the cards by skill and domain, so that nobody looks at every card for every task.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use concord_domain::activation::{Matcher, Parameters};
use concord_wire::AgentId;
use concord_wire::payload::{Card, Criteria};

/// The probability from which on a text is about what an agent can do: from which on it would be woken by it.
const TEXT_PROBABILITY: f64 = 0.7;

/// The cards by what they say that an agent can do.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentIndex {
    all: BTreeSet<AgentId>,
    by_skill: BTreeMap<String, BTreeSet<AgentId>>,
    by_domain: BTreeMap<String, BTreeSet<AgentId>>,
    matcher: Matcher,
}

impl AgentIndex {
    pub(crate) fn new() -> Self {
        Self {
            matcher: Matcher::new(Parameters::default()),
            ..Self::default()
        }
    }

    /// Replaces what is known of an agent: `before` by `now`.
    pub(crate) fn replace(&mut self, agent: &AgentId, before: Option<&Card>, now: Option<&Card>) {
        if before == now {
            return;
        }
        for card in before.into_iter() {
            let skills = card.skills.iter().map(|skill| &skill.name);
            skills.for_each(|name| take_out(&mut self.by_skill, name, agent));
            let domains = card.domains.iter();
            domains.for_each(|name| take_out(&mut self.by_domain, name, agent));
        }
        let Some(card) = now else {
            self.all.remove(agent);
            self.matcher.remove(agent);
            return;
        };
        let put = |index: &mut BTreeMap<String, BTreeSet<AgentId>>, name: &str| {
            let named = index.entry(key(name)).or_default();
            named.insert(agent.clone());
        };
        let skills = card.skills.iter().map(|skill| &skill.name);
        skills.for_each(|name| put(&mut self.by_skill, name));
        let domains = card.domains.iter();
        domains.for_each(|name| put(&mut self.by_domain, name));
        self.all.insert(agent.clone());
        self.matcher.insert(card, |_| None);
    }

    /// At most `most` agents that fit and that `fits` lets through, each with how well it fits, 0 to 1: in the order of their ids
    /// from the one after `after` on and around, those found by a text alone at the end.
    pub(crate) fn find(
        &self,
        criteria: &Criteria,
        after: Option<&AgentId>,
        most: usize,
        fits: impl Fn(&AgentId) -> bool,
    ) -> Vec<(AgentId, f64)> {
        let has_names = !criteria.agents.is_empty();
        let mut found: Vec<(AgentId, f64)> = if criteria.is_everybody() {
            around(&self.all, after, most, &fits)
        } else if has_names {
            let named: BTreeSet<AgentId> = criteria.agents.iter().cloned().collect();
            let known = |agent: &AgentId| self.all.contains(agent) && fits(agent);
            around(&named, after, most, known)
        } else {
            let skills = criteria.skills.iter();
            let skills = skills.filter_map(|name| self.by_skill.get(&key(name)));
            let domains = criteria.domains.iter();
            let domains = domains.filter_map(|name| self.by_domain.get(&key(name)));
            let sets: Vec<&BTreeSet<AgentId>> = skills.chain(domains).collect();
            match sets.as_slice() {
                [one] => around(one, after, most, &fits),
                several => {
                    let together = several.iter().flat_map(|set| set.iter().cloned()).collect();
                    around(&together, after, most, &fits)
                }
            }
        };
        if let Some(text) = criteria.text.as_deref().filter(|_| !has_names) {
            self.by_text(text, most, fits, &mut found);
        }
        found
    }

    fn by_text(
        &self,
        text: &str,
        most: usize,
        fits: impl Fn(&AgentId) -> bool,
        found: &mut Vec<(AgentId, f64)>,
    ) {
        let by_names: BTreeSet<AgentId> = found.iter().map(|(agent, _)| agent.clone()).collect();
        let left = most.saturating_sub(found.len());
        let about = self.matcher.about(text, TEXT_PROBABILITY).into_iter();
        let more = about.filter(|one| !by_names.contains(one.agent) && fits(one.agent));
        found.extend(
            more.take(left)
                .map(|one| (one.agent.clone(), one.probability)),
        );
    }
}

/// A name in the form in which names are compared.
fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

fn take_out(index: &mut BTreeMap<String, BTreeSet<AgentId>>, name: &str, agent: &AgentId) {
    let key = key(name);
    if let Some(named) = index.get_mut(&key) {
        named.remove(agent);
        if named.is_empty() {
            index.remove(&key);
        }
    }
}

/// The first of a set after `after` and around that fit.
fn around(
    set: &BTreeSet<AgentId>,
    after: Option<&AgentId>,
    most: usize,
    fits: impl Fn(&AgentId) -> bool,
) -> Vec<(AgentId, f64)> {
    let (later, earlier) = match after {
        None => ((Bound::Unbounded, Bound::Unbounded), None),
        Some(after) => (
            (Bound::Excluded(after), Bound::Unbounded),
            Some((Bound::Unbounded, Bound::Included(after))),
        ),
    };
    let later = set.range::<AgentId, _>(later);
    let earlier = earlier.map(|earlier| set.range::<AgentId, _>(earlier));
    let all = later.chain(earlier.into_iter().flatten());
    let fitting = all.filter(|agent| fits(agent)).take(most);
    fitting.map(|agent| (agent.clone(), 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::Skill;
    use serde_json::json;

    use super::*;

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    fn card(name: &str, skill: &str, domain: &str) -> Card {
        let skill: Skill = serde_json::from_value(json!({
            "name": skill, "description": format!("{skill} of texts"), "examples": [format!("please do the {skill}")],
        }))
        .unwrap();
        Card {
            skills: vec![skill],
            domains: vec![domain.to_owned()],
            ..Card::new(agent(name))
        }
    }

    fn names(found: Vec<(AgentId, f64)>) -> Vec<String> {
        found.iter().map(|(agent, _)| agent.to_string()).collect()
    }

    #[test]
    fn agents_are_found_by_skill_domain_name_and_text_and_not_when_they_are_gone() {
        let mut index = AgentIndex::new();
        let cards = [
            card("ann", "Translation", "law"),
            card("ben", "pricing", "Law"),
            card("cyd", "translation", "tax"),
        ];
        for card in &cards {
            index.replace(&card.agent_id, None, Some(card));
        }
        let find = |index: &AgentIndex, criteria: serde_json::Value, after: Option<&str>| {
            let criteria: Criteria = serde_json::from_value(criteria).unwrap();
            let after = after.map(agent);
            names(index.find(&criteria, after.as_ref(), 9, |_| true))
        };
        for (criteria, after, expected) in [
            (json!({}), None, &["ann", "ben", "cyd"][..]),
            (json!({}), Some("ann"), &["ben", "cyd", "ann"]),
            (
                json!({ "skills": ["TRANSLATION"] }),
                Some("bob"),
                &["cyd", "ann"],
            ),
            (json!({ "domains": ["law"] }), None, &["ann", "ben"]),
            (
                json!({ "skills": ["pricing"], "domains": ["tax"] }),
                None,
                &["ben", "cyd"],
            ),
            (json!({ "agents": ["cyd", "zoe"] }), None, &["cyd"]),
            (json!({ "skills": ["cooking"] }), None, &[]),
            (json!({ "text": "please do the pricing" }), None, &["ben"]),
        ] {
            assert_eq!(
                find(&index, criteria.clone(), after),
                expected,
                "{criteria}"
            );
        }
        index.replace(&agent("ann"), Some(&cards[0]), None);
        let moved = Card {
            domains: vec!["tax".into()],
            ..cards[1].clone()
        };
        index.replace(&agent("ben"), Some(&cards[1]), Some(&moved));
        assert_eq!(
            find(&index, json!({ "skills": ["translation"] }), None),
            ["cyd"]
        );
        assert_eq!(
            find(&index, json!({ "domains": ["law"] }), None),
            Vec::<String>::new()
        );
    }
}
