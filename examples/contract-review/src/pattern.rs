//! A small pattern language over words, in which every recogniser of the panel is written.
//!
//! A pattern is a row of tokens separated by spaces:
//!
//! | token | matches |
//! |---|---|
//! | `assign` | this word |
//! | `assign*` | every word that begins so |
//! | `may\|shall\|will` | one of these, each of which may end in `*` |
//! | `#` | a number, in digits or spelled out |
//! | `..` | up to six words |
//! | `...` | any number of words |
//!
//! Patterns match anywhere in a sentence.

use crate::numbers;
use crate::text::{Sentence, bit_of};

const NEAR: usize = 6;

#[derive(Debug, Clone)]
enum Token {
    /// One of the choices, which lie in these buckets.
    Word(Vec<Choice>, u128),
    /// Up to [`NEAR`] words.
    Near,
}

#[derive(Debug, Clone)]
enum Choice {
    Exact(String),
    Prefix(String),
    Number,
}

impl Choice {
    fn parse(text: &str) -> Self {
        if text == "#" {
            return Self::Number;
        }
        text.strip_suffix('*').map_or_else(
            || Self::Exact(text.to_owned()),
            |stem| Self::Prefix(stem.to_owned()),
        )
    }

    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Exact(text) => word == text,
            Self::Prefix(stem) => word.starts_with(stem),
            Self::Number => numbers::is_number(word),
        }
    }

    /// The buckets in which a matching word can lie; all of them where the text does not tell.
    fn bits(&self) -> u128 {
        match self {
            Self::Exact(text) => bit_of(text),
            Self::Prefix(stem) if stem.len() >= 3 => bit_of(stem),
            Self::Prefix(_) | Self::Number => u128::MAX,
        }
    }
}

/// A compiled pattern: runs of tokens with any number of words between one run and the next.
#[derive(Debug, Clone)]
pub struct Pattern {
    runs: Vec<Run>,
    needed: Vec<u128>,
}

impl Pattern {
    /// Compiles `source`. Every text is a valid pattern.
    #[must_use]
    pub fn new(source: &str) -> Self {
        let runs: Vec<Run> = source.split("...").map(Run::new).collect();
        let needed = runs
            .iter()
            .flat_map(|run| &run.tokens)
            .filter_map(|token| match token {
                Token::Word(_, bits) => Some(*bits),
                Token::Near => None,
            })
            .collect();
        Self { runs, needed }
    }

    /// Compiles several patterns.
    #[must_use]
    pub fn all(sources: &[&str]) -> Vec<Self> {
        sources.iter().map(|source| Self::new(source)).collect()
    }

    /// Whether the pattern occurs in `sentence`.
    #[must_use]
    pub fn matches(&self, sentence: &Sentence) -> bool {
        let signature = sentence.signature();
        if self.needed.iter().any(|bits| bits & signature == 0) {
            return false;
        }
        // A run that ends as early as it can leaves the most words to the next, so no choice made
        // for one run ever has to be taken back for another.
        let mut from = 0;
        self.runs.iter().all(|run| {
            run.earliest_end(sentence, from).is_some_and(|end| {
                from = end;
                true
            })
        })
    }
}

/// Whether any of `patterns` occurs in `sentence`.
#[must_use]
pub fn any(patterns: &[Pattern], sentence: &Sentence) -> bool {
    patterns.iter().any(|pattern| pattern.matches(sentence))
}

#[derive(Debug, Clone)]
struct Run {
    tokens: Vec<Token>,
}

impl Run {
    fn new(source: &str) -> Self {
        let tokens = source
            .split_whitespace()
            .map(|word| match word {
                ".." => Token::Near,
                words => {
                    let choices: Vec<Choice> = words.split('|').map(Choice::parse).collect();
                    let bits = choices.iter().fold(0, |bits, choice| bits | choice.bits());
                    Token::Word(choices, bits)
                }
            })
            .collect();
        Self { tokens }
    }

    /// Where the first occurrence to be complete ends, of those that start at `from` or later.
    fn earliest_end(&self, sentence: &Sentence, from: usize) -> Option<usize> {
        let first = match self.tokens.first() {
            Some(Token::Word(_, bits)) => *bits,
            Some(Token::Near) | None => u128::MAX,
        };
        let mut best: Option<usize> = None;
        for (start, bit) in sentence.bits().iter().enumerate().skip(from) {
            // An occurrence that starts where another has ended cannot end before it.
            if best.is_some_and(|end| end <= start) {
                break;
            }
            if bit & first != 0 {
                let length = end_of(&self.tokens, sentence.words().get(start..)?);
                let end = length.map(|length| start + length);
                best = best.into_iter().chain(end).min();
            }
        }
        best
    }
}

/// The shortest length of an occurrence of `tokens` at the beginning of `words`.
fn end_of(tokens: &[Token], words: &[String]) -> Option<usize> {
    let Some((token, tokens)) = tokens.split_first() else {
        return Some(0);
    };
    match token {
        Token::Near => (0..=words.len().min(NEAR))
            .filter_map(|skipped| end_of(tokens, words.get(skipped..)?).map(|end| skipped + end))
            .min(),
        Token::Word(choices, _) => {
            let (word, rest) = words.split_first()?;
            let is_match = choices.iter().any(|choice| choice.matches(word));
            is_match
                .then(|| end_of(tokens, rest))
                .flatten()
                .map(|end| end + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).matches(&Sentence::new(text))
    }

    #[test]
    fn words_prefixes_and_choices() {
        assert!(matches(
            "not assign*",
            "Neither party shall not assigned it"
        ));
        assert!(matches("may|shall not assign", "It shall not assign"));
        assert!(!matches("assign", "assigned"));
        assert!(matches("no* party", "to no party"));
    }

    #[test]
    fn gaps_are_bounded() {
        assert!(matches("not .. assign", "shall not a b c d e f assign"));
        assert!(!matches("not .. assign", "shall not a b c d e f g assign"));
        assert!(matches(
            "not ... assign",
            "shall not a b c d e f g h assign"
        ));
        assert!(!matches("not ... assign", "assign and not"));
    }

    #[test]
    fn numbers_in_digits_and_in_words() {
        assert!(matches("# days", "within 30 days"));
        assert!(matches("# days", "within thirty days"));
        assert!(!matches("# days", "within several days"));
        assert!(matches("some|# days", "within some days or ten days"));
        assert!(matches("percent|# of", "ten of them"));
    }

    #[test]
    fn an_empty_sentence_matches_nothing_but_a_short_one_can() {
        assert!(!matches("law", ""));
        assert!(matches("law", "law"));
    }
}
