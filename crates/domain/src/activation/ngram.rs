//! The character n-grams of the words of a text.

/// How many bytes of a text are read.
pub const TEXT_BYTES_MAX: usize = 4_096;
/// The most n-grams of a message. A hundred words have fewer.
pub const MESSAGE_NGRAMS_MAX: usize = 4_096;
/// The shortest and the longest n-gram, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=5;

/// The n-grams of a text by their hash, each with the weight 1 + ln(number of occurrences), in the
/// order of the hashes, and of length 1 as a vector.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Profile(Vec<(u32, f32)>);

impl Profile {
    /// The profile of several texts, up to `ngrams_max` n-grams.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>, ngrams_max: usize) -> Self {
        let mut hashes = Vec::new();
        for text in texts {
            for word in words(cut(text)) {
                push_ngrams(&word, ngrams_max, &mut hashes);
            }
        }
        hashes.sort_unstable();
        let mut weighed: Vec<(u32, f32)> = Vec::new();
        for chain in hashes.chunk_by(|a, b| a == b) {
            weighed.extend(
                chain
                    .first()
                    .map(|hash| (*hash, 1.0 + (chain.len() as f32).ln())),
            );
        }
        Self::normalised(weighed)
    }

    /// This profile with a share of another one.
    pub(super) fn blended(&self, other: &Self, share: f32) -> Self {
        let mut both: Vec<(u32, f32)> = self
            .0
            .iter()
            .map(|(hash, weight)| (*hash, weight * (1.0 - share)))
            .collect();
        both.extend(other.0.iter().map(|(hash, weight)| (*hash, weight * share)));
        both.sort_by_key(|(hash, _)| *hash);
        let sum = |chain: &[(u32, f32)]| {
            chain
                .first()
                .map(|(hash, _)| (*hash, chain.iter().map(|(_, weight)| weight).sum()))
        };
        Self::normalised(both.chunk_by(|a, b| a.0 == b.0).filter_map(sum).collect())
    }

    fn normalised(mut weighed: Vec<(u32, f32)>) -> Self {
        let length = weighed
            .iter()
            .map(|(_, weight)| weight * weight)
            .sum::<f32>()
            .sqrt();
        if length > 0.0 {
            weighed.iter_mut().for_each(|(_, weight)| *weight /= length);
        }
        Self(weighed)
    }

    /// The hash and the weight of each n-gram.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.0.iter().copied()
    }

    /// The number of different n-grams.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The part of a text that is read.
pub(super) fn cut(text: &str) -> &str {
    crate::text::beginning(text, TEXT_BYTES_MAX)
}

/// The words of a text in lower case. Apostrophes are left out, so that "what's" is one word.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_gap = |c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '\u{2019}');
    let word = |part: &str| {
        part.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    text.split(is_gap).map(word).filter(|word| !word.is_empty())
}

/// Adds the n-grams of one word with a space on either side, so that its beginning and end differ
/// from its middle.
fn push_ngrams(word: &str, ngrams_max: usize, hashes: &mut Vec<u32>) {
    let padded: Vec<char> = std::iter::once(' ')
        .chain(word.chars())
        .chain(std::iter::once(' '))
        .collect();
    for start in 0..padded.len() {
        // FNV-1a, continued from each n-gram to the next longer one.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for (length, character) in (1..=*LENGTHS.end()).zip(padded.iter().skip(start)) {
            hash = (hash ^ u64::from(u32::from(*character))).wrapping_mul(0x0100_0000_01b3);
            if LENGTHS.contains(&length) {
                if hashes.len() >= ngrams_max {
                    return;
                }
                hashes.push((hash ^ (hash >> 32)) as u32);
            }
        }
    }
}
