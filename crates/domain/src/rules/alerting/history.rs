//! The numbers of a topic, as far as rules look at them.

use std::collections::{BTreeMap, VecDeque};

use concord_events::MemoryPut;
use concord_wire::payload::ALERT_HISTORY_MAX;
use concord_wire::{Timestamp, Token};
use serde_json::Value;

use crate::rules::canonical::{Canonical, canonical};

/// Most series of one topic: the value itself, and members of it.
const SERIES_MAX: usize = 8;
/// Most bytes of the name of a member that is followed.
const NAME_BYTES_MAX: usize = 256;

/// A number that a version of a topic stated, in the base unit of its dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The version.
    pub version: u64,
    /// The time at which it was written.
    pub at: Timestamp,
    /// The number.
    pub value: f64,
}

/// What rules know of a topic beside its last version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicHistory {
    /// The last numbers, the oldest first, by member (blank for the value itself) and dimension.
    series: BTreeMap<(String, String), VecDeque<Number>>,
    /// The last version by which each rule was fulfilled.
    fired: BTreeMap<Token, u64>,
    versions: u64,
}

impl TopicHistory {
    /// How many versions there are.
    pub fn versions(&self) -> u64 {
        self.versions
    }

    /// The numbers that a member, or the value itself, has had in a dimension; the oldest first.
    pub(super) fn series(
        &self,
        field: Option<&str>,
        dimension: &str,
    ) -> impl Iterator<Item = &Number> {
        let key = (field.unwrap_or_default().to_owned(), dimension.to_owned());
        self.series.get(&key).into_iter().flatten()
    }

    /// The last version by which a rule was fulfilled; 0 where there is none.
    pub(super) fn fired_at(&self, rule: &Token) -> u64 {
        self.fired.get(rule).copied().unwrap_or_default()
    }

    /// Takes a version into account that was written.
    pub fn note(&mut self, put: &MemoryPut, at: Timestamp) {
        self.versions = put.version;
        self.follow("", &put.entry.value, put.version, at);
        if let Value::Object(members) = &put.entry.value {
            for (name, value) in members {
                self.follow(name, value, put.version, at);
            }
        }
        for fired in put.fired.iter().filter(|fired| !fired.withheld) {
            self.fired.insert(fired.rule.clone(), put.version);
        }
    }

    fn follow(&mut self, name: &str, value: &Value, version: u64, at: Timestamp) {
        let Canonical::Number { value, dimension } = canonical(value, None) else {
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
        if series.len() >= ALERT_HISTORY_MAX {
            series.pop_front();
        }
        series.push_back(Number { version, at, value });
    }
}
