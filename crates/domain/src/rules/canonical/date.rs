//! Dates in the forms that contracts use.

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Reads `2026-11-21`, `november 21, 2026`, `21 november 2026`, `21st day of november, 2026` and `11/21/2026` (month
/// first, as in the United States) as `YYYY-MM-DD`. `words` is normalised text.
pub(super) fn parse(words: &str) -> Option<String> {
    let parts: Vec<&str> = words
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '/' | '-'))
        .filter(|part| !part.is_empty() && !matches!(*part, "of" | "day" | "the"))
        .collect();
    let [a, b, c] = parts.as_slice() else {
        return None;
    };
    let numeric = words.contains('/') || words.contains('-');
    let (year, month, day) = match (month(a), month(b)) {
        (Some(month), _) => (year(c)?, month, day(b)?),
        (None, Some(month)) => (year(c)?, month, day(a)?),
        (None, None) if numeric && a.len() == 4 => (year(a)?, number(b)?, day(c)?),
        (None, None) if numeric => (year(c)?, number(a)?, day(b)?),
        _ => return None,
    };
    ((1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn month(word: &str) -> Option<u32> {
    let word = word.trim_end_matches('.');
    if word.len() < 3 || !word.is_ascii() {
        return None;
    }
    let place = MONTHS.iter().position(|name| name.starts_with(word))?;
    u32::try_from(place + 1).ok()
}

fn year(word: &str) -> Option<u32> {
    (word.len() == 4).then(|| number(word)).flatten()
}

fn day(word: &str) -> Option<u32> {
    number(word.trim_end_matches(|c: char| c.is_ascii_lowercase()))
}

fn number(word: &str) -> Option<u32> {
    word.parse().ok()
}
