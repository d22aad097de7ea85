//! Units and their dimensions.

use super::normalise;

/// Which names of units are understood.
#[derive(Debug, Clone, Copy)]
pub(super) enum Units {
    /// One word for the unit or for the scale, as facts are compared.
    Single,
    /// A scale may stand beside a unit, as in `USD million` and `k EUR`.
    Scaled,
}

impl Units {
    /// The dimension of a unit, and the factor to the dimension's base unit; a unit that is not known is a dimension of its own.
    pub(super) fn of(self, name: &str) -> (String, f64) {
        match self {
            Self::Single => single(name),
            Self::Scaled => scaled(name),
        }
    }
}

/// Months and years count as 30 and 360 days (the 30/360 convention), so that a year is twelve
/// months.
fn single(name: &str) -> (String, f64) {
    let name = normalise(name);
    let (dimension, factor) = match name.trim_end_matches('s') {
        "" => ("", 1.0),
        "%" | "percent" | "per cent" | "pct" => ("", 0.01),
        "bp" | "basis point" => ("", 0.000_1),
        "thousand" | "k" => ("", 1_000.0),
        "million" | "m" => ("", 1_000_000.0),
        "second" | "sec" => ("time", 1.0 / 86_400.0),
        "minute" | "min" => ("time", 1.0 / 1_440.0),
        "hour" | "h" => ("time", 1.0 / 24.0),
        "day" | "calendar day" | "d" => ("time", 1.0),
        "week" => ("time", 7.0),
        "month" => ("time", 30.0),
        "quarter" => ("time", 90.0),
        "year" | "yr" | "annum" => ("time", 360.0),
        "usd" | "$" | "us$" | "dollar" | "us dollar" => ("usd", 1.0),
        "eur" | "€" | "euro" => ("eur", 1.0),
        "gbp" | "£" | "pound" => ("gbp", 1.0),
        other => return (other.to_owned(), 1.0),
    };
    (dimension.to_owned(), factor)
}

fn scaled(name: &str) -> (String, f64) {
    let name = normalise(name);
    let (dimension, factor) = single(&name);
    if factor != 1.0 || dimension.is_empty() {
        return (dimension, factor);
    }
    match name.trim_end_matches('s') {
        "fraction" | "ratio" | "share" | "x" | "time" => return (String::new(), 1.0),
        "percentage point" | "pp" => return (String::new(), 0.01),
        _ => {}
    }
    if let Some(factor) = scale(&name) {
        return (String::new(), factor);
    }
    let ends = [name.split_once(' '), name.rsplit_once(' ')];
    let [first, last] = ends.map(|parts| parts.unwrap_or_default());
    // `million USD`, `USD million`, `$m`.
    let found = [(first.0, first.1), (last.1, last.0)]
        .into_iter()
        .find_map(|(word, rest)| Some((scale(word)?, rest.strip_prefix("of ").unwrap_or(rest))))
        .or_else(|| {
            let sign = name.chars().next().filter(|sign| "$€£".contains(*sign))?;
            let (sign, word) = name.split_at_checked(sign.len_utf8())?;
            Some((scale(word.trim())?, sign))
        });
    match found {
        Some((scale, unit)) => {
            let (dimension, factor) = single(unit);
            (dimension, factor * scale)
        }
        None => (dimension, factor),
    }
}

fn scale(word: &str) -> Option<f64> {
    match word.trim_end_matches('s') {
        "thousand" | "k" => Some(1e3),
        "million" | "m" | "mn" | "mm" | "mio" => Some(1e6),
        "billion" | "bn" | "b" => Some(1e9),
        _ => None,
    }
}
