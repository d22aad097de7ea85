//! Activation: which agents a message wakes.
//!
//! Calling an agent costs time and money, and is of no use where the message does not concern it.
//! So for every message and agent it is decided whether the agent wakes (it is given the message to
//! act on), observes (it is given the message as context when it wakes next) or ignores the
//! message. [`decide()`] is the decision tree of the specification; [`decide_all`] applies it to
//! all agents at once.
//!
//! Where a message is for any agent that can help, a [`Matcher`] estimates for each agent the
//! probability that the message concerns it. It holds the skills of all agents, because a score
//! means little without its lead over the score of the next agent:
//!
//! - h = 0.7 x cosine + 0.3 x n-grams, for the best skill of an agent. The cosine is that of the
//!   message's vector and the centroid of the vectors of the skill's name and examples; the caller
//!   computes the vectors. The n-grams have 3 to 5 characters, weighted by their rarity among the skills.
//!   Without a model, h is the similarity of n-grams alone.
//! - gap = h - the best h of another agent. p = sigmoid(a h + b gap + c), and every agent wakes from
//!   p = 0.7 on. A message may concern several: its parts are matched by themselves as well, and
//!   agents that are nearly level and far before all others share their lead. The coefficients are data ([`Calibration`]), one set with a model and one without.
//! - An agent that takes part in the conversation has a [`Bonus`]. It is halved with every few messages
//!   of others, and yields to an agent that is certain without it. A short message is matched together
//!   with a share of the message before it.
//!
//! All of this is bounded: the first 4 KiB of a text, a number of n-grams for each card, a number
//! of skills for the frequent n-grams of a message. A message wakes at most eight agents by
//! mentioning them and eight by preferring them.

mod calibration;
mod calibration_fit;
pub mod conversation;
mod decide;
mod decision;
mod index;
mod keyword;
mod lead;
mod matcher;
mod mention;
mod ngram;
mod objection;
mod parts;
mod reply_chain;
mod vector;
mod windows;

pub use calibration::{Bonus, Calibration, Participation, sigmoid};
pub use calibration_fit::Sample;
pub use decide::{Conversation, Decisions, Message, Naming, View, decide, decide_all};
pub use decision::{Decision, Outcome, Reason, Rival, RunnerUp};
pub use matcher::{
    CARD_NGRAMS_MAX, COSINE_SHARE, Candidate, Embedded, Matcher, PREVIOUS_SHARE, Parameters, Part,
    Previous, Query, SHORT_WORDS, SKILL_NGRAMS_MAX, texts_of,
};
pub use mention::{NAMED_MAX, Named, mentions};
pub use ngram::{MESSAGE_NGRAMS_MAX, TEXT_BYTES_MAX};
pub use parts::{PARTS_MAX, parts};
pub use reply_chain::{ChainState, DEPTH_MAX, LoopBounds, PAIRS_MAX, ReplyChains};
pub(crate) use vector::cosine;
pub use vector::{centroid, direction};
pub use windows::{CONTEXT_MAX, ConversationWindows, WINDOW_MAX, WINDOWS_MAX, Windows};

#[cfg(test)]
mod tests;
