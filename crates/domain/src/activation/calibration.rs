//! From a score to a probability.

use serde::{Deserialize, Serialize};

/// A logistic regression on an agent's score and on its lead over the best other agent:
/// p = 1 / (1 + exp(-(score x h + lead x gap + bias))).
///
/// A score alone says little, since how alike two texts seem depends on what they are about; that one agent fits much
/// better than every other says a lot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Coefficient of the score.
    pub score: f64,
    /// Coefficient of the lead.
    pub lead: f64,
    /// The constant.
    pub bias: f64,
    /// The score that an agent is taken to lead over when no other agent has as much: what any text has with any other.
    /// Without it a lone agent would lead over nobody by everything.
    pub background: f64,
    /// From which probability on an agent wakes.
    pub threshold: f64,
}

impl Calibration {
    /// For 0.7 x cosine + 0.3 x n-grams, with all-MiniLM-L6-v2. Fitted to 3,000 requests of the training file of CLINC150 that
    /// were no examples, and its 100 for nobody, with three examples a skill: `concord eval wake --fit`.
    pub const WITH_MODEL: Self = Self {
        score: 4.93,
        lead: 20.27,
        bias: -2.29,
        background: 0.2,
        threshold: 0.7,
    };

    /// For n-grams alone, fitted to the same.
    pub const WITHOUT_MODEL: Self = Self {
        score: 3.36,
        lead: 20.68,
        bias: -1.30,
        background: 0.167,
        threshold: 0.7,
    };

    /// The log-odds of an agent with this score and this lead.
    pub fn log_odds(&self, score: f64, lead: f64) -> f64 {
        self.score * score + self.lead * lead + self.bias
    }

    /// By how much a score leads over the best other agent's.
    pub fn lead_of(&self, score: f64, best_other: Option<f64>) -> f64 {
        score - best_other.map_or(self.background, |other| other.max(self.background))
    }
}

/// The logistic function.
pub fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// That an agent has spoken in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Participation {
    /// How many messages others have said in the conversation since the agent spoke last.
    pub silent_for: u32,
}

/// What taking part in a conversation adds to the log-odds of a follow-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bonus {
    /// For the next message after the agent's own.
    pub log_odds: f64,
    /// After how many messages of silence half of it is left.
    pub half_life: f64,
}

impl Default for Bonus {
    fn default() -> Self {
        Self {
            log_odds: 3.8,
            half_life: 4.0,
        }
    }
}

impl Bonus {
    /// What is left of the bonus.
    pub fn of(&self, participation: Participation) -> f64 {
        if self.half_life > 0.0 {
            self.log_odds * (-f64::from(participation.silent_for) / self.half_life).exp2()
        } else {
            0.0
        }
    }
}
