//! The numbers of a topic, as far as rules look at them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use concord_events::MemoryPut;
use concord_wire::payload::ALERT_HISTORY_MAX;
use concord_wire::{Timestamp, Token};
use serde_json::Value;

use crate::rules::canonical::{Canonical, canonical_estimate};

/// Most series of one topic: the value itself, and members of it.
const SERIES_MAX: usize = 8;
/// Most values that are kept for the confidence with which they were stated.
const STATED_MAX: usize = 16;
/// Most bytes of the name of a member that is followed.
const NAME_BYTES_MAX: usize = 256;

/// Most older numbers of a series, besides the last ones.
const OLDER_MAX: usize = 128;

/// A number that a version of a topic stated, in the base unit of its dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The version.
    pub version: u64,
    /// The time at which it was written.
    pub at: Timestamp,
    /// The number.
    pub value: f64,
    /// The least of the numbers for which it stands: itself, and those after it that are not kept.
    pub least: f64,
    /// The greatest of them.
    pub greatest: f64,
}

impl Number {
    /// A number that stands for itself.
    pub fn of(version: u64, at: Timestamp, value: f64) -> Self {
        Self {
            version,
            at,
            value,
            least: value,
            greatest: value,
        }
    }
}

/// The numbers of a member in one dimension, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
struct Series {
    /// Before the last ones, the fewer the older they are, so that what is written every few minutes has a past of many days, too.
    older: Vec<Number>,
    /// The last ones, every one of them.
    last: VecDeque<Number>,
}

impl Series {
    fn push(&mut self, number: Number) {
        self.last.push_back(number);
        if self.last.len() > ALERT_HISTORY_MAX {
            self.older.extend(self.last.pop_front());
        }
        if self.older.len() > OLDER_MAX {
            self.thin(number.at);
        }
    }

    /// Lets one number stand for the one after it, too: where both together last the shortest time, compared with their age.
    fn thin(&mut self, now: Timestamp) {
        let share = |lasting: &[Number]| match lasting {
            [first, _, next] => {
                let age = now.millis_since(first.at).max(1);
                next.at.millis_since(first.at) as f64 / age as f64
            }
            _ => f64::INFINITY,
        };
        let shares = self.older.windows(3).map(share).enumerate();
        let Some((place, _)) = shares.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return;
        };
        let gone = self.older.remove(place + 1);
        if let Some(kept) = self.older.get_mut(place) {
            kept.least = kept.least.min(gone.least);
            kept.greatest = kept.greatest.max(gone.greatest);
        }
    }
}

/// What rules know of a topic beside its last version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicHistory {
    /// The numbers by member (blank for the value itself) and dimension.
    series: BTreeMap<(String, String), Series>,
    /// The last values, the oldest first, each stated with less confidence than the one before it: what comes later and is as sure
    /// takes the place of what is not surer. Shared, because a history is copied whenever it is written.
    stated: VecDeque<(f64, Arc<Value>)>,
    /// The last version by which each rule was fulfilled, and the version of the rules then.
    fired: BTreeMap<Token, (u64, u32)>,
    versions: u64,
}

impl TopicHistory {
    /// About how many bytes it takes, where a value takes so many.
    pub fn bytes_about(&self, value: usize) -> usize {
        let series = self.series.values();
        let numbers: usize = series.map(|one| one.older.len() + one.last.len()).sum();
        let stated = self.stated.len().saturating_mul(value);
        stated.saturating_add(numbers * size_of::<Number>())
    }

    /// How many versions there are.
    pub fn versions(&self) -> u64 {
        self.versions
    }

    /// The older and the last numbers that a member, or the value itself, has had in a dimension; the oldest first.
    pub(super) fn series(
        &self,
        field: Option<&str>,
        dimension: &str,
    ) -> (Vec<Number>, Vec<Number>) {
        let key = (field.unwrap_or_default().to_owned(), dimension.to_owned());
        let known = self.series.get(&key);
        known.map_or_else(Default::default, |series| {
            (series.older.clone(), series.last.iter().copied().collect())
        })
    }

    /// The last value that was stated with more confidence than this. Of a topic that has become less sure more than
    /// [`STATED_MAX`] times in a row the surest are forgotten.
    pub(super) fn stated_above(&self, confidence: f64) -> Option<&Value> {
        let mut latest_first = self.stated.iter().rev();
        let (_, value) = latest_first.find(|(stated, _)| *stated > confidence)?;
        Some(value)
    }

    /// The last version by which a rule was fulfilled, and the version of the rules then; 0 where there is none.
    pub(super) fn fired_at(&self, rule: &Token) -> (u64, u32) {
        self.fired.get(rule).copied().unwrap_or_default()
    }

    /// Takes a version into account that was written.
    pub fn note(&mut self, put: &MemoryPut, at: Timestamp) {
        self.versions = put.version;
        if let Some(confidence) = put.entry.confidence {
            self.state(confidence, &put.entry.value);
        }
        self.follow("", &put.entry.value, put.version, at);
        if let Value::Object(members) = &put.entry.value {
            for (name, value) in members {
                self.follow(name, value, put.version, at);
            }
        }
        for fired in put.fired.iter().filter(|fired| !fired.withheld) {
            let at = (put.version, fired.rules_version);
            self.fired.insert(fired.rule.clone(), at);
        }
    }

    fn state(&mut self, confidence: f64, value: &Value) {
        while self
            .stated
            .back()
            .is_some_and(|(before, _)| *before <= confidence)
        {
            self.stated.pop_back();
        }
        if self.stated.len() >= STATED_MAX {
            self.stated.pop_front();
        }
        self.stated.push_back((confidence, Arc::new(value.clone())));
    }

    fn follow(&mut self, name: &str, value: &Value, version: u64, at: Timestamp) {
        let Canonical::Number { value, dimension } = canonical_estimate(value, None) else {
            return;
        };
        if name.len() > NAME_BYTES_MAX || dimension.len() > NAME_BYTES_MAX {
            return;
        }
        let key = (name.to_owned(), dimension);
        if self.series.len() >= SERIES_MAX && !self.series.contains_key(&key) {
            return;
        }
        let series = self.series.entry(key).or_default();
        series.push(Number::of(version, at, value));
    }
}
