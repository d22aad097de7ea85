//! Numbers, lengths of time and sums of money as contracts write them.

use crate::text::Sentence;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Days.
    Days,
    /// Weeks.
    Weeks,
    /// Months.
    Months,
    /// Years.
    Years,
}

impl Unit {
    /// The unit a word names, singular or plural.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "day" | "days" => Some(Self::Days),
            "week" | "weeks" => Some(Self::Weeks),
            "month" | "months" => Some(Self::Months),
            "year" | "years" => Some(Self::Years),
            _ => None,
        }
    }

    /// The name used in facts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Days => "days",
            Self::Weeks => "weeks",
            Self::Months => "months",
            Self::Years => "years",
        }
    }

    /// Days in one unit by the commercial reckoning: a month has 30 days and a year has 12 months,
    /// or 360 days, so that the units convert into each other without a remainder.
    #[must_use]
    pub fn days(self) -> f64 {
        match self {
            Self::Days => 1.0,
            Self::Weeks => 7.0,
            Self::Months => 30.0,
            Self::Years => 360.0,
        }
    }
}

/// A length of time as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duration {
    /// How many.
    pub count: f64,
    /// Of what.
    pub unit: Unit,
    /// Index of the unit among the words of the sentence.
    pub at: usize,
}

impl Duration {
    /// The length in days.
    #[must_use]
    pub fn days(&self) -> f64 {
        self.count * self.unit.days()
    }

    /// The length in `unit`.
    #[must_use]
    pub fn in_unit(&self, unit: Unit) -> f64 {
        self.days() / unit.days()
    }
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// Whether a word is a number, in digits or spelled out.
#[must_use]
pub fn is_number(word: &str) -> bool {
    value_of(word).is_some()
}

/// The value of one word.
#[must_use]
pub fn value_of(word: &str) -> Option<f64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok();
    }
    let place = |names: &[&str]| names.iter().position(|name| *name == word);
    let small = place(&SMALL).or_else(|| place(&TENS).map(|tens| tens * 10));
    small
        .or((word == "hundred").then_some(100))
        .and_then(|value| u32::try_from(value).ok())
        .map(f64::from)
}

/// Words that may stand between a number and its unit.
const BETWEEN: [&str; 8] = [
    "calendar",
    "business",
    "consecutive",
    "full",
    "working",
    "additional",
    "successive",
    "more",
];

/// The lengths of time in `sentence`, in order.
#[must_use]
pub fn durations(sentence: &Sentence) -> Vec<Duration> {
    let words = sentence.words();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(unit) = Unit::parse(word) else {
            continue;
        };
        let before = words.get(..at).unwrap_or_default();
        if let Some(count) = count_before(before) {
            found.push(Duration { count, unit, at });
        }
    }
    found
}

/// The number that `words` end in: the digits in "ninety (90)", else the spelled number.
fn count_before(words: &[String]) -> Option<f64> {
    let mut rest = words;
    while let Some((last, head)) = rest.split_last() {
        if !BETWEEN.contains(&last.as_str()) {
            break;
        }
        rest = head;
    }
    let last = rest.last()?;
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return value_of(last);
    }
    let spelled: Vec<f64> = rest
        .iter()
        .rev()
        .map_while(|word| {
            if word == "and" {
                Some(0.0)
            } else {
                value_of(word)
            }
        })
        .take(5)
        .collect();
    if spelled.is_empty() || (spelled.len() == 1 && last == "and") {
        return None;
    }
    let mut total = 0.0;
    for value in spelled.into_iter().rev() {
        // "one hundred" is a product, "hundred eighty" is a sum.
        if value >= 100.0 && total > 0.0 {
            total *= value;
        } else {
            total += value;
        }
    }
    (total > 0.0).then_some(total)
}

/// The sums in US dollars in a text, in order: `$2,500,000`, `US$ 1.5 million`.
#[must_use]
pub fn dollars(text: &str) -> Vec<f64> {
    text.split('$').skip(1).filter_map(sum).collect()
}

fn sum(after: &str) -> Option<f64> {
    let after = after.trim_start();
    let digits: String = after
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || matches!(letter, ',' | '.'))
        .collect();
    let tail = after
        .get(digits.len()..)
        .unwrap_or_default()
        .trim_start()
        .to_lowercase();
    let plain = digits.replace(',', "");
    let value: f64 = plain.trim_end_matches('.').parse().ok()?;
    let factor = [("million", 1e6), ("billion", 1e9), ("thousand", 1e3)]
        .into_iter()
        .find_map(|(name, factor)| tail.starts_with(name).then_some(factor));
    Some(value * factor.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(text: &str) -> Vec<f64> {
        durations(&Sentence::new(text))
            .iter()
            .map(Duration::days)
            .collect()
    }

    #[test]
    fn durations_in_digits_in_words_and_in_both() {
        assert_eq!(days("upon ninety (90) days prior notice"), [90.0]);
        assert_eq!(
            days("upon sixty calendar days' notice or 2 months"),
            [60.0, 60.0]
        );
        assert_eq!(days("no less than one hundred eighty days"), [180.0]);
        assert_eq!(days("one hundred and twenty days"), [120.0]);
        assert_eq!(days("a five-year term"), [1800.0]);
        assert_eq!(days("from day to day and days"), Vec::<f64>::new());
    }

    #[test]
    fn dollars_with_separators_and_magnitudes() {
        assert_eq!(
            dollars("exceed US$ 1.5 million or $2,500,000."),
            [1_500_000.0, 2_500_000.0]
        );
        assert_eq!(dollars("$ and $***"), Vec::<f64>::new());
    }

    #[test]
    fn numbers() {
        assert_eq!(value_of("ninety"), Some(90.0));
        assert_eq!(value_of("12"), Some(12.0));
        assert_eq!(value_of("dozen"), None);
        assert_eq!(value_of(""), None);
    }
}
