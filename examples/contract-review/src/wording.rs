//! Lengths of time, sums of money, dates and places as contracts write them. The patterns are in
//! `rules/wording.toml`.

use regex::Captures;
use serde::Deserialize;

use crate::numbers;
use crate::patterns::{Capture, Patterns};
use crate::text::Sentence;

/// The content of `rules/wording.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wording {
    duration: Capture,
    dollars: Capture,
    dates: Vec<Capture>,
    date_in_figures: Capture,
    place_marker: Capture,
    not_in_place_names: Vec<String>,
    automatic_renewal: Patterns,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// 1 day.
    Days,
    /// 7 days.
    Weeks,
    /// 30 days, as in commercial calculations.
    Months,
    /// 12 months of 30 days, so that the units convert into each other without a remainder.
    Years,
}

impl Unit {
    /// The unit with this name, singular or plural.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "day" | "days" => Some(Self::Days),
            "week" | "weeks" => Some(Self::Weeks),
            "month" | "months" => Some(Self::Months),
            "year" | "years" => Some(Self::Years),
            _ => None,
        }
    }

    /// The name as it is written in facts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Days => "days",
            Self::Weeks => "weeks",
            Self::Months => "months",
            Self::Years => "years",
        }
    }

    /// The number of days in one unit.
    pub(crate) fn days(self) -> f64 {
        match self {
            Self::Days => 1.0,
            Self::Weeks => 7.0,
            Self::Months => 30.0,
            Self::Years => 360.0,
        }
    }
}

/// A length of time as the contract states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Duration {
    pub(crate) count: f64,
    pub(crate) unit: Unit,
    /// True if the sentence speaks of a notice close to it.
    pub(crate) is_notice: bool,
}

impl Duration {
    /// The length in days.
    pub(crate) fn days(&self) -> f64 {
        self.count * self.unit.days()
    }
}

const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";

impl Wording {
    /// The lengths of time in `sentence`, in order.
    pub(crate) fn durations(&self, sentence: &Sentence) -> Vec<Duration> {
        let words = sentence.words();
        let found = self.duration.0.captures_iter(words);
        found
            .filter_map(|captures| {
                let unit = captures.name("unit")?;
                Some(Duration {
                    count: numbers::value_of_row(captures.name("count")?.as_str())?,
                    unit: Unit::parse(unit.as_str())?,
                    is_notice: is_near_notice(words, unit.start()),
                })
            })
            .collect()
    }

    /// The sums in US dollars in `text`, in order: `$2,500,000`, `US$ 1.5 million`.
    pub(crate) fn dollars(&self, text: &str) -> Vec<f64> {
        let found = self.dollars.0.captures_iter(text);
        found
            .filter_map(|captures| {
                let sum: f64 = captures
                    .name("sum")?
                    .as_str()
                    .replace(',', "")
                    .parse()
                    .ok()?;
                let scale = captures
                    .name("scale")
                    .map(|scale| scale.as_str().to_lowercase());
                Some(match scale.as_deref() {
                    Some("thousand") => sum * 1e3,
                    Some("million") => sum * 1e6,
                    Some("billion") => sum * 1e9,
                    _ => sum,
                })
            })
            .collect()
    }

    /// The dates in `sentence` as numbers, `yyyymmdd`, in the order of the patterns and, for one
    /// pattern, of the text.
    pub(crate) fn dates(&self, sentence: &Sentence) -> Vec<u32> {
        let words = sentence.words();
        let has_slash = sentence.text().contains('/');
        let in_figures = has_slash.then_some(&self.date_in_figures);
        let mut found = Vec::new();
        for pattern in self.dates.iter().chain(in_figures) {
            let mut from = 0;
            // Three numbers in a row can begin inside of three others, so matches may overlap.
            while let Some(captures) = pattern.0.captures_at(words, from) {
                let whole = captures.get_match();
                debug_assert!(!whole.is_empty(), "a date pattern matches the empty text");
                found.extend(date(&captures));
                from = whole.start() + 1;
            }
        }
        found
    }

    /// The places that `text` names as those of a law or a court, in order and each once.
    pub(crate) fn places(&self, text: &str) -> Vec<String> {
        let mut places = Vec::new();
        for marker in self.place_marker.0.find_iter(text) {
            let (_, rest) = text.split_at(marker.end());
            places.extend(
                self.place_name(rest)
                    .filter(|place| !places.contains(place)),
            );
        }
        places
    }

