//! The parts of a message: several requests are often joined to one message.
//!
//! A message that concerns two agents is about two things, and about each of them less than a
//! message for one agent would be. So its parts are matched as well as the whole: each part is
//! about one thing, and its agent leads in it.

use super::ngram::{cut, words};

/// How many parts a message has at most; the last one is what is left.
pub const PARTS_MAX: usize = 6;
/// How many words a part has at least; fewer say too little and stay with their neighbour.
const PART_WORDS_MIN: usize = 4;
/// How probable it must be that a part by itself concerns an agent. More than for a whole message: a
/// part may be but a continuation of another, which says what it is about.
pub(super) const PART_THRESHOLD: f64 = 0.8;
/// The marks after which a part ends.
const MARKS: [char; 7] = ['.', ',', ';', ':', '?', '!', '\n'];
/// The words that join two requests.
const JOINTS: [&str; 8] = [
    "and",
    "also",
    "then",
    "plus",
    "but",
    "afterwards",
    "besides",
    "additionally",
];

/// The parts of a text, in their order; none where it has one part only.
pub fn parts(text: &str) -> Vec<&str> {
    let text = cut(text);
    let mut found: Vec<&str> = Vec::new();
    let mut begin = 0;
    for (at, word) in places(text) {
        if found.len() + 1 >= PARTS_MAX {
            break;
        }
        let before = text.get(begin..at).unwrap_or_default();
        let is_joint = JOINTS.iter().any(|joint| word.eq_ignore_ascii_case(joint));
        let cuts = is_joint || before.trim_end_matches(' ').ends_with(MARKS);
        let rest = text.get(at..).unwrap_or_default();
        if cuts && is_enough(before) && is_enough(rest) {
            found.push(before.trim());
            begin = at;
        }
    }
    if found.is_empty() {
        return found;
    }
    found.push(text.get(begin..).unwrap_or_default().trim());
    found
}

/// Whether a text has enough words to be a part, those that join not counted.
fn is_enough(text: &str) -> bool {
    let counts = |word: &String| !JOINTS.contains(&word.as_str());
    words(text).filter(counts).nth(PART_WORDS_MIN - 1).is_some()
}

/// The words between spaces, without the marks at their ends, and where they begin.
fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr() as usize;
    text.split_whitespace()
        .map(move |word| (word.as_ptr() as usize - base, word.trim_end_matches(MARKS)))
}
