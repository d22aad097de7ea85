//! Rules over shared memory: which of them a version of a topic fulfils, and the alert that follows.
//!
//! | trigger             | fulfilled where                                                                            |
//! |---------------------|--------------------------------------------------------------------------------------------|
//! | `changed`           | the value is another than in the version before                                            |
//! | `confidence_above`  | the entry's confidence is above the rule's, and the value is another than the last one that was so  |
//! |                     | sure, or than in the version before where none was                                          |
//! | `moved_by`          | the number differs by at least so much from the one before, or from any within the time     |
//! | `beyond_percentile` | the number has been beyond the percentile for longer than the time, and was not at the      |
//! |                     | version before                                                                              |
//!
//! Values are compared as everywhere: numbers by their unit, as in estimates, which is how the unit of a rule is read; texts without regard to case and spacing. `null`, a blank text and a member
//! that is not there are no value: nothing is fulfilled by them, and what is written next is a first version.
//!
//! **Bounds.** Of a topic the last 512 numbers are looked at, of each of its first eight members that are numbers; for percentiles 128
//! older ones, too, the fewer the older they are. One version
//! fulfils at most 8 rules. Above `per_hour_max` alerts within an hour, of one agent, a rule that is fulfilled is noted with the entry and
//! tells nobody; so agents that write in reaction to an alert cannot keep each other awake without end.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{FiredRule, MemoryPut};
use concord_wire::payload::{
    ALERT_LIST_MAX, ALERTS_PER_ENTRY_MAX, Alert, AlertRule, AlertRules, AlertSource, AlertTrigger,
    REGIME_CHANGE, Remember,
};
use concord_wire::{AgentId, Timestamp, Token};
use serde_json::{Map, Value, json};

use super::canonical::{self, Canonical, canonical_estimate, with_unit};
use crate::text::{beginning, one_line};

mod history;
mod percentile;

pub use history::{Number, TopicHistory};

/// Most bytes of what was before and what is now, as JSON.
const STATE_BYTES_MAX: usize = 4_096;
/// Two moves are the same where they differ by less than this share: numbers in other units are not exact.
const EXACT: f64 = 1e-9;

/// The rules, as far as they hold for the entries of one agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Watched {
    /// The version of the rules; 0 where none were stored.
    pub version: u32,
    /// The rules that hold for whatever this agent writes under the topic.
    pub rules: Vec<AlertRule>,
    /// The version since which each rule looks for the same, by name.
    pub since: Arc<BTreeMap<Token, u32>>,
    /// Most alerts within an hour.
    pub per_hour_max: u32,
}

impl Watched {
    /// Those of the rules that look at an entry of this topic, by an agent that may alert everybody or may not.
    pub fn of(
        (version, rules): (u32, &AlertRules),
        topic: &Token,
        who: &AgentId,
        may_alert: bool,
    ) -> Self {
        let holds = |rule: &&AlertRule| match rule.agents.is_empty() {
            true => may_alert,
            false => rule.agents.contains(who),
        };
        Self {
            version,
            rules: rules.about(topic).filter(holds).cloned().collect(),
            since: Arc::default(),
            per_hour_max: rules.per_hour_max,
        }
    }

    /// The version since which a rule looks for the same.
    fn since(&self, rule: &AlertRule) -> u32 {
        let since = self.since.get(&rule.name);
        since.copied().unwrap_or(self.version)
    }
}

/// What an entry is held against besides the rules.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The time of the entry.
    pub now: Timestamp,
    /// The value before; none at the first version.
    pub old: Option<&'a Value>,
    /// The numbers before.
    pub history: &'a TopicHistory,
    /// How many alerts the agent's entries have raised within the last hour.
    pub raised_within_hour: usize,
}

/// The rules that an entry fulfils, in their order.
pub fn fired(watched: &Watched, entry: &Remember, known: &Known<'_>) -> Vec<FiredRule> {
    let fulfilled = watched.rules.iter().filter_map(|rule| {
        let (because, old, new) = because((rule, watched.since(rule)), entry, known)?;
        Some((rule, because, old, new))
    });
    let most = watched.per_hour_max as usize;
    let room = most.saturating_sub(known.raised_within_hour);
    fulfilled
        .take(ALERTS_PER_ENTRY_MAX)
        .enumerate()
        .map(|(place, (rule, because, old, new))| FiredRule {
            rule: rule.name.clone(),
            rules_version: watched.version,
            event_type: rule.event_type.clone(),
            priority: rule.priority,
            old: old.as_ref().map(bounded),
            new: Some(bounded(new)),
            because,
            recommended_actions: rule.recommended_actions.clone(),
            withheld: place >= room,
        })
        .collect()
}