    /// The name at the beginning of `text`: up to three words that begin with a capital.
    fn place_name(&self, text: &str) -> Option<String> {
        let mut name: Vec<String> = Vec::new();
        for token in text.split_whitespace().take(8) {
            let word: String = token
                .chars()
                .filter(|letter| letter.is_alphabetic())
                .collect();
            let lower = word.to_lowercase();
            let is_excluded = self.not_in_place_names.contains(&lower);
            if name.is_empty() && is_excluded {
                continue;
            }
            if is_excluded || !word.starts_with(char::is_uppercase) {
                break;
            }
            let (first, rest) = lower.split_at(lower.chars().next().map_or(0, char::len_utf8));
            name.push(first.to_uppercase() + rest);
            if !token.ends_with(char::is_alphabetic) || name.len() == 3 {
                break;
            }
        }
        (!name.is_empty()).then(|| name.join(" "))
    }

    /// Returns true if `sentence`, which is about renewal, says that the agreement renews itself.
    pub(crate) fn is_automatic_renewal(&self, sentence: &Sentence) -> bool {
        self.automatic_renewal.is_match(sentence)
    }
}

/// Returns true if a notice is among the eight words on either side of the position `at`.
fn is_near_notice(words: &str, at: usize) -> bool {
    const REACH: usize = 8;
    let (before, after) = words.split_at(at);
    let before = before.split_whitespace().rev().take(REACH);
    let after = after.split_whitespace().take(REACH);
    before
        .chain(after)
        .any(|word| word.starts_with("notice") || word == "notification")
}

/// The date of a match as a number, `yyyymmdd`. `None` if there is no such day.
fn date(captures: &Captures<'_>) -> Option<u32> {
    let group = |name| captures.name(name).map(|found| found.as_str());
    let month_name = group("month")?;
    let by_name = MONTHS
        .split(' ')
        .position(|stem| month_name.starts_with(stem))
        .and_then(|index| u32::try_from(index + 1).ok());
    let month = by_name.or_else(|| month_name.parse().ok())?;
    let day: u32 = group("day")?.parse().ok()?;
    let year: u32 = group("year")?.parse().ok()?;
    let year = match year {
        // Two digits are a year of this century or of the last one.
        0..=49 => 2000 + year,
        50..=99 => 1900 + year,
        _ => year,
    };
    let is_plausible =
        (1950..=2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_plausible.then_some(year * 10_000 + month * 100 + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wording() -> Wording {
        toml::from_str(include_str!("../rules/wording.toml")).unwrap()
    }

    fn days(text: &str) -> Vec<f64> {
        let durations = wording().durations(&Sentence::new(text));
        durations.iter().map(Duration::days).collect()
    }

    fn dates(text: &str) -> Vec<u32> {
        wording().dates(&Sentence::new(text))
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
            wording().dollars("exceed US$ 1.5 million or $2,500,000."),
            [1_500_000.0, 2_500_000.0]
        );
        assert_eq!(wording().dollars("$ and $***"), Vec::<f64>::new());
    }

    #[test]
    fn places_of_law_and_of_courts() {
        let places = |text| wording().places(text);
        assert_eq!(
            places(
                "governed by the laws of the State of New York, and the courts of Delaware shall"
            ),
            ["New York", "Delaware"]
        );
        assert_eq!(places("the laws of England and Wales."), ["England"]);
        assert_eq!(places("THE LAWS OF THE STATE OF TEXAS."), ["Texas"]);
        assert_eq!(
            places("subject to all laws of general application"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn dates_in_words_and_in_figures() {
        assert_eq!(dates("May 22, 2000"), [2000_0522]);
        assert_eq!(dates("as of the 1st day of May, 2006"), [2006_0501]);
        assert_eq!(dates("1 April 2020"), [2020_0401]);
        assert_eq!(dates("7/11/06"), [2006_0711]);
        assert_eq!(dates("it may 30 2 times"), Vec::<u32>::new());
        assert_eq!(dates("Section 7.5.2"), Vec::<u32>::new());
    }
}
