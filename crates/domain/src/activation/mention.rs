//! Mentions of agents in a text.

use concord_wire::AgentId;

use super::ngram::cut;

/// How many agents one message may wake by mentioning them, and how many by preferring them.
pub const NAMED_MAX: usize = 8;

/// The agents that a message names, in order and each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named<'a> {
    /// The agents that it may wake.
    pub within: Vec<&'a AgentId>,
    /// The agents after the first [`NAMED_MAX`]. Naming them does not wake them.
    pub beyond: Vec<&'a AgentId>,
}

impl<'a> Named<'a> {
    /// Adds an agent that is named.
    pub fn push(&mut self, agent: &'a AgentId) {
        if self.within.contains(&agent) || self.beyond.contains(&agent) {
            return;
        }
        if self.within.len() < NAMED_MAX {
            self.within.push(agent)
        } else {
            self.beyond.push(agent)
        }
    }
}

impl<'a> FromIterator<&'a AgentId> for Named<'a> {
    fn from_iter<I: IntoIterator<Item = &'a AgentId>>(agents: I) -> Self {
        let mut named = Self::default();
        agents.into_iter().for_each(|agent| named.push(agent));
        named
    }
}

/// The agents mentioned in a text as `@agent_id`.
///
/// `known` gives the agent with a name. A name that no agent has does not count, so that
/// `@Override` in code is no mention. An at-sign inside an e-mail address, a host name, a path or a
/// package name is no mention. Only the part of the text that is matched is read.
pub fn mentions<'a>(text: &str, known: impl Fn(&str) -> Option<&'a AgentId>) -> Named<'a> {
    let text = cut(text);
    let candidate = |(at, _): (usize, &str)| {
        let (before, rest) = (text.get(..at)?, text.get(at + 1..)?);
        if before
            .bytes()
            .next_back()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b"._%+-@/\\=".contains(&b))
        {
            return None;
        }
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        if continues(after) {
            return None;
        }
        // "@ann-" and "_@ann_" are ann with punctuation, unless an agent has that name.
        known(name).or_else(|| known(name.trim_end_matches(['_', '-'])))
    };
    text.match_indices('@').filter_map(candidate).collect()
}

/// Whether the text after a name makes it part of a host name, a path or a package name.
fn continues(after: &str) -> bool {
    let mut characters = after.chars();
    matches!(characters.next(), Some('.' | '/' | '@' | '\\' | '='))
        && characters.next().is_some_and(|c| c.is_ascii_alphanumeric())
}
