//! Units and their dimensions.

use super::normalise;

/// Which names of units are understood.
#[derive(Debug, Clone, Copy)]
pub(super) enum Units {
    /// One word for the unit or for the scale, as facts are compared; beside a currency a scale may stand.
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

    /// Whether it is the name of a unit: of `about 28` the word is none.
    pub(super) fn knows(self, name: &str) -> bool {
        let name = normalise(name);
        table(&name).is_some() || self.of(&name) != itself(&name)
    }
}

/// The dimensions of currencies. Those that have no other name are units like any that is not known, but may stand before their number.
const CURRENCIES: [&str; 23] = [
    "usd", "eur", "gbp", "aud", "brl", "cad", "chf", "cny", "czk", "dkk", "hkd", "huf", "inr",
    "jpy", "krw", "mxn", "nok", "nzd", "pln", "sek", "sgd", "twd", "zar",
];
/// The signs of currencies, with which the name of another one may end: `C$`.
const SIGNS: [char; 6] = ['$', '€', '£', '¥', '₹', '₩'];

/// Whether it is the name of a currency, alone or with a scale.
pub(super) fn is_currency(name: &str) -> bool {
    is_money(&scaled(name).0)
}

fn is_money(dimension: &str) -> bool {
    CURRENCIES.contains(&dimension) || dimension.ends_with(SIGNS)
}

/// Whether it is a word for thousands, millions or more.
pub(super) fn is_scale(word: &str) -> bool {
    scale(word).is_some()
}

/// A unit that is not known.
fn itself(name: &str) -> (String, f64) {
    (singular(name).to_owned(), 1.0)
}

/// The name of a unit in the singular. Of two letters the last one is no plural: `ms` are no millions.
fn singular(name: &str) -> &str {
    match name.chars().nth(2) {
        Some(_) => name.trim_end_matches('s'),
        None => name,
    }
}

/// Months and years count as 30 and 360 days (the 30/360 convention), so that a year is twelve
/// months.
fn table(name: &str) -> Option<(String, f64)> {
    let (dimension, factor) = match singular(name) {
        "" => ("", 1.0),
        "%" | "percent" | "per cent" | "pct" => ("", 0.01),
        "bp" | "basis point" => ("", 0.000_1),
        "thousand" | "k" => ("", 1_000.0),
        "million" | "m" => ("", 1_000_000.0),
        "billion" | "bn" => ("", 1e9),
        "trillion" | "tn" => ("", 1e12),
        "millisecond" | "msec" | "ms" => ("time", 1.0 / 86_400_000.0),
        "second" | "sec" | "s" => ("time", 1.0 / 86_400.0),
        "minute" | "min" => ("time", 1.0 / 1_440.0),
        "hour" | "hr" | "h" => ("time", 1.0 / 24.0),
        "day" | "calendar day" | "d" => ("time", 1.0),
        "week" => ("time", 7.0),
        "month" => ("time", 30.0),
        "quarter" => ("time", 90.0),
        "year" | "yr" | "annum" => ("time", 360.0),
        "usd" | "$" | "us$" | "dollar" | "us dollar" => ("usd", 1.0),
        "eur" | "€" | "euro" => ("eur", 1.0),
        "gbp" | "£" | "pound" => ("gbp", 1.0),
        // Of facts they are no percent: a margin is 5 %, and is up by 5 percentage points.
        "percentage point" | "pp" => ("pp", 1.0),
        _ => return None,
    };
    Some((dimension.to_owned(), factor))
}

fn single(name: &str) -> (String, f64) {
    let name = normalise(name);
    let amount = || with_scale(&name).filter(|(unit, _)| is_money(unit));
    table(&name)
        .or_else(amount)
        .unwrap_or_else(|| itself(&name))
}

fn scaled(name: &str) -> (String, f64) {
    let name = normalise(name);
    match singular(&name) {
        "fraction" | "ratio" | "x" | "time" => return (String::new(), 1.0),
        // Several are counted: an option pool has 12,000 shares.
        "share" if name == "share" => return (String::new(), 1.0),
        "percentage point" | "pp" => return (String::new(), 0.01),
        _ => {}
    }
    let alone = || Some((String::new(), scale(&name)?));
    table(&name)
        .or_else(alone)
        .or_else(|| with_scale(&name))
        .unwrap_or_else(|| itself(&name))
}

/// A unit beside a scale: `million USD`, `USD million`, `millions of EUR`, `$m`.
fn with_scale(name: &str) -> Option<(String, f64)> {
    let ends = [name.split_once(' '), name.rsplit_once(' ')];
    let [first, last] = ends.map(|parts| parts.unwrap_or_default());
    let beside = [(first.0, first.1), (last.1, last.0)]
        .into_iter()
        .find_map(|(word, rest)| Some((scale(word)?, rest.strip_prefix("of ").unwrap_or(rest))));
    let attached = || {
        let sign = name.chars().next().filter(|sign| "$€£".contains(*sign))?;
        let (sign, word) = name.split_at_checked(sign.len_utf8())?;
        Some((scale(word.trim())?, sign))
    };
    let (scale, unit) = beside.or_else(attached)?;
    let (dimension, factor) = table(unit).unwrap_or_else(|| itself(unit));
    Some((dimension, factor * scale))
}

fn scale(word: &str) -> Option<f64> {
    match singular(word) {
        "thousand" | "k" => Some(1e3),
        "million" | "m" | "mn" | "mm" | "mio" => Some(1e6),
        "billion" | "bn" | "b" => Some(1e9),
        "trillion" | "tn" => Some(1e12),
        _ => None,
    }
}
