//! Regular expressions as the rule files write them.

use regex::bytes::{RegexSet, RegexSetBuilder};
use regex::{Regex, RegexBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::numbers;
use crate::text::Sentence;

/// A list of regular expressions of which one has to match the words of a sentence. The default is
/// the empty list, which matches nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns(RegexSet);

impl Patterns {
    /// Returns true if the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if one of the expressions matches the words of `sentence`.
    pub(crate) fn is_match(&self, sentence: &Sentence) -> bool {
        self.0.is_match(sentence.words().as_bytes())
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sources = Vec::<String>::deserialize(deserializer)?;
        if sources.is_empty() {
            return Err(D::Error::custom("this list needs at least one pattern"));
        }
        // The rules are about English words. Without Unicode the class in a gap of six words,
        // (\S+ ){0,6}, stays small, and the patterns compile and match faster.
        RegexSetBuilder::new(sources.iter().map(|source| expand(source)))
            .unicode(false)
            .build()
            .map(Self)
            .map_err(D::Error::custom)
    }
}

/// One regular expression with named groups.
#[derive(Debug, Clone)]
pub(crate) struct Capture(pub(crate) Regex);

impl<'de> Deserialize<'de> for Capture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = String::deserialize(deserializer)?;
        RegexBuilder::new(&expand(&source))
            .unicode(false)
            .build()
            .map(Self)
            .map_err(D::Error::custom)
    }
}

/// Replaces `{number}`, the one name that the rule files use in an expression.
fn expand(source: &str) -> String {
    source.replace("{number}", &numbers::expression())
}
