//! The matcher of all agents' skills.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;
use concord_wire::payload::{Card, Skill};
use serde::{Deserialize, Serialize};

use super::calibration::{Bonus, Calibration, Participation};
use super::index::Index;
use super::keyword::{self, Phrase};
use super::lead;
use super::ngram::{self, Profile};
use super::parts::PART_THRESHOLD;
use super::vector;

mod about;
mod context;

/// The share of the cosine in an agent's score; the n-grams have the rest.
pub const COSINE_SHARE: f64 = 0.7;
/// The most n-grams of all skills of one card together, so that no card takes more memory than
/// others.
pub const CARD_NGRAMS_MAX: usize = 16_384;
/// The most n-grams of one skill.
pub const SKILL_NGRAMS_MAX: usize = 2_048;
/// The largest share of the previous message in the text that is matched. A short message gets it,
/// a longer one less.
pub const PREVIOUS_SHARE: f32 = 0.4;
/// How many words a short message has at most.
pub const SHORT_WORDS: usize = 6;

/// The parameters of the matcher.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The calibration for messages with a vector.
    pub with_model: Calibration,
    /// The calibration for messages without a vector.
    pub without_model: Calibration,
    /// The addition for taking part in the conversation.
    pub bonus: Bonus,
    /// The probability below which an agent does not even observe, unless it takes part in the
    /// conversation.
    pub observe: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            with_model: Calibration::WITH_MODEL,
            without_model: Calibration::WITHOUT_MODEL,
            bonus: Bonus::default(),
            observe: 0.01,
        }
    }
}

/// A message to match.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The content of the message.
    pub text: &'a str,
    /// The vector of the content, where there is a model.
    pub vector: Option<&'a [f32]>,
    /// The [parts](super::parts()) of the content, where it has several.
    pub parts: &'a [Part<'a>],
    /// The message before this one in the conversation.
    pub previous: Option<Previous<'a>>,
    /// The agents that have taken part in the conversation.
    pub participations: &'a BTreeMap<AgentId, Participation>,
    /// The agents that can read it; `None` for all.
    pub audience: Option<&'a BTreeSet<AgentId>>,
    /// The sender, which is no rival of other agents.
    pub from: Option<&'a AgentId>,
}

/// A text with its vector, where there is a model.
#[derive(Debug, Clone, Copy)]
pub struct Embedded<'a> {
    /// The text.
    pub text: &'a str,
    /// Its vector, where there is a model.
    pub vector: Option<&'a [f32]>,
}

/// The message before another one in a conversation.
pub type Previous<'a> = Embedded<'a>;
/// One of the parts of a message.
pub type Part<'a> = Embedded<'a>;

/// How well an agent matches a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// Its skill that matches best; `None` when the card names no skill.
    pub skill: Option<&'a str>,
    /// The score of that skill, -0.7 to 1.
    pub score: f64,
    /// The cosine in that score; `None` without a model.
    pub cosine: Option<f64>,
    /// The similarity of n-grams in that score.
    pub ngrams: f64,
    /// The lead over the best other agent.
    pub lead: f64,
    /// The probability that the message concerns the agent, with the addition for taking part.
    pub probability: f64,
    /// The addition to the log-odds for taking part.
    pub bonus: f64,
}

/// The texts of a skill from which its vector is made: its name with its description, and its
/// examples.
///
/// The name is worth as much as an example: without it, two in a hundred messages fewer find their
/// agent.
pub fn texts_of(skill: &Skill) -> Vec<String> {
    let name = ngram::words(&skill.name).collect::<Vec<_>>().join(" ");
    let whole = match (name.is_empty(), skill.description.trim()) {
        (_, "") => name,
        (true, description) => description.to_owned(),
        (false, description) => format!("{name}: {description}"),
    };
    std::iter::once(&whole)
        .chain(&skill.examples)
        .filter(|text| !text.trim().is_empty())
        .cloned()
        .collect()
}

