//! Facts of a contract: sums, lengths of time, dates, places.
//!
//! The reviewers use different rules on purpose. One takes the first notice period, another one the
//! longest. Both can be defended, and a contract in which they differ needs a second look.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::rules::FactRule;
use crate::text::Sentence;
use crate::wording::{Duration, Unit, Wording};

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum FactKind {
    /// The sum in US dollars that limits the liability of a party.
    #[serde(rename = "liability/cap_amount")]
    LiabilityCap,
    /// The notice that ends the agreement.
    #[serde(rename = "termination/notice_period")]
    NoticePeriod,
    /// How long the agreement runs at first.
    #[serde(rename = "agreement/initial_term")]
    InitialTerm,
    /// Whether the agreement renews itself.
    #[serde(rename = "renewal/automatic")]
    AutomaticRenewal,
    /// The place whose law governs the agreement.
    #[serde(rename = "agreement/governing_law")]
    GoverningLaw,
    /// The date from which the agreement has effect.
    #[serde(rename = "agreement/effective_date")]
    EffectiveDate,
}

impl FactKind {
    /// The subject and the attribute of the fact, as findings write them.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::LiabilityCap => ("liability", "cap_amount"),
            Self::NoticePeriod => ("termination", "notice_period"),
            Self::InitialTerm => ("agreement", "initial_term"),
            Self::AutomaticRenewal => ("renewal", "automatic"),
            Self::GoverningLaw => ("agreement", "governing_law"),
            Self::EffectiveDate => ("agreement", "effective_date"),
        }
    }

    /// Returns true if a conflict names the fact like this: `<subject>/<attribute>`.
    pub(crate) fn is_named(self, name: &str) -> bool {
        name.split_once('/') == Some(self.names())
    }
}

/// Which of several values a reviewer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pick {
    /// The first one in the text.
    #[default]
    First,
    /// The last one in the text.
    Last,
    /// The largest number, the longest time, the latest date.
    Largest,
    /// The smallest number, the shortest time, the earliest date.
    Smallest,
}

/// A fact with the sentence that states it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact<'a> {
    /// What the fact is about.
    pub(crate) kind: FactKind,
    /// The value: a number, a text or a truth value.
    pub(crate) value: Value,
    /// The unit of a number.
    pub(crate) unit: Option<&'static str>,
    /// The sentence that states it.
    pub(crate) sentence: &'a Sentence,
    /// The measure by which values are compared: dollars, days, or the order of dates.
    size: f64,
}

/// Reads the fact of `rule` from those sentences that match the rule or that `is_accepted`
/// approves.
pub(crate) fn read<'a>(
    rule: &FactRule,
    wording: &Wording,
    sentences: &'a [Sentence],
    is_accepted: impl Fn(&Sentence) -> bool,
) -> Option<Fact<'a>> {
    let mut stated = sentences
        .iter()
        .filter(|sentence| rule.is_match(sentence) || is_accepted(sentence))
        .flat_map(|sentence| stated(rule, wording, sentence));
    match rule.pick {
        Pick::First => stated.next(),
        Pick::Last => stated.last(),
        Pick::Largest => {
            stated.reduce(|best, next| if next.size > best.size { next } else { best })
        }
        Pick::Smallest => {
            stated.reduce(|best, next| if next.size < best.size { next } else { best })
        }
    }
}

/// The values of the kind of `rule` that `sentence` states, in order.
pub(crate) fn stated<'a>(
    rule: &FactRule,
    wording: &Wording,
    sentence: &'a Sentence,
) -> Vec<Fact<'a>> {
    let fact = |value: Value, unit: Option<&'static str>, size: f64| Fact {
        kind: rule.fact,
        value,
        unit,
        sentence,
        size,
    };
    let duration = |length: Duration| {
        let unit = rule.unit.unwrap_or(length.unit);
        let count = number(length.days() / unit.days());
        fact(count, Some(unit.name()), length.days())
    };
    let text = sentence.text();
    match rule.fact {
        FactKind::LiabilityCap => {
            let sums = wording.dollars(text).into_iter();
            sums.map(|sum| fact(number(sum), Some("USD"), sum))
                .collect()
        }
        FactKind::NoticePeriod => {
            let lengths = wording.durations(sentence).into_iter();
            lengths
                .filter(|length| length.is_notice)
                .map(duration)
                .collect()
        }
        FactKind::InitialTerm => {
            let is_term = |length: &Duration| {
                matches!(length.unit, Unit::Months | Unit::Years) && !length.is_notice
            };
            let lengths = wording.durations(sentence).into_iter();
            lengths.filter(is_term).map(duration).collect()
        }
        FactKind::AutomaticRenewal => {
            let is_automatic = wording.is_automatic_renewal(sentence);
            vec![fact(
                json!(is_automatic),
                None,
                f64::from(u8::from(is_automatic)),
            )]
        }
        FactKind::GoverningLaw => {
            let places = wording.places(text).into_iter();
            places.map(|place| fact(json!(place), None, 0.0)).collect()
        }
        FactKind::EffectiveDate => {
            let dates = wording.dates(sentence).into_iter();
            dates
                .map(|date| fact(json!(iso_date(date)), None, f64::from(date)))
                .collect()
        }
    }
}

/// `yyyymmdd` as `yyyy-mm-dd`.
fn iso_date(date: u32) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        date / 10_000,
        date / 100 % 100,
        date % 100
    )
}

/// A number to two places. A whole number has no point, because some readers of JSON tell 30.0 from
/// 30.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the branch is taken for whole numbers only"
)]
fn number(value: f64) -> Value {
    let value = (value * 100.0).round() / 100.0;
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Returns true if two values with their units mean the same: 1 month is 30 days.
pub(crate) fn is_same(left: (&Value, Option<&str>), right: (&Value, Option<&str>)) -> bool {
    let size = |(value, unit): (&Value, Option<&str>)| {
        let factor = unit.and_then(Unit::parse).map_or(1.0, Unit::days);
        value.as_f64().map(|number| number * factor)
    };
    match (size(left), size(right)) {
        (Some(left), Some(right)) => (left - right).abs() < 0.01 * left.abs().max(1.0),
        _ => match (left.0.as_str(), right.0.as_str()) {
            (Some(left), Some(right)) => left.trim().eq_ignore_ascii_case(right.trim()),
            _ => left.0 == right.0,
        },
    }
}
