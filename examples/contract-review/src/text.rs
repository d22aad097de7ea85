//! Sentences in the form that the rules read.

use std::collections::HashSet;

/// One sentence of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    text: String,
    words: String,
}

impl Sentence {
    /// Splits `text` into words. Punctuation and hyphens separate words. Soft hyphens and the
    /// possessive `'s` are dropped, so that "Party's" and "Party" read alike.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            words: words_of(text),
        }
    }

    /// The sentence as it stands in the contract.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The words in lower case, with one space between each two.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}

fn words_of(text: &str) -> String {
    let text = text
        .to_lowercase()
        .replace('\u{ad}', "")
        .replace('\u{2019}', "'");
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .map(|word| word.trim_start_matches('\''))
        .map(|word| word.strip_suffix("'s").unwrap_or(word).replace('\'', ""))
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// The sentences of one contract, in the order given and each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    sentences: Vec<Sentence>,
}

impl Document {
    /// Reads `texts`. Blank ones and repetitions are left out.
    pub(crate) fn new<I, S>(texts: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let mut seen = HashSet::new();
        let sentences = texts
            .into_iter()
            .filter(|text| seen.insert(text.as_ref().trim().to_owned()))
            .map(|text| Sentence::new(text.as_ref()))
            .filter(|sentence| !sentence.words.is_empty())
            .collect();
        Self { sentences }
    }

    /// The sentences, in order.
    pub(crate) fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// The sentence that `quote` is taken from. A quote that was cut to fit a message ends in an
    /// ellipsis, and it is found by its beginning.
    pub(crate) fn find(&self, quote: &str) -> Option<&Sentence> {
        let cut = quote.trim_end().strip_suffix('\u{2026}');
        let words = words_of(cut.unwrap_or(quote));
        if words.is_empty() {
            return None;
        }
        self.sentences.iter().find(|sentence| {
            let rest = sentence.words.strip_prefix(&words);
            rest.is_some_and(|rest| rest.is_empty() || (cut.is_some() && rest.starts_with(' ')))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_without_possessives() {
        let sentence =
            Sentence::new("Each Party\u{2019}s non-exclusive Know\u{ad}How, the owners' (30) days");
        assert_eq!(
            sentence.words(),
            "each party non exclusive knowhow the owners 30 days"
        );
    }

    #[test]
    fn a_document_holds_each_sentence_once_and_finds_quotes() {
        let document = Document::new([
            "One sentence here.",
            "  ",
            "One sentence here. ",
            "Another one.",
        ]);
        assert_eq!(document.sentences().len(), 2);
        assert!(document.find("one sentence HERE").is_some());
        assert!(document.find("One sen\u{2026}").is_none());
        assert!(document.find("One sentence\u{2026}").is_some());
        assert!(document.find("One sentence").is_none());
        assert!(document.find("\u{2026}").is_none());
    }
}
