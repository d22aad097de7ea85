//! What a strategy looks at.

use std::collections::BTreeMap;

use concord_events::TaskCandidate;
use concord_wire::AgentId;
use concord_wire::payload::OpenTask;
use serde_json::Value;

use super::{Part, Stage};

/// How far a task is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// What was asked for.
    pub terms: &'a OpenTask,
    /// Who can be asked, in order.
    pub candidates: &'a [TaskCandidate],
    /// Everybody who was asked.
    pub parts: &'a BTreeMap<AgentId, Part>,
    /// Whether bids are waited for.
    pub bids_open: bool,
}

impl<'a> Progress<'a> {
    /// The results, by agent.
    pub fn results(&self) -> impl Iterator<Item = (&'a AgentId, &'a Value)> + use<'a> {
        let done = self.parts.iter();
        let done = done.filter(|(_, part)| part.stage == Stage::Done);
        done.filter_map(|(agent, part)| Some((agent, part.result.as_ref()?)))
    }

    /// The results, and what others have given before they stopped, by agent.
    pub fn results_and_parts(&self) -> impl Iterator<Item = (&'a AgentId, &'a Value)> + use<'a> {
        let all = self.parts.iter();
        all.filter_map(|(agent, part)| Some((agent, part.result.as_ref()?)))
    }

    /// Whether somebody has the task, or gets it when there is room.
    pub fn is_active(&self) -> bool {
        self.parts.values().any(Part::is_active)
    }

    /// The first who can be asked and was not.
    pub fn untried(&self) -> Option<&'a AgentId> {
        let mut candidates = self.candidates.iter();
        let untried = candidates.find(|one| !self.parts.contains_key(&one.agent));
        untried.map(|one| &one.agent)
    }

    /// How many must agree, vote or succeed: as its opener says, else more than half of `count`.
    pub fn quorum(&self, count: usize) -> usize {
        let stated = self.terms.quorum.and_then(|one| usize::try_from(one).ok());
        stated.unwrap_or(count / 2 + 1)
    }

    /// Each agent with how it ended and why, in a line: for the report of a failure.
    pub fn reasons(&self) -> String {
        let reason = |(agent, part): (&AgentId, &Part)| match part.why.as_str() {
            "" => format!("{agent}: {:?}", part.stage).to_lowercase(),
            why => {
                // The sentence goes on behind it.
                let why: String = why.trim_end_matches('.').chars().take(120).collect();
                format!("{agent}: {why}")
            }
        };
        let reasons: Vec<String> = self.parts.iter().take(8).map(reason).collect();
        reasons.join("; ")
    }
}
