//! Whom a message wakes.
//!
//! Agents cost time and money when they are invoked, and are of no use when they are not. So for every message and agent
//! it is decided whether the agent wakes (is given the message to act on), observes (is given it as context the next time
//! it wakes) or ignores it. [`decide()`] is the specification's tree; [`decide_all`] walks it for every agent at once.
//!
//! Where a message is for whoever can help, a [`Matcher`] says how probably each agent is concerned. It holds the skills of
//! all agents, since a score decides little without its lead over the next agent's:
//!
//! - h = 0.7 x cosine + 0.3 x n-grams, of an agent's best skill. The cosine is that of the message's vector and the
//!   centroid of the vectors of the skill's name and examples; vectors come from outside. The n-grams are those of 3 to 5 characters,
//!   weighed by how rare they are among the skills. Without a model h is the likeness of n-grams alone.
//! - gap = h - the best other agent's h. p = sigmoid(a h + b gap + c), and the agent wakes from p = 0.7 on. The
//!   coefficients are data ([`Calibration`]), one set with a model and one without.
//! - Who takes part in the conversation has a [`Bonus`], which halves with every few messages that it is silent, and yields to
//!   an agent that is sure without it. A short message is matched together with a share of the one before it.
//!
//! Bounded: of every text the first 4 KiB count, of a card so many n-grams, of a message's frequent n-grams so many
//! skills; a message wakes at most eight agents by mentioning them and eight by preferring them.

mod calibration;
mod calibration_fit;
pub mod conversation;
mod decide;
mod decision;
mod index;
mod keyword;
mod matcher;
mod mention;
mod ngram;
mod reply_chain;
mod vector;

pub use calibration::{Bonus, Calibration, Participation, sigmoid};
pub use calibration_fit::Sample;
pub use decide::{Conversation, Decisions, Message, Standing, View, decide, decide_all};
pub use decision::{Decision, Outcome, Reason, Rival, RunnerUp};
pub use matcher::{
    CARD_NGRAMS_MAX, COSINE_SHARE, Candidate, Matcher, PREVIOUS_SHARE, Parameters, Previous, Query,
    SHORT_WORDS, SKILL_NGRAMS_MAX, texts_of,
};
pub use mention::{NAMED_MAX, Named, mentions};
pub use ngram::{MESSAGE_NGRAMS_MAX, TEXT_BYTES_MAX};
pub use reply_chain::{Course, DEPTH_MAX, LoopBounds, PAIRS_MAX, Turns};
pub use vector::{centroid, direction};

#[cfg(test)]
mod tests;
