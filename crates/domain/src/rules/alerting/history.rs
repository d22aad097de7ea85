//! The numbers of a topic, as far as rules look at them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use concord_events::MemoryPut;
use concord_wire::payload::ALERT_HISTORY_MAX;
use concord_wire::{Timestamp, Token};
use serde_json::Value;

use crate::rules::canonical::{Canonical, canonical};

/// Most series of one topic: the value itself, and members of it.
const SERIES_MAX: usize = 8;
/// Most values that are kept for the confidence with which they were stated.
const STATED_MAX: usize = 16;
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
    /// The last values, the oldest first, each stated with less confidence than the one before it: what comes later and is as sure
    /// takes the place of what is not surer. Shared, because a history is copied whenever it is written.
    stated: VecDeque<(f64, Arc<Value>)>,
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

    /// The last value that was stated with more confidence than this. Of a topic that has become less sure more than
    /// [`STATED_MAX`] times in a row the surest are forgotten.
    pub(super) fn stated_above(&self, confidence: f64) -> Option<&Value> {
        let mut latest_first = self.stated.iter().rev();
        let (_, value) = latest_first.find(|(stated, _)| *stated > confidence)?;
        Some(value)
    }

    /// The last version by which a rule was fulfilled; 0 where there is none.
    pub(super) fn fired_at(&self, rule: &Token) -> u64 {
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
            self.fired.insert(fired.rule.clone(), put.version);
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
