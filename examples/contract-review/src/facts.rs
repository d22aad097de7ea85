//! Facts read from a contract: sums, lengths of time, dates, places.
//!
//! The readers use different rules on purpose. One takes the first notice period it meets, another
//! the longest; both are defensible, and where they differ the contract deserves a second look.

use serde_json::{Value, json};

use crate::numbers::{self, Duration, Unit};
use crate::pattern::{self, Pattern};
use crate::places;
use crate::text::Sentence;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// The highest sum of US dollars for which a party answers.
    LiabilityCap,
    /// The notice that ends the agreement.
    NoticePeriod,
    /// How long the agreement runs at first.
    InitialTerm,
    /// Whether it renews itself.
    RenewalAutomatic,
    /// Whose law governs.
    GoverningLaw,
    /// From when it has effect.
    EffectiveDate,
}

impl Attribute {
    /// The subject and the attribute, as they are written in findings.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::LiabilityCap => ("liability", "cap_amount"),
            Self::NoticePeriod => ("termination", "notice_period"),
            Self::InitialTerm => ("agreement", "initial_term"),
            Self::RenewalAutomatic => ("renewal", "automatic"),
            Self::GoverningLaw => ("agreement", "governing_law"),
            Self::EffectiveDate => ("agreement", "effective_date"),
        }
    }

    /// The wording that any reader accepts as a statement of this fact when it is shown one.
    fn confirmations(self) -> &'static [&'static str] {
        match self {
            Self::LiabilityCap => &["liab*|damages ... exceed*|limited|greater|more"],
            Self::NoticePeriod => &[
                "terminat*|cancel*|renew* ... notice",
                "notice ... terminat*|cancel*|renew*",
            ],
            Self::InitialTerm => &[
                "term|period ... # .. months|years|year",
                "continue ... # .. months|years|year",
            ],
            Self::RenewalAutomatic => &["renew*|extend*"],
            Self::GoverningLaw => &[
                "govern*|construed|interpreted ... law|laws",
                "law|laws of ... apply|govern",
            ],
            Self::EffectiveDate => &["effective|dated|commence*|entered"],
        }
    }
}

/// Which of several candidates a reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first in the text.
    First,
    /// The last in the text.
    Last,
    /// The largest number, the longest time, the latest date.
    Most,
    /// The smallest number, the shortest time, the earliest date.
    Least,
}

/// One reader's way to a fact.
#[derive(Debug, Clone, Copy)]
pub struct FactRule {
    /// What is read.
    pub attribute: Attribute,
    /// Patterns of which one must occur in the sentence.
    pub any: &'static [&'static str],
    /// Patterns that rule a sentence out.
    pub unless: &'static [&'static str],
    /// Which candidate counts.
    pub pick: Pick,
    /// The unit that lengths of time are given in; `None` for the unit in the text.
    pub unit: Option<Unit>,
}

/// A fact with the sentence it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact<'a> {
    /// What it is about.
    pub attribute: Attribute,
    /// The value: a number, a text or a truth value.
    pub value: Value,
    /// The unit of a number.
    pub unit: Option<&'static str>,
    /// Where it stands.
    pub sentence: &'a Sentence,
}

/// A fact rule with its patterns compiled.
#[derive(Debug, Clone)]
pub struct FactReader {
    rule: FactRule,
    any: Vec<Pattern>,
    unless: Vec<Pattern>,
    confirm: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Candidate<'a> {
    value: Value,
    unit: Option<&'static str>,
    size: f64,
    sentence: &'a Sentence,
}

impl FactReader {
    /// Compiles `rule`.
    #[must_use]
    pub fn new(rule: FactRule) -> Self {
        Self {
            rule,
            any: Pattern::all(rule.any),
            unless: Pattern::all(rule.unless),
            confirm: Pattern::all(rule.attribute.confirmations()),
        }
    }

