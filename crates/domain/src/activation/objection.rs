//! Whether a text is about who agrees with a plan and who does not.
//!
//! Who is concerned by "Does anyone disagree with this plan?" is not said by its words, but by who
//! holds a position on the plan. So such a message is recognised by its words, and concerns those.

use super::keyword::{lower_case, says};

/// What is said by whoever asks for objections or has one. English; in other languages the sender
/// says `asks_for: objections` in the payload.
const PHRASES: [&str; 16] = [
    "disagree",
    "disagrees",
    "disagreement",
    "objection",
    "objections",
    "object to",
    "objects to",
    "anyone against",
    "anybody against",
    "am against",
    "any concerns",
    "does everyone agree",
    "does everybody agree",
    "do you all agree",
    "are we all agreed",
    "can we all agree",
];

/// Whether the text asks for objections, or is one.
pub(super) fn is_in(text: &str) -> bool {
    let lower = lower_case(text);
    PHRASES.iter().any(|phrase| says(&lower, phrase))
}