/// What of an entry fulfils the rule, the same since this version of the rules, in words, with what the rule holds it against and what it looks
/// at now. A number that has moved is held against the one that it has moved from, and one that has stayed beyond a percentile against the last
/// one that was not: the version before may say the same as this one.
fn because<'a>(
    (rule, since): (&AlertRule, u32),
    entry: &'a Remember,
    known: &Known<'a>,
) -> Option<(String, Option<Value>, &'a Value)> {
    let looked_at = |value| looked_at(rule, value);
    let new = looked_at(&entry.value)?;
    let before = known.old.and_then(looked_at);
    let old = match &rule.when {
        // A change that nobody is sure of at first is told once somebody is: the versions between do not hide it.
        AlertTrigger::ConfidenceAbove { confidence } if before.is_some() => {
            let surely = known.history.stated_above(*confidence);
            surely.and_then(looked_at).or(before)
        }
        _ => before,
    };
    let is_changed =
        old.is_some_and(|old| canonical_estimate(old, None) != canonical_estimate(new, None));
    let (because, from) = match &rule.when {
        AlertTrigger::Changed {} if is_changed => ("it has changed".to_owned(), None),
        AlertTrigger::ConfidenceAbove { confidence } if is_changed => {
            let stated = entry.confidence.filter(|stated| stated > confidence)?;
            let because =
                format!("it has changed, with a confidence of {stated}, above {confidence}");
            (because, None)
        }
        AlertTrigger::Changed {} | AlertTrigger::ConfidenceAbove { .. } => return None,
        AlertTrigger::MovedBy {
            by,
            unit,
            within_ms,
        } => {
            let (because, from) = moved(rule, new, known, (*by, unit.as_deref(), *within_ms))?;
            (because, Some(from))
        }
        AlertTrigger::BeyondPercentile {
            above,
            below,
            longer_than_ms,
            observations_min,
        } => {
            let terms = percentile::Terms {
                above: *above,
                below: *below,
                longer_than_ms: *longer_than_ms,
                observations_min: *observations_min as usize,
            };
            let (older, last, number) = series_of(rule, new, known)?;
            // What was told by a rule that is another now is not this extreme.
            let told = match known.history.fired_at(&rule.name) {
                (told, by) if by >= since => told,
                _ => 0,
            };
            let series = [older, last].concat();
            let (because, before) = percentile::newly_beyond(&series, &number, &terms, told)?;
            (because, Some(before))
        }
    };
    let old = match from {
        Some(number) if old.and_then(number_of) != Some(number) => Some(beside(new, number)),
        _ => old.cloned(),
    };
    Some((because, old, new))
}

fn number_of(value: &Value) -> Option<f64> {
    match canonical_estimate(value, None) {
        Canonical::Number { value, .. } => Some(value),
        _ => None,
    }
}

/// A number of the past, in the unit of the new one.
fn beside(new: &Value, number: f64) -> Value {
    let unit = with_unit(new).map(|(_, unit)| unit);
    let unit = unit.as_deref().filter(|unit| !unit.is_empty());
    let one = number_of(&json!({ "value": 1, "unit": unit })).unwrap_or(1.0);
    let number = canonical::rounded(number / one);
    match unit {
        Some(unit) => json!({ "value": number, "unit": unit }),
        None => json!(number),
    }
}

/// What the rule looks at of a value; none where there is nothing.
fn looked_at<'a>(rule: &AlertRule, value: &'a Value) -> Option<&'a Value> {
    let value = match &rule.field {
        Some(field) => value.get(field.as_str())?,
        None => value,
    };
    let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
    (!value.is_null() && !is_blank).then_some(value)
}

/// The older and the last numbers before in the dimension of the new one, and the new one.
fn series_of(
    rule: &AlertRule,
    new: &Value,
    known: &Known<'_>,
) -> Option<(Vec<Number>, Vec<Number>, Number)> {
    let Canonical::Number { value, dimension } = canonical_estimate(new, None) else {
        return None;
    };
    let (older, last) = known.history.series(rule.field.as_deref(), &dimension);
    let version = known.history.versions().saturating_add(1);
    Some((older, last, Number::of(version, known.now, value)))
}

