//! The one matcher of all agents' skills.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::AgentId;
use concord_wire::payload::{Card, Skill};
use serde::{Deserialize, Serialize};

use super::calibration::{Bonus, Calibration, Participation, sigmoid};
use super::index::Index;
use super::keyword::{self, Phrase};
use super::ngram::{self, Profile};
use super::vector;

/// The share of the cosine in an agent's score; the n-grams have the rest.
pub const COSINE_SHARE: f64 = 0.7;
/// As many n-grams as all skills of a card may have together, so that no card outgrows all others in memory.
pub const CARD_NGRAMS_MAX: usize = 16_384;
/// As many n-grams as one skill may have.
pub const SKILL_NGRAMS_MAX: usize = 2_048;
/// The largest share of the previous message in what is matched. A short message has it, a longer one less.
pub const PREVIOUS_SHARE: f32 = 0.4;
/// Up to how many words a message is short.
pub const SHORT_WORDS: usize = 6;

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Where the message has a vector.
    pub with_model: Calibration,
    /// Where there is none.
    pub without_model: Calibration,
    /// What taking part in the conversation adds.
    pub bonus: Bonus,
    /// Below this probability an agent does not even observe, unless it takes part in the conversation.
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
    /// What it says.
    pub text: &'a str,
    /// The vector of the text, where there is a model.
    pub vector: Option<&'a [f32]>,
    /// The message before it in the conversation.
    pub previous: Option<Previous<'a>>,
    /// Who takes part in the conversation.
    pub participations: &'a BTreeMap<AgentId, Participation>,
    /// Who hears it; everyone when absent.
    pub audience: Option<&'a BTreeSet<AgentId>>,
    /// Who says it, and therefore is nobody's rival.
    pub from: Option<&'a AgentId>,
}

/// The message before another in a conversation.
#[derive(Debug, Clone, Copy)]
pub struct Previous<'a> {
    /// What it says.
    pub text: &'a str,
    /// Its vector.
    pub vector: Option<&'a [f32]>,
}

/// How well an agent fits a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// Who.
    pub agent: &'a AgentId,
    /// Its skill that fits best; none when the card names none.
    pub skill: Option<&'a str>,
    /// The score of that skill, -0.7 to 1.
    pub score: f64,
    /// The cosine in it; none without a model.
    pub cosine: Option<f64>,
    /// The likeness of n-grams in it.
    pub ngrams: f64,
    /// The lead over the best other agent.
    pub lead: f64,
    /// The probability that it is concerned, with the bonus.
    pub probability: f64,
    /// What taking part adds to the log-odds.
    pub bonus: f64,
}

/// Texts of one skill from which its vector is made: its name with its description, and its examples.
///
/// The name is worth as much as an example: without it two in a hundred messages less find their agent.
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

/// The skills of all agents, to ask whom a message concerns. One card more or less changes it in place.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    parameters: Parameters,
    agents: BTreeMap<AgentId, Entry>,
    /// Names in lower case, for mentions that do not keep to the case.
    by_lower_case: BTreeMap<String, BTreeSet<AgentId>>,
    index: Index,
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

    /// What is set.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Enters an agent, in place of what was known of it.
    ///
    /// `vector_of` gives the vector of a skill: the [`super::centroid`] of the vectors of [`texts_of`] it. A skill without
    /// one is matched by its n-grams alone, and has the cosine 0 where others have vectors.
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

    /// Forgets an agent; whether it was known.
    pub fn remove(&mut self, agent: &AgentId) -> bool {
        let Some(entry) = self.agents.remove(agent) else {
            return false;
        };
        for skill in entry.skills {
            self.index.remove(skill.slot, &skill.profile);
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

    /// Everyone who is known, in the order of their ids.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// The agent of a name: written exactly so or, where that is nobody, the only one written so but for the case.
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

    /// How many n-grams are known.
    #[cfg(test)]
    pub(super) fn ngrams(&self) -> usize {
        self.index.ngrams()
    }

    /// The first of an agent's phrases that a text in lower case has.
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

    /// The agents whom a message concerns most, first; those equally likely in the order of their ids.
    pub fn rank<'a>(&'a self, query: &Query<'_>) -> Vec<Candidate<'a>> {
        let (vector, profile) = blended(query);
        let ngrams = self.index.scores(&profile, self.slots as usize);
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
        self.settle(
            &mut candidates,
            self.calibration(vector.is_some()),
            query.participations,
        );
        candidates.sort_by(|a, b| {
            b.probability
                .total_cmp(&a.probability)
                .then_with(|| a.agent.cmp(b.agent))
        });
        candidates
    }

    /// Leads, bonuses and probabilities.
    fn settle(
        &self,
        candidates: &mut [Candidate<'_>],
        calibration: &Calibration,
        participations: &BTreeMap<AgentId, Participation>,
    ) {
        let (best, second) = two_best(candidates);
        for candidate in candidates.iter_mut() {
            let other = match best {
                Some((agent, _)) if agent == candidate.agent => second,
                best => best.map(|(_, score)| score),
            };
            candidate.lead = calibration.lead_of(candidate.score, other);
            candidate.probability = sigmoid(calibration.log_odds(candidate.score, candidate.lead));
        }
        let is_sure = |candidate: &Candidate<'_>| candidate.probability >= calibration.threshold;
        let sure = candidates
            .iter()
            .filter(|candidate| is_sure(candidate))
            .count();
        for candidate in candidates.iter_mut() {
            // Who takes part yields to another agent that is sure without such help.
            let yields = sure > usize::from(is_sure(candidate));
            if let Some(participation) = participations.get(candidate.agent).filter(|_| !yields) {
                candidate.bonus = self.parameters.bonus.of(*participation);
                let log_odds = calibration.log_odds(candidate.score, candidate.lead);
                candidate.probability = sigmoid(log_odds + candidate.bonus);
            }
        }
    }
}

/// The agent with the highest score, and the highest score of any other.
fn two_best<'a>(candidates: &[Candidate<'a>]) -> (Option<(&'a AgentId, f64)>, Option<f64>) {
    let mut best: Option<(&AgentId, f64)> = None;
    let mut second: Option<f64> = None;
    for candidate in candidates {
        match best {
            Some((_, score)) if candidate.score <= score => {
                second = Some(second.map_or(candidate.score, |second| second.max(candidate.score)));
            }
            _ => {
                second = best.map(|(_, score)| score);
                best = Some((candidate.agent, candidate.score));
            }
        }
    }
    (best, second)
}

fn lower_case(agent: &AgentId) -> String {
    agent.as_str().to_ascii_lowercase()
}

/// The vector and the profile of a message, with a share of the previous one: "yes, at six" says too little.
fn blended(query: &Query<'_>) -> (Option<Vec<f32>>, Profile) {
    let profile = Profile::of([query.text], ngram::MESSAGE_NGRAMS_MAX);
    let Some(previous) = query.previous else {
        return (query.vector.and_then(vector::direction), profile);
    };
    let words = ngram::words(ngram::cut(query.text)).count();
    let share = PREVIOUS_SHARE * SHORT_WORDS as f32 / words.max(SHORT_WORDS) as f32;
    let vector = query.vector.and_then(|message| match previous.vector {
        Some(previous) => {
            vector::blended(message, previous, share).or_else(|| vector::direction(message))
        }
        None => vector::direction(message),
    });
    (
        vector,
        profile.blended(
            &Profile::of([previous.text], ngram::MESSAGE_NGRAMS_MAX),
            share,
        ),
    )
}

/// The skill of an agent that fits a message best, without what depends on the other agents.
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