/// The skills of all agents, and the question which of them a message concerns. Adding or removing
/// a card changes it in place.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    parameters: Parameters,
    agents: BTreeMap<AgentId, Entry>,
    /// Agents by their name in lower case, for mentions in another case.
    by_lower_case: BTreeMap<String, BTreeSet<AgentId>>,
    index: Index,
    /// Whose skill has a slot.
    owners: BTreeMap<u32, AgentId>,
    free: Vec<u32>,
    slots: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    skills: Vec<Known>,
    phrases: Vec<Phrase>,
}

#[derive(Debug, Clone)]
struct Known {
    name: String,
    slot: u32,
    profile: Profile,
    centroid: Option<Vec<f32>>,
}

impl Matcher {
    /// A matcher without agents.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            ..Self::default()
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Adds an agent, in place of its earlier card.
    ///
    /// `vector_of` gives the vector of a skill: the [`super::centroid`] of the vectors of its
    /// [`texts_of`]. A skill without a vector is matched by its n-grams alone, with the cosine 0.
    pub fn insert(&mut self, card: &Card, mut vector_of: impl FnMut(&Skill) -> Option<Vec<f32>>) {
        self.remove(&card.agent_id);
        let ngrams_max = (CARD_NGRAMS_MAX / card.skills.len().max(1)).min(SKILL_NGRAMS_MAX);
        let mut skills = Vec::with_capacity(card.skills.len());
        for skill in &card.skills {
            let texts = [skill.name.as_str()]
                .into_iter()
                .chain(skill.examples.iter().map(String::as_str));
            let texts = texts
                .chain(skill.tags.iter().map(String::as_str))
                .chain([skill.description.as_str()]);
            let profile = Profile::of(texts, ngrams_max);
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            self.index.insert(slot, &profile);
            self.owners.insert(slot, card.agent_id.clone());
            let centroid = vector_of(skill).as_deref().and_then(vector::direction);
            skills.push(Known {
                name: skill.name.clone(),
                slot,
                profile,
                centroid,
            });
        }
        self.by_lower_case
            .entry(lower_case(&card.agent_id))
            .or_default()
            .insert(card.agent_id.clone());
        self.agents.insert(
            card.agent_id.clone(),
            Entry {
                skills,
                phrases: card
                    .triggers
                    .iter()
                    .map(|phrase| Phrase::new(phrase))
                    .collect(),
            },
        );
    }

    /// Removes an agent. Returns whether it was known.
    pub fn remove(&mut self, agent: &AgentId) -> bool {
        let Some(entry) = self.agents.remove(agent) else {
            return false;
        };
        for skill in entry.skills {
            self.index.remove(skill.slot, &skill.profile);
            self.owners.remove(&skill.slot);
            self.free.push(skill.slot);
        }
        let name = lower_case(agent);
        if let Some(same) = self.by_lower_case.get_mut(&name) {
            same.remove(agent);
            if same.is_empty() {
                self.by_lower_case.remove(&name);
            }
        }
        true
    }

    /// All agents, in the order of their ids.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// The agent with a name: the one written exactly so, else the only one written so in another
    /// case.
    pub fn agent_named(&self, name: &str) -> Option<&AgentId> {
        let exactly = AgentId::new(name)
            .ok()
            .and_then(|id| self.agents.get_key_value(&id));
        exactly.map(|(id, _)| id).or_else(|| {
            match self.by_lower_case.get(&name.to_ascii_lowercase()) {
                Some(same) if same.len() == 1 => same.first(),
                _ => None,
            }
        })
    }

    /// The number of different n-grams.
    #[cfg(test)]
    pub(super) fn ngrams(&self) -> usize {
        self.index.ngrams()
    }

    /// The first of an agent's phrases that a text in lower case contains.
    pub(super) fn phrase_in(&self, agent: &AgentId, lower: &str) -> Option<&str> {
        let phrases = self
            .agents
            .get(agent)
            .map_or(&[][..], |entry| entry.phrases.as_slice());
        phrases
            .iter()
            .find(|phrase| keyword::says(lower, &phrase.lower))
            .map(|phrase| phrase.written.as_str())
    }

    /// The calibration that applies to a message with or without a vector.
    pub fn calibration(&self, with_vector: bool) -> &Calibration {
        if with_vector {
            &self.parameters.with_model
        } else {
            &self.parameters.without_model
        }
    }

