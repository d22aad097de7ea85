//! Rules over shared memory: what agents write there raises an alert by itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ALERT_LIST_MAX, check_name};
use crate::envelope::Priority;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, Token};

/// Most rules of an installation.
pub const ALERT_RULES_MAX: usize = 64;
/// Most bytes of all rules, as JSON.
pub const ALERT_RULES_BYTES_MAX: usize = 65_536;
/// How many of a topic's last versions a rule looks at.
pub const ALERT_HISTORY_MAX: usize = 512;
/// Most rules that one version of a topic can fulfil: the first of them, in the order of the rules.
pub const ALERTS_PER_ENTRY_MAX: usize = 8;

/// The rules of an installation. Operators store them whole; an entry of memory outside cases is held against each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertRules {
    /// The rules; none raises an alert by itself where there is none.
    #[serde(default)]
    #[schemars(length(max = ALERT_RULES_MAX))]
    pub rules: Vec<AlertRule>,
    /// Most alerts that what one agent writes raises within an hour, by all rules together. What more rules say is kept with the entry.
    #[serde(default = "per_hour_usual")]
    #[schemars(range(min = 1, max = 1_000))]
    pub per_hour_max: u32,
    /// What follows from a change of regime, whoever or whatever has raised the alert.
    #[serde(default)]
    pub regime_change: RegimeTerms,
}

/// What follows from the alert that the regime has changed, beside what always does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegimeTerms {
    /// Within which time whoever has raised it is to report, in milliseconds; 0 where no report is awaited.
    pub report_within_ms: u64,
    /// At which gates the flagged cases show it; at every gate where none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub gates: Vec<String>,
}

impl Default for RegimeTerms {
    fn default() -> Self {
        Self {
            report_within_ms: 2 * 3_600_000,
            gates: Vec::new(),
        }
    }
}

impl Default for AlertRules {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            per_hour_max: per_hour_usual(),
            regime_change: RegimeTerms::default(),
        }
    }
}

fn per_hour_usual() -> u32 {
    12
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertRule {
    /// The name, of its own among the rules.
    pub name: Token,
    /// The topic of the entries that it looks at; with a `*` at the end every topic that begins so.
    pub topic: String,
    /// Whose entries it looks at; those of whoever has the role alerter where nobody is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub agents: Vec<AgentId>,
    /// The member of the entry's value that it looks at; the whole value where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// When it raises an alert.
    pub when: AlertTrigger,
    /// What the alert says has happened, for example `regime_change`.
    pub event_type: String,
    /// At which priority everybody is told.
    #[serde(default = "priority_usual")]
    pub priority: Priority,
    /// What whoever is told should do, beside what the entry itself recommends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ALERT_LIST_MAX))]
    pub recommended_actions: Vec<String>,
}

fn priority_usual() -> Priority {
    Priority::SystemCritical
}

/// When a rule raises an alert. The first version of a topic raises none: nothing has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AlertTrigger {
    /// The value is another than in the version before, whatever the confidence.
    Changed {},
    /// The value is another than in the version before, and the confidence is above this.
    ConfidenceAbove {
        /// 0 to 1. An entry without a confidence is not above anything.
        #[schemars(range(min = 0.0, max = 1.0))]
        confidence: f64,
    },
    /// The number has moved by so much.
    MovedBy {
        /// How far at least, in `unit`.
        by: f64,
        /// The unit of `by`, for example `bp`; plain numbers where it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
        /// Since when, in milliseconds before the entry, but not before the rule last raised an alert about the topic; since the
        /// version before where it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within_ms: Option<u64>,
    },
    /// The number has been above or below what was usual of the topic, all the time for longer than this.
    BeyondPercentile {
        /// Above this percentile of the topic's own history, as a share.
        #[serde(default = "above_usual")]
        #[schemars(range(min = 0.5, max = 1.0))]
        above: f64,
        /// Or below this one.
        #[serde(default = "below_usual")]
        #[schemars(range(min = 0.0, max = 0.5))]
        below: f64,
        /// For longer than this, in milliseconds.
        #[serde(default = "three_days_ms")]
        longer_than_ms: u64,
        /// How many numbers the history needs before.
        #[serde(default = "observations_usual")]
        #[schemars(range(min = 2, max = 256))]
        observations_min: u32,
    },
}

fn above_usual() -> f64 {
    0.95
}

fn below_usual() -> f64 {
    0.05
}

fn three_days_ms() -> u64 {
    3 * 24 * 3_600_000
}

fn observations_usual() -> u32 {
    20
}

/// Which rule has raised an alert, and by which entry of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertSource {
    /// The rule.
    pub rule: Token,
    /// The version of the rules.
    pub rules_version: u32,
    /// Whose entry it was.
    pub agent: AgentId,
    /// Its topic.
    pub topic: Token,
    /// Its version.
    pub version: u64,
    /// What of it fulfilled the rule, in words.
    pub because: String,
}

