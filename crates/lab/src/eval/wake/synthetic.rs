//! Agents made up from a seed, to measure how fast many of them are matched.

use concord_wire::AgentId;
use concord_wire::payload::{Card, Skill};

/// Skills of each agent, and examples of each skill.
pub(super) const SKILLS: usize = 5;
const EXAMPLES: usize = 3;
/// Words of an example and of a message: a short one.
const WORDS: usize = 8;
/// What messages are made of: words that a model knows as one token each, as it does most words of a real message.
const VOCABULARY: &str = "\
account address agent airport alarm amount answer apartment april arrive balance bank battery before bill book break bring \
build business buy calendar call camera cancel car card change charge check city clean close coffee color company computer \
connect contract cook cost country credit customer daily date deadline deliver deposit design direction doctor document \
door double driver early east email employee empty engine error evening event exchange expense family file find finish flight \
floor food forecast friend full garden gas gift give green group guest half health help holiday home hospital hotel hour house \
idea insurance island issue join journey june keep key kitchen language late learn leave letter license light list loan \
local lock long lunch machine mail manager map market meal measure meeting message minute money month morning movie music name \
need network night north note notice number offer office open order owner paper park party password pay people phone picture \
place plan play point police power present price print problem product project question quick rain rate read receipt recipe \
record rent repair report request reserve restaurant return review road room route safe salary sale save schedule school \
score search season seat security sell send service share ship shop short show sign size sleep snow song sound south speed \
spend staff start state station stock stop store storm street strong student summer supply support system table tax teach \
team temperature test ticket time tire today tomorrow tool total tour town track traffic train transfer travel tree trip truck \
update user vacation value view visit voice wait walk wallet warm warning watch water weather week weight west window winter \
word work world write year";

/// Texts without a meaning. Some words are frequent: the n-th is used about 1/n as often as the first, as in any language.
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

    /// At least 0, below `end`; 0 where `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// At least 0, below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn word(&mut self) -> &'static str {
        let words = VOCABULARY.split_ascii_whitespace();
        // Words stand in the order of the alphabet; a stride that shares no factor with their number mixes them.
        let count = words.clone().count();
        let rank = (count as f64).powf(self.unit()) as usize;
        words.clone().nth(rank * 7 % count).unwrap_or("word")
    }

    /// A short message.
    pub(super) fn message(&mut self) -> String {
        (0..WORDS)
            .map(|_| self.word())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A vector in any direction.
    pub(super) fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions)
            .map(|_| (self.unit() - 0.5) as f32)
            .collect()
    }

    /// The card of the agent of this number.
    pub(super) fn card(&mut self, number: usize) -> Option<Card> {
        let mut skill = |number: usize| Skill {
            name: format!("skill {number} {}", self.word()),
            examples: (0..EXAMPLES).map(|_| self.message()).collect(),
            ..Skill::default()
        };
        let skills = (0..SKILLS).map(&mut skill).collect();
        AgentId::new(format!("agent-{number}"))
            .ok()
            .map(|agent| Card {
                skills,
                ..Card::new(agent)
            })
    }
}
