//! From a score to a probability.

use serde::{Deserialize, Serialize};

/// A logistic regression on an agent's score and on its lead over the best other agent: p = 1 / (1
/// + exp(-(score x h + lead x gap + bias))).
///
/// A score alone says little, because the similarity of two texts depends on their subject. A large
/// lead over every other agent says a lot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Coefficient of the score.
    pub score: f64,
    /// Coefficient of the lead.
    pub lead: f64,
    /// The constant term.
    pub bias: f64,
    /// The least score that the lead is measured from: the score that any text has with any other.
    /// Without it, an agent without rivals would lead by its whole score.
    pub background: f64,
    /// The probability from which on an agent wakes.
    pub threshold: f64,
}

impl Calibration {
    /// For 0.7 x cosine + 0.3 x n-grams, with all-MiniLM-L6-v2. Fitted to 3,000 requests of the
    /// training file of CLINC150 that were not used as examples, and to its 100 requests that are
    /// for nobody, with three examples for each skill: `concord-lab eval wake --fit`.
    pub const WITH_MODEL: Self = Self {
        score: 4.93,
        lead: 20.27,
        bias: -2.29,
        background: 0.2,
        threshold: 0.7,
    };

    /// For n-grams alone, fitted to the same requests.
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

    /// The lead of a score over the best score of another agent.
    pub fn lead_of(&self, score: f64, best_other: Option<f64>) -> f64 {
        score - best_other.map_or(self.background, |other| other.max(self.background))
    }
}

/// The logistic function.
pub fn sigmoid(log_odds: f64) -> f64 {
    debug_assert!(!log_odds.is_nan(), "log-odds are a number");
    1.0 / (1.0 + (-log_odds).exp())
}

/// The part that an agent has taken in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Participation {
    /// How many messages others have sent in the conversation since the agent's last message.
    pub silent_for: u32,
}

/// How much taking part in a conversation adds to the log-odds of a follow-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bonus {
    /// The addition for the message right after the agent's own.
    pub log_odds: f64,
    /// After how many messages of others half of it is left.
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
    /// The addition that is left for this participation.
    pub fn of(&self, participation: Participation) -> f64 {
        if self.half_life > 0.0 {
            self.log_odds * (-f64::from(participation.silent_for) / self.half_life).exp2()
        } else {
            0.0
        }
    }
}