impl AlertRules {
    /// Checks the form; `pointer` is where the rules stand.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        let at = |field: &str| format!("{pointer}/{field}");
        if self.rules.len() > ALERT_RULES_MAX {
            let (many, most) = (self.rules.len(), ALERT_RULES_MAX);
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                at("rules"),
                format!("There are {many} rules; an installation has at most {most}."),
                "Let one rule look at several topics: indicator_* stands for all that begin so.",
            ));
        }
        if !(1..=1_000).contains(&self.per_hour_max) {
            return Err(Fault::invalid(
                at("per_hour_max"),
                format!("{} alerts an hour are not accepted.", self.per_hour_max),
                "Give a number from 1 to 1000; without rules nothing raises an alert by itself.",
            ));
        }
        self.regime_change.check(&at("regime_change"))?;
        let mut names = BTreeSet::new();
        for (place, rule) in self.rules.iter().enumerate() {
            let at_rule = format!("{pointer}/rules/{place}");
            rule.check(&at_rule)?;
            if !names.insert(&rule.name) {
                return Err(Fault::invalid(
                    format!("{at_rule}/name"),
                    format!("Two rules have the name {}.", rule.name),
                    "Alerts name their rule: give each a name of its own.",
                ));
            }
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > ALERT_RULES_BYTES_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                pointer,
                format!(
                    "The rules have {bytes} bytes; at most {ALERT_RULES_BYTES_MAX} are accepted."
                ),
                "Recommend less in each of them.",
            ));
        }
        Ok(())
    }

    /// The rules that look at entries of this topic.
    pub fn about<'a>(&'a self, topic: &'a Token) -> impl Iterator<Item = &'a AlertRule> {
        self.rules.iter().filter(move |rule| rule.is_about(topic))
    }
}

impl RegimeTerms {
    /// The longest time within which a report can be awaited: 30 days.
    const REPORT_MS_MAX: u64 = 30 * 24 * 3_600_000;
    const GATES_MAX: usize = 32;

    fn check(&self, pointer: &str) -> Result<(), Fault> {
        if self.report_within_ms > Self::REPORT_MS_MAX {
            return Err(Fault::invalid(
                format!("{pointer}/report_within_ms"),
                format!("{} is not accepted.", self.report_within_ms),
                "Give milliseconds, at most 30 days; 0 where no report is awaited.",
            ));
        }
        if self.gates.len() > Self::GATES_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                format!("{pointer}/gates"),
                format!(
                    "There are {}; at most {} are accepted.",
                    self.gates.len(),
                    Self::GATES_MAX
                ),
                "Name none, and every gate shows it.",
            ));
        }
        for (place, gate) in self.gates.iter().enumerate() {
            check_name(&format!("{pointer}/gates/{place}"), gate)?;
        }
        Ok(())
    }
}

impl AlertRule {
    /// Whether it looks at entries of this topic.
    pub fn is_about(&self, topic: &Token) -> bool {
        match self.topic.strip_suffix('*') {
            Some(start) => topic.as_str().starts_with(start),
            None => topic.as_str() == self.topic,
        }
    }

    fn check(&self, pointer: &str) -> Result<(), Fault> {
        let at = |field: &str| format!("{pointer}/{field}");
        let start = self.topic.strip_suffix('*').unwrap_or(&self.topic);
        let is_whole = start.len() == self.topic.len();
        if (is_whole || !start.is_empty()) && Token::new(start).is_err() {
            return Err(Fault::invalid(
                at("topic"),
                format!("{:?} is no topic of memory.", self.topic),
                "Name one, as in `concord memory list`, or the beginning of several with a * at the end.",
            ));
        }
        for (field, text) in [
            ("event_type", self.event_type.as_str()),
            ("field", self.field.as_deref().unwrap_or("value")),
        ] {
            check_name(&at(field), text)?;
            if text.trim().is_empty() {
                return Err(Fault::invalid(
                    at(field),
                    "It is blank.",
                    "Name it, for example regime_change.",
                ));
            }
        }
        for (field, many, most) in [
            (
                "recommended_actions",
                self.recommended_actions.len(),
                ALERT_LIST_MAX,
            ),
            ("agents", self.agents.len(), 64),
        ] {
            if many > most {
                return Err(Fault::new(
                    ErrorCode::CapacityExceeded,
                    at(field),
                    format!("There are {many}; at most {most} are accepted."),
                    "Name those that matter most.",
                ));
            }
        }
        self.when.check(&at("when"))
    }
}

impl AlertTrigger {
    /// The name of its kind, as it is written.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Changed {} => "changed",
            Self::ConfidenceAbove { .. } => "confidence_above",
            Self::MovedBy { .. } => "moved_by",
            Self::BeyondPercentile { .. } => "beyond_percentile",
        }
    }

    fn check(&self, pointer: &str) -> Result<(), Fault> {
        let at = |field: &str| format!("{pointer}/{}/{field}", self.as_str());
        let wrong = |field: &str, value: &dyn std::fmt::Display, advice: &str| {
            let what = format!("{value} is not accepted.");
            Err(Fault::invalid(at(field), what, advice))
        };
        match self {
            Self::Changed {} => Ok(()),
            Self::ConfidenceAbove { confidence } if !(0.0..=1.0).contains(confidence) => wrong(
                "confidence",
                confidence,
                "Give a share from 0 to 1: 0.8 is 80 %.",
            ),
            Self::MovedBy { by, .. } if !(by.is_finite() && *by > 0.0) => wrong(
                "by",
                by,
                "Give a number above 0; moves up and down both count.",
            ),
            Self::MovedBy {
                unit: Some(unit), ..
            } => check_name(&at("unit"), unit),
            Self::BeyondPercentile { above, .. } if !(0.5..=1.0).contains(above) => wrong(
                "above",
                above,
                "Give a share from 0.5 to 1: 0.95 is the 95th percentile.",
            ),
            Self::BeyondPercentile { below, .. } if !(0.0..=0.5).contains(below) => wrong(
                "below",
                below,
                "Give a share from 0 to 0.5: 0.05 is the 5th percentile.",
            ),
            Self::BeyondPercentile {
                observations_min, ..
            } if !(2..=256).contains(observations_min) => wrong(
                "observations_min",
                observations_min,
                "Give a number from 2 to 256: of a topic's history the last 512 versions are looked at.",
            ),
            Self::ConfidenceAbove { .. } | Self::MovedBy { .. } | Self::BeyondPercentile { .. } => {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