    /// What is read.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        self.rule.attribute
    }

    /// Whether the reader takes `sentence` for a statement of its fact unasked.
    #[must_use]
    pub fn accepts(&self, sentence: &Sentence) -> bool {
        pattern::any(&self.any, sentence) && !pattern::any(&self.unless, sentence)
    }

    /// Whether the reader takes `sentence` for a statement of its fact when it is shown to it.
    #[must_use]
    pub fn confirms(&self, sentence: &Sentence) -> bool {
        pattern::any(&self.confirm, sentence) && !self.candidates(sentence).is_empty()
    }

    /// Reads the fact from `sentences`; those that `admitted` approves count as well.
    #[must_use]
    pub fn read<'a>(
        &self,
        sentences: impl Iterator<Item = &'a Sentence>,
        admitted: impl Fn(&Sentence) -> bool,
    ) -> Option<Fact<'a>> {
        let candidates = sentences
            .filter(|sentence| self.accepts(sentence) || admitted(sentence))
            .flat_map(|sentence| self.candidates(sentence));
        let chosen = match self.rule.pick {
            Pick::First => candidates.reduce(|first, _| first),
            Pick::Last => candidates.reduce(|_, last| last),
            Pick::Most => {
                candidates.reduce(|best, next| if next.size > best.size { next } else { best })
            }
            Pick::Least => {
                candidates.reduce(|best, next| if next.size < best.size { next } else { best })
            }
        }?;
        Some(Fact {
            attribute: self.rule.attribute,
            value: chosen.value,
            unit: chosen.unit,
            sentence: chosen.sentence,
        })
    }

    fn candidates<'a>(&self, sentence: &'a Sentence) -> Vec<Candidate<'a>> {
        let plain = |value: Value, size: f64, unit| Candidate {
            value,
            unit,
            size,
            sentence,
        };
        match self.rule.attribute {
            Attribute::LiabilityCap => numbers::dollars(sentence.text())
                .into_iter()
                .map(|sum| plain(number(sum), sum, Some("USD")))
                .collect(),
            Attribute::NoticePeriod => self.lengths(sentence, near_notice(sentence)),
            Attribute::InitialTerm => self.lengths(sentence, terms(sentence)),
            Attribute::RenewalAutomatic => {
                let automatic = is_automatic(sentence);
                vec![plain(
                    json!(automatic),
                    if automatic { 1.0 } else { 0.0 },
                    None,
                )]
            }
            Attribute::GoverningLaw => places::places(sentence.text())
                .into_iter()
                .map(|place| plain(json!(place), 0.0, None))
                .collect(),
            Attribute::EffectiveDate => places::dates(sentence)
                .into_iter()
                .map(|date| plain(json!(date.to_string()), date.ordinal(), None))
                .collect(),
        }
    }

    fn lengths<'a>(&self, sentence: &'a Sentence, lengths: Vec<Duration>) -> Vec<Candidate<'a>> {
        lengths
            .into_iter()
            .map(|length| {
                let unit = self.rule.unit.unwrap_or(length.unit);
                Candidate {
                    value: number(length.in_unit(unit)),
                    unit: Some(unit.name()),
                    size: length.days(),
                    sentence,
                }
            })
            .collect()
    }
}

/// A number to two places, without a point when it is whole: to some readers of JSON 30.0 is not 30.
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

/// Lengths of time with the word "notice" close by.
fn near_notice(sentence: &Sentence) -> Vec<Duration> {
    const REACH: usize = 8;
    let words = sentence.words();
    let is_near = |at: usize| {
        words
            .get(at.saturating_sub(REACH)..words.len().min(at + REACH))
            .is_some_and(|around| {
                around
                    .iter()
                    .any(|word| word.starts_with("notice") || word == "notification")
            })
    };
    let mut lengths = numbers::durations(sentence);
    lengths.retain(|length| is_near(length.at));
    lengths
}

/// Lengths of time fit for a term: months or years, and not the time of a notice.
fn terms(sentence: &Sentence) -> Vec<Duration> {
    let notices = near_notice(sentence);
    let mut lengths = numbers::durations(sentence);
    lengths.retain(|length| {
        matches!(length.unit, Unit::Months | Unit::Years) && !notices.contains(length)
    });
    lengths
}

fn is_automatic(sentence: &Sentence) -> bool {
    ["automatic*", "unless ... notice", "unless .. terminated"]
        .iter()
        .any(|pattern| Pattern::new(pattern).matches(sentence))
}

/// Whether two fact values say the same, whatever the unit: 1 month is 30 days.
#[must_use]
pub fn same(left: (&Value, Option<&str>), right: (&Value, Option<&str>)) -> bool {
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
