//! Whom a text is about, without a look at everybody.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;

use super::{Candidate, Matcher, best_skill};
use crate::activation::lead;
use crate::activation::ngram::{MESSAGE_NGRAMS_MAX, Profile};

impl Matcher {
    /// The candidates for a text by itself, without a vector, that are at least so probable (0.5 or more): those of [`Self::rank`], in
    /// the same order. Only agents are looked at that have an n-gram of the text, and a few of the others: all of these have the
    /// score 0, are never so probable, and only bound the lead of the best.
    pub fn about(&self, text: &str, probability_min: f64) -> Vec<Candidate<'_>> {
        debug_assert!(
            probability_min >= 0.5,
            "who has nothing in common with a text is looked for"
        );
        let profile = Profile::of([text], MESSAGE_NGRAMS_MAX);
        let (scores, common) = self.index.scores(&profile, self.slots as usize);
        let owners = common.iter().filter_map(|slot| self.owners.get(slot));
        let mut looked_at: BTreeSet<&AgentId> = owners.collect();
        let others = self.agents.keys().filter(|one| !looked_at.contains(one));
        let others: Vec<&AgentId> = others.take(lead::SHARING_MAX + 1).collect();
        looked_at.extend(others);
        let known = looked_at
            .into_iter()
            .filter_map(|agent| self.agents.get_key_value(agent));
        let mut candidates: Vec<Candidate<'_>> = known
            .map(|(agent, entry)| best_skill(agent, entry, None, &scores))
            .collect();
        let calibration = self.calibration(false);
        let bonus = &self.parameters.bonus;
        lead::settle(&mut candidates, calibration, bonus, &BTreeMap::new());
        candidates.retain(|candidate| candidate.probability >= probability_min);
        candidates.sort_by(|a, b| {
            b.probability
                .total_cmp(&a.probability)
                .then_with(|| a.agent.cmp(b.agent))
        });
        candidates
    }
}
