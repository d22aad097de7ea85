//! Phrases that wake an agent where no model is available.

/// How many bytes of a message are searched: every phrase of every card is looked for.
const SEARCHED_BYTES_MAX: usize = 1_024;

/// A phrase of a card.
#[derive(Debug, Clone)]
pub(super) struct Phrase {
    pub(super) written: String,
    pub(super) lower: String,
}

impl Phrase {
    pub(super) fn new(written: &str) -> Self {
        Self {
            written: written.to_owned(),
            lower: written.trim().to_lowercase(),
        }
    }
}

/// The part of a message that is searched, in lower case.
pub(super) fn lower_case(text: &str) -> String {
    crate::text::beginning(text, SEARCHED_BYTES_MAX).to_lowercase()
}

/// Whether a text contains a phrase between the edges of words; both are in lower case.
pub(super) fn says(text: &str, phrase: &str) -> bool {
    let is_inside = |c: Option<char>, edge: Option<char>| {
        c.is_some_and(char::is_alphanumeric) && edge.is_some_and(char::is_alphanumeric)
    };
    !phrase.is_empty()
        && text.match_indices(phrase).any(|(at, found)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text
                .get(at + found.len()..)
                .and_then(|after| after.chars().next());
            !is_inside(before, phrase.chars().next())
                && !is_inside(after, phrase.chars().next_back())
        })
}
