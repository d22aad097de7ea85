//! Sentences split into words, in the form the recognisers read.

/// One sentence of a contract, with its words in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    text: String,
    words: Vec<String>,
    bits: Vec<u128>,
    signature: u128,
}

impl Sentence {
    /// Splits `text` into words. Punctuation and hyphens separate words, soft hyphens vanish, and a
    /// possessive `'s` is dropped, so that "Party's" and "Party" read alike.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let words = words_of(text);
        let bits: Vec<u128> = words.iter().map(|word| bit_of(word)).collect();
        let signature = bits.iter().fold(0, |all, bit| all | bit);
        Self {
            text: text.to_owned(),
            words,
            bits,
            signature,
        }
    }

    /// The sentence as it stands in the contract.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words, in lower case.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The bucket of every word, as [`bit_of`] gives it.
    #[must_use]
    pub fn bits(&self) -> &[u128] {
        &self.bits
    }

    /// A set of 128 buckets with one bit for every word, which lets a pattern be ruled out without
    /// looking at the words.
    #[must_use]
    pub fn signature(&self) -> u128 {
        self.signature
    }
}

/// The bucket of a word: a hash of its first three letters, so that a word and any prefix of three
/// letters or more fall into the same bucket.
#[must_use]
pub fn bit_of(word: &str) -> u128 {
    let hash = word
        .bytes()
        .take(3)
        .fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
    1 << (hash % 128)
}

fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        } else if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        } else if matches!(letter, '\'' | '\u{2019}' | '\u{ad}') {
            // Joined: the possessive is removed when the word is complete.
        } else {
            finish(&mut word, &mut words);
        }
        if matches!(letter, '\'' | '\u{2019}') && !word.is_empty() {
            word.push('\'');
        }
    }
    finish(&mut word, &mut words);
    words
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    if word.is_empty() {
        return;
    }
    let mut plain = std::mem::take(word);
    if plain.contains('\'') {
        plain = plain.strip_suffix("'s").unwrap_or(&plain).replace('\'', "");
    }
    if !plain.is_empty() {
        words.push(plain);
    }
}

/// The sentences of one contract, in the order given and each once.
#[derive(Debug, Clone, Default)]
pub struct Document {
    sentences: Vec<Sentence>,
}

impl Document {
    /// Reads `texts`; blank ones and repetitions are left out.
    pub fn new<I, S>(texts: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let mut seen = std::collections::HashSet::new();
        let sentences = texts
            .into_iter()
            .filter(|text| seen.insert(text.as_ref().trim().to_owned()))
            .map(|text| Sentence::new(text.as_ref()))
            .filter(|sentence| !sentence.words.is_empty())
            .collect();
        Self { sentences }
    }

    /// The sentences, in order.
    #[must_use]
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// The sentence that `quote` is taken from. A quote that was cut to fit a message ends in an
    /// ellipsis and is recognised by its beginning.
    #[must_use]
    pub fn find(&self, quote: &str) -> Option<&Sentence> {
        let cut = quote.trim_end().strip_suffix('\u{2026}');
        let words = words_of(cut.unwrap_or(quote));
        if words.is_empty() {
            return None;
        }
        self.sentences.iter().find(|sentence| {
            if cut.is_some() {
                sentence.words.starts_with(&words)
            } else {
                sentence.words == words
            }
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
            [
                "each",
                "party",
                "non",
                "exclusive",
                "knowhow",
                "the",
                "owners",
                "30",
                "days"
            ]
        );
    }

    #[test]
    fn a_prefix_of_three_letters_shares_the_bucket_of_the_word() {
        assert_eq!(bit_of("assignment"), bit_of("ass"));
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
