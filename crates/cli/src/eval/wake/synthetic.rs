//! Agents made up from a seed, to measure how fast many of them are matched.

use concord_protocol::AgentId;
use concord_protocol::payload::{Card, Skill};

/// Skills of each agent, and examples of each skill.
pub(super) const SKILLS: usize = 5;
const EXAMPLES: usize = 3;
/// Words of an example and of a message: a short one.
const WORDS: usize = 8;
/// How many words the made-up language has.
const VOCABULARY: u64 = 4_000;

/// A language of made-up words, some of them frequent: the n-th is used about 1/n as often as the first, as in any language.
#[derive(Debug)]
pub(super) struct Source {
    state: u64,
}

impl Source {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// SplitMix64 (Steele, Lea and Flood 2014): all that is needed, and the same everywhere.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// At least 0, below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn word(&mut self) -> String {
        const CONSONANTS: [char; 8] = ['b', 'd', 'k', 'l', 'm', 'n', 'r', 't'];
        const VOWELS: [char; 5] = ['a', 'e', 'i', 'o', 'u'];
        let mut number = (VOCABULARY as f64).powf(self.unit()) as u64;
        let mut word = String::new();
        while word.is_empty() || number > 0 {
            let (consonant, rest) = (number % 8, number / 8);
            word.extend(CONSONANTS.get(consonant as usize));
            word.extend(VOWELS.get((rest % 5) as usize));
            number = rest / 5;
        }
        word
    }

    /// A short message.
    pub(super) fn message(&mut self) -> String {
        (0..WORDS).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// A vector in any direction.
    pub(super) fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| (self.unit() - 0.5) as f32).collect()
    }

    /// The card of the agent of this number.
    pub(super) fn card(&mut self, number: usize) -> Option<Card> {
        let mut skill = |number: usize| Skill {
            name: format!("skill {number} {}", self.word()),
            examples: (0..EXAMPLES).map(|_| self.message()).collect(),
            ..Skill::default()
        };
        let skills = (0..SKILLS).map(&mut skill).collect();
        AgentId::new(format!("agent-{number}")).ok().map(|agent| Card { skills, ..Card::new(agent) })
    }
}
