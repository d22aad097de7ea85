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

/// Reads `2026-11-21`, `november 21, 2026`, `21 november 2026`, `21st day of november, 2026` and
/// `11/21/2026` (month first, as in the United States) as `YYYY-MM-DD`, also with the midnight of UTC at which it begins. `words` is normalised
/// text.
pub(super) fn parse(words: &str) -> Option<String> {
    let words = without_midnight(words);
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
    (1..=days_of(year, month)?)
        .contains(&day)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// The day alone of `2026-11-21t00:00:00z`. Any other time is that of an instant, which is another day elsewhere.
fn without_midnight(words: &str) -> &str {
    let Some((day, time)) = words.split_at_checked("2026-11-21".len()) else {
        return words;
    };
    let time = time.strip_prefix(['t', ' ']).unwrap_or("none");
    let zones = ["z", "+00:00", "+0000", " utc"];
    let zone = zones.iter().find_map(|zone| time.strip_suffix(zone));
    let time = zone.unwrap_or(time);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_midnight = matches!(time, "00:00" | "00:00:00") && fraction.bytes().all(|b| b == b'0');
    if is_midnight { day } else { words }
}

/// How many days a month has.
fn days_of(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => Some(if is_leap { 29 } else { 28 }),
        4 | 6 | 9 | 11 => Some(30),
        1..=12 => Some(31),
        _ => None,
    }
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