fn moved(
    rule: &AlertRule,
    new: &Value,
    known: &Known<'_>,
    (by, unit, within_ms): (f64, Option<&str>, Option<u64>),
) -> Option<(String, f64)> {
    let (
        Canonical::Number {
            value: least,
            dimension,
        },
        Canonical::Number { value: one, .. },
    ) = (
        canonical_estimate(&json!(by), unit),
        canonical_estimate(&json!(1), unit),
    )
    else {
        return None;
    };
    let Canonical::Number {
        dimension: of_new, ..
    } = canonical_estimate(new, None)
    else {
        return None;
    };
    if of_new != dimension {
        return None;
    }
    let (_, series, number) = series_of(rule, new, known)?;
    let (since, _) = known.history.fired_at(&rule.name);
    let before: Vec<&Number> = match within_ms {
        None => series.last().into_iter().collect(),
        Some(within_ms) => {
            let is_within = |one: &&Number| number.at.millis_since(one.at) <= within_ms;
            // What stood when the time began is the last number before it.
            let stood = series.iter().rev().find(|one| !is_within(one));
            let within = series.iter().filter(is_within);
            let all = stood.into_iter().chain(within);
            all.filter(|one| one.version >= since).collect()
        }
    };
    let distance = |other: &Number| (number.value - other.value).abs();
    let farthest = before
        .into_iter()
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let is_enough = distance(farthest) >= least * (1.0 - EXACT);
    let direction = match number.value.total_cmp(&farthest.value) {
        Ordering::Less => "down",
        _ => "up",
    };
    is_enough.then(|| {
        let (moved, unit) = (rounded(distance(farthest) / one), unit.unwrap_or(""));
        let space = if unit.is_empty() { "" } else { " " };
        let because = format!(
            "it has moved {direction} by {moved}{space}{unit} since version {}",
            farthest.version
        );
        (because, farthest.value)
    })
}

/// A number without the dust of its conversion.
fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded } else { value }
}

/// A value as an alert repeats it: whole, or as the beginning of its text.
fn bounded(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= STATE_BYTES_MAX {
        return value.clone();
    }
    json!(format!("{} ...", beginning(&text, STATE_BYTES_MAX / 8)))
}

/// The id of the alert that a rule raises about a version of a topic.
pub fn alert_id(put: &MemoryPut, fired: &FiredRule) -> Token {
    let (who, topic) = (&put.heard.agent_id, &put.entry.topic);
    let (version, rule) = (put.version, &fired.rule);
    Token::derived(&format!("alert/rule/{who}/{topic}/{version}/{rule}"))
}

/// The alert that follows from a rule that a version of a topic fulfils. Implications and recommended actions are those that the
/// value has as members; what has no room in an alert stays in memory, and the alert says so.
pub fn alert_of(put: &MemoryPut, fired: &FiredRule) -> Alert {
    let entry = &put.entry;
    let member = |name: &str| entry.value.get(name);
    let implications = member("implications").and_then(Value::as_object);
    let listed = member("recommended_actions").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str);
    let actions = listed
        .map(str::to_owned)
        .chain(fired.recommended_actions.clone());
    let mut alert = Alert {
        confidence: entry.confidence,
        evidence: entry.evidence.clone(),
        implications: implications.cloned().unwrap_or_default(),
        recommended_actions: actions.take(ALERT_LIST_MAX).collect(),
        source: Some(AlertSource {
            rule: fired.rule.clone(),
            rules_version: fired.rules_version,
            agent: put.heard.agent_id.clone(),
            topic: entry.topic.clone(),
            version: put.version,
            because: fired.because.clone(),
        }),
        ..Alert::of(fired.event_type.clone())
    };
    if fired.event_type == REGIME_CHANGE {
        alert.old_regime = fired.old.as_ref().map(name_of);
        alert.new_regime = fired.new.as_ref().map(name_of);
    } else {
        alert.old_state = fired.old.clone();
        alert.new_state = fired.new.clone();
    }
    if alert.check("").is_err() {
        let (who, topic, version) = (&put.heard.agent_id, &entry.topic, put.version);
        alert.implications = Map::new();
        alert.recommended_actions = Vec::new();
        alert.evidence = vec![format!(
            "The rest is in the memory of {who}: version {version} of {topic}."
        )];
    }
    alert
}

/// A regime as it is named: short enough for a name.
fn name_of(value: &Value) -> String {
    const CHARACTERS: usize = 60;
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    match one_line(text.trim(), CHARACTERS) {
        name if name.trim().is_empty() => "unnamed".to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests;