    /// The candidates, the most probable first; those of equal probability in the order of their
    /// ids.
    ///
    /// An agent is as probable as for the part of the message that concerns it most, or for the
    /// whole. So every agent that a part concerns can wake, and none has to lead over an agent that
    /// another part concerns. So is every agent that the message by itself concerns more than with the message before it, which may be about
    /// another matter: what was said before only adds.
    pub fn rank<'a>(&'a self, query: &Query<'_>) -> Vec<Candidate<'a>> {
        let mut candidates = self.candidates(query, query.participations);
        if query.previous.is_some() {
            let alone = Query {
                previous: None,
                ..*query
            };
            let by_itself = self.candidates(&alone, query.participations);
            for (candidate, by_itself) in candidates.iter_mut().zip(by_itself) {
                if by_itself.probability > candidate.probability {
                    *candidate = by_itself;
                }
            }
        }
        for part in query.parts {
            let part = Query {
                text: part.text,
                vector: part.vector,
                previous: None,
                ..*query
            };
            // Whoever takes part has its addition for the whole.
            let of_part = self.candidates(&part, &BTreeMap::new());
            for (candidate, of_part) in candidates.iter_mut().zip(of_part) {
                if of_part.probability > candidate.probability.max(PART_THRESHOLD) {
                    *candidate = of_part;
                }
            }
        }
        debug_assert!(
            candidates
                .iter()
                .all(|candidate| (0.0..=1.0).contains(&candidate.probability)),
            "a probability is 0 to 1"
        );
        candidates.sort_by(|a, b| {
            b.probability
                .total_cmp(&a.probability)
                .then_with(|| a.agent.cmp(b.agent))
        });
        candidates
    }

    /// The candidates for one text, in the order of their ids.
    fn candidates<'a>(
        &'a self,
        query: &Query<'_>,
        participations: &BTreeMap<AgentId, Participation>,
    ) -> Vec<Candidate<'a>> {
        let (vector, profile) = context::blended(query);
        let (ngrams, _) = self.index.scores(&profile, self.slots as usize);
        let is_rival = |agent: &AgentId| {
            query.from != Some(agent)
                && query
                    .audience
                    .is_none_or(|audience| audience.contains(agent))
        };
        let scored = self.agents.iter().filter(|(agent, _)| is_rival(agent));
        let mut candidates: Vec<Candidate<'a>> = scored
            .map(|(agent, entry)| best_skill(agent, entry, vector.as_deref(), &ngrams))
            .collect();
        let calibration = self.calibration(vector.is_some());
        let bonus = &self.parameters.bonus;
        lead::settle(&mut candidates, calibration, bonus, participations);
        candidates
    }
}

fn lower_case(agent: &AgentId) -> String {
    agent.as_str().to_ascii_lowercase()
}

/// The skill of an agent that matches a message best, without what depends on other agents.
fn best_skill<'a>(
    agent: &'a AgentId,
    entry: &'a Entry,
    vector: Option<&[f32]>,
    ngrams: &[f32],
) -> Candidate<'a> {
    let unmatched = Candidate {
        agent,
        skill: None,
        score: 0.0,
        cosine: vector.map(|_| 0.0),
        ngrams: 0.0,
        lead: 0.0,
        probability: 0.0,
        bonus: 0.0,
    };
    let mut best: Option<Candidate<'a>> = None;
    for skill in &entry.skills {
        let ngrams = ngrams
            .get(skill.slot as usize)
            .copied()
            .map_or(0.0, f64::from);
        let cosine = vector.map(|vector| {
            skill
                .centroid
                .as_deref()
                .map_or(0.0, |c| f64::from(vector::cosine(vector, c)))
        });
        let score = cosine.map_or(ngrams, |cosine| {
            COSINE_SHARE * cosine + (1.0 - COSINE_SHARE) * ngrams
        });
        if best.as_ref().is_none_or(|best| score > best.score) {
            best = Some(Candidate {
                skill: Some(&skill.name),
                score,
                cosine,
                ngrams,
                ..unmatched
            });
        }
    }
    best.unwrap_or(unmatched)
}
