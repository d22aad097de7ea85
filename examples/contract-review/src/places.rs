//! Places of law and calendar dates as contracts write them.

use std::fmt;

use crate::numbers;
use crate::text::Sentence;

/// Phrases after which a contract names the place whose law or courts it means.
const BEFORE_PLACE: [&str; 9] = [
    "laws of",
    "law of",
    "courts of",
    "courts in",
    "courts located in",
    "courts sitting in",
    "state of",
    "commonwealth of",
    "province of",
];

/// Words in capitals that belong to a phrase around a place and not to its name.
const NOT_A_NAME: [&str; 14] = [
    "the",
    "state",
    "commonwealth",
    "province",
    "of",
    "without",
    "agreement",
    "law",
    "laws",
    "this",
    "county",
    "district",
    "party",
    "parties",
];

/// The places named in `text`, in order, each once.
#[must_use]
pub fn places(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<(usize, String)> = BEFORE_PLACE
        .iter()
        .flat_map(|phrase| lower.match_indices(phrase))
        .filter_map(|(at, phrase)| {
            let start = at + phrase.len();
            let place = name_at(text.get(start..)?)?;
            Some((start, place))
        })
        .collect();
    found.sort();
    let mut places: Vec<String> = Vec::new();
    for (_, place) in found {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The name at the beginning of `text`: words with a capital, after "the State of" and the like.
fn name_at(text: &str) -> Option<String> {
    let mut name: Vec<String> = Vec::new();
    for token in text.split_whitespace().take(8) {
        let word: String = token
            .chars()
            .filter(|letter| letter.is_alphabetic())
            .collect();
        let lower = word.to_lowercase();
        if name.is_empty() && NOT_A_NAME.contains(&lower.as_str()) {
            continue;
        }
        let is_name = word.chars().next().is_some_and(char::is_uppercase);
        if !is_name || NOT_A_NAME.contains(&lower.as_str()) {
            break;
        }
        name.push(title(&lower));
        if !token.ends_with(char::is_alphabetic) || name.len() == 3 {
            break;
        }
    }
    (!name.is_empty()).then(|| name.join(" "))
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    /// A number that orders dates.
    #[must_use]
    pub fn ordinal(self) -> f64 {
        f64::from(self.year * 10_000 + self.month * 100 + self.day)
    }

    fn new(year: u32, month: u32, day: u32) -> Option<Self> {
        let plausible =
            (1950..=2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        plausible.then_some(Self { year, month, day })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// What follows the first three letters of a month.
const ENDINGS: [&str; 12] = [
    "uary", "ruary", "ch", "il", "e", "y", "ust", "t", "tember", "ober", "ember", "",
];

fn month_of(word: &str) -> Option<u32> {
    // "mare" and "mayor" begin like months; a month is its abbreviation or its full name.
    let is_name = |stem: &str| {
        word.strip_prefix(stem)
            .is_some_and(|rest| rest.is_empty() || ENDINGS.contains(&rest))
    };
    let at = MONTHS.iter().position(|stem| is_name(stem))?;
    u32::try_from(at + 1).ok()
}

fn number(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    if digits.is_empty() || word.len() - digits.len() > 2 {
        return None;
    }
    digits.parse().ok()
}

/// The dates in `sentence`, in order: `May 22, 2000`, `1st day of May, 2006`, `7/11/2006`. A date in
/// figures is read with the month first.
#[must_use]
pub fn dates(sentence: &Sentence) -> Vec<Date> {
    let words = sentence.words();
    let mut found = Vec::new();
    for window in words.windows(3) {
        let [first, second, third] = window else {
            continue;
        };
        let date = match (month_of(first), month_of(second)) {
            (Some(month), _) => three(number(third), Some(month), number(second)),
            (_, Some(month)) if is_written_day(first) => {
                three(number(third), Some(month), number(first))
            }
            _ if sentence.text().contains('/') => in_figures(first, second, third),
            _ => None,
        };
        found.extend(date);
    }
    for window in words.windows(5) {
        match window {
            [first, day, of, month, year] if day == "day" && of == "of" => {
                found.extend(three(number(year), month_of(month), number(first)));
            }
            _ => {}
        }
    }
    found
}

fn is_written_day(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit()) || numbers::is_number(word)
}

fn three(year: Option<u32>, month: Option<u32>, day: Option<u32>) -> Option<Date> {
    Date::new(year?, month?, day?)
}

fn in_figures(month: &str, day: &str, year: &str) -> Option<Date> {
    // Two figures are a year of the last or of this century.
    let year: u32 = year.parse().ok()?;
    let century = match year {
        0..=49 => 2000,
        50..=99 => 1900,
        _ => 0,
    };
    Date::new(century + year, month.parse().ok()?, day.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        dates(&Sentence::new(text))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn places_of_law_and_of_courts() {
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
        assert_eq!(read("May 22, 2000"), ["2000-05-22"]);
        assert_eq!(read("as of the 1st day of May, 2006"), ["2006-05-01"]);
        assert_eq!(read("1 April 2020"), ["2020-04-01"]);
        assert_eq!(read("7/11/06"), ["2006-07-11"]);
        assert_eq!(read("it may 30 2 times"), Vec::<String>::new());
    }
}
