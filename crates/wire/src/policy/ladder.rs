//! The rules of the ladder: which disagreements climb it, and how long each level takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::id::AgentId;
use crate::payload::{Calendar, CredibilityVersion, DebatePriority, Overflow, check_name};

/// What happens to detected conflicts.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConflictHandling {
    /// Discussion, then the vote.
    #[default]
    Vote,
    /// Discussion, then from level 2 on the ladder.
    Ladder,
    /// Discussion, then the vote; the ladder from level 2 on when the vote's margin is small.
    VoteThenLadder,
}

/// Which of two values is the more cautious one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CautionRule {
    /// The lower number.
    Lowest,
    /// The higher number.
    Highest,
    /// The one that stands earlier in this list; others count as least cautious.
    Order(Vec<String>),
}

/// How long each level takes, in milliseconds. The defaults are those of the specification's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LevelTimes {
    /// Level 1: until the challenged agent acknowledges.
    pub acknowledge_ms: u64,
    /// Level 1: until it gives evidence.
    pub evidence_ms: u64,
    /// Level 1: until the challenger says whether the evidence settles it.
    pub evaluation_ms: u64,
    /// Level 2: how long a mediator agent may take for an opinion; track records are compared then.
    pub opinion_ms: u64,
    /// Level 2: after this time the debate goes to a person whatever has happened.
    pub mediation_ms: u64,
    /// Level 3: until a person rules.
    pub person_ms: u64,
    /// Level 4: how long the provisional decision stands before it waits for the gate.
    pub provisional_ms: u64,
}

impl Default for LevelTimes {
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        const HOUR: u64 = 60 * MINUTE;
        Self {
            acknowledge_ms: 15 * MINUTE,
            evidence_ms: HOUR,
            evaluation_ms: HOUR,
            opinion_ms: 10 * MINUTE,
            mediation_ms: HOUR,
            person_ms: 6 * HOUR,
            provisional_ms: 24 * HOUR,
        }
    }
}

/// The rules of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LadderPolicy {
    /// With `vote_then_ladder`: a vote whose margin is below this share of all weight climbs the ladder.
    pub vote_margin_min: f64,
    /// The formula by which track records become credibility.
    pub credibility: CredibilityVersion,
    /// An agent that is asked for an opinion at level 2. It never replaces the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mediator: Option<AgentId>,
    /// How long each level takes.
    pub times: LevelTimes,
    /// The same for debates of one priority, in place of `times`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub times_by_priority: BTreeMap<DebatePriority, LevelTimes>,
    /// Every time is divided by this, for tests and demonstrations: 3600 makes an hour a second.
    pub time_scale: u32,
    /// The hours in which level 3 runs; around the clock when absent, and when times are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<Calendar>,
    /// The priority of detected conflicts.
    pub priority: DebatePriority,
    /// Whether a detected conflict is on the critical path, whatever `priority` says, when analyses of the case rest on what it is about.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub critical_where_used: bool,
    /// The domain of debates: which expertise they need, who may review them, and in which field track records count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// What happens to a debate if the review queue is full.
    pub overflow: Overflow,
    /// Debates that may wait for a person; more overflow.
    pub queue_max: u32,
    /// Which value of a metric is the cautious one, beside the rules there are and before them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub caution: BTreeMap<String, CautionRule>,
    /// Where any are named, of all registered sources of outcomes only these are heard about the case. Naming somebody gives
    /// them no right: an operator does that, with the role `outcome_source`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outcome_sources: Vec<AgentId>,
    /// Whether a gate can be passed with a provisional decision that nobody has reviewed. It is recorded.
    pub pass_unreviewed: bool,
    /// Challenges accepted in one case.
    pub challenges_max: u32,
    /// Challenges accepted of one challenger in one case, beside `challenges_max`.
    pub challenges_per_challenger: u32,
    /// How often one disagreement may be debated again.
    pub redebates_max: u32,
    /// How many reviewers must agree on a review, or on passing a gate, before it counts: 1 or 2.
    pub reviewers_min: u32,
    /// Whether rulings and reviews count only with a signature of the key that is registered with the person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Whether a review must name the digest of what the reviewer saw, as every ruling does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub digest_required: bool,
}

impl Default for LadderPolicy {
    fn default() -> Self {
        Self {
            vote_margin_min: 0.2,
            credibility: CredibilityVersion::default(),
            mediator: None,
            times: LevelTimes::default(),
            times_by_priority: BTreeMap::new(),
            time_scale: 1,
            calendar: None,
            priority: DebatePriority::Valuation,
            critical_where_used: false,
            domain: None,
            overflow: Overflow::default(),
            queue_max: 100,
            caution: BTreeMap::new(),
            outcome_sources: Vec::new(),
            pass_unreviewed: false,
            challenges_max: 8,
            challenges_per_challenger: 2,
            redebates_max: 2,
            reviewers_min: 1,
            signed: false,
            digest_required: false,
        }
    }
}

impl LadderPolicy {
    /// Whether every rule is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The times of a debate of this priority, as they are written.
    pub fn times_of(&self, priority: DebatePriority) -> &LevelTimes {
        self.times_by_priority.get(&priority).unwrap_or(&self.times)
    }

    /// A time as it runs: at least a millisecond.
    pub fn scaled(&self, ms: u64) -> u64 {
        (ms / u64::from(self.time_scale.max(1))).max(1)
    }

    /// The calendar that level 3 keeps.
    pub fn working_hours(&self) -> Option<&Calendar> {
        self.calendar.as_ref().filter(|_| self.time_scale <= 1)
    }

    /// Checks ranges; `pointer` is where this stands, for the fault.
    pub(super) fn check(&self, pointer: &str) -> Result<(), Fault> {
        if !(0.0..=1.0).contains(&self.vote_margin_min) {
            let margin = self.vote_margin_min.to_string();
            return Err(super::out_of_range(
                pointer,
                "vote_margin_min",
                &margin,
                "0 to 1",
            ));
        }
        let whole = [
            ("time_scale", u64::from(self.time_scale), 1, 1_000_000),
            ("queue_max", self.queue_max.into(), 0, 100_000),
            ("challenges_max", self.challenges_max.into(), 0, 16),
            (
                "challenges_per_challenger",
                self.challenges_per_challenger.into(),
                0,
                16,
            ),
            ("redebates_max", self.redebates_max.into(), 0, 8),
            ("reviewers_min", self.reviewers_min.into(), 1, 2),
        ];
        for (field, value, low, high) in whole {
            if !(low..=high).contains(&value) {
                return Err(super::out_of_range(
                    pointer,
                    field,
                    &value.to_string(),
                    &format!("{low} to {high}"),
                ));
            }
        }
        self.times.check(&format!("{pointer}/times"))?;
        for (priority, times) in &self.times_by_priority {
            times.check(&format!(
                "{pointer}/times_by_priority/{}",
                priority.as_str()
            ))?;
        }
        if let Some(calendar) = &self.calendar {
            calendar.check(&format!("{pointer}/calendar"))?;
        }
        self.check_names(pointer)
    }

    fn check_names(&self, pointer: &str) -> Result<(), Fault> {
        const RULES_MAX: usize = 64;
        if self.caution.len() > RULES_MAX {
            return Err(super::out_of_range(
                pointer,
                "caution",
                &format!("{} rules", self.caution.len()),
                "0 to 64",
            ));
        }
        if self.outcome_sources.len() > RULES_MAX {
            let count = format!("{} agents", self.outcome_sources.len());
            return Err(super::out_of_range(
                pointer,
                "outcome_sources",
                &count,
                "0 to 64",
            ));
        }
        if let Some(domain) = &self.domain {
            check_name(&format!("{pointer}/domain"), domain)?;
        }
        for (metric, rule) in &self.caution {
            let at = format!("{pointer}/caution/{metric}");
            check_name(&at, metric)?;
            if let CautionRule::Order(names) = rule {
                if names.is_empty() || names.len() > 32 {
                    return Err(Fault::invalid(
                        at,
                        "It has no or too many names.",
                        "Name 1 to 32, the most cautious first.",
                    ));
                }
                names.iter().try_for_each(|name| check_name(&at, name))?;
            }
        }
        Ok(())
    }
}

impl LevelTimes {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        const YEAR_MS: u64 = 365 * 86_400_000;
        for (field, value) in [
            ("acknowledge_ms", self.acknowledge_ms),
            ("evidence_ms", self.evidence_ms),
            ("evaluation_ms", self.evaluation_ms),
            ("opinion_ms", self.opinion_ms),
            ("mediation_ms", self.mediation_ms),
            ("person_ms", self.person_ms),
            ("provisional_ms", self.provisional_ms),
        ] {
            if !(1..=YEAR_MS).contains(&value) {
                return Err(super::out_of_range(
                    pointer,
                    field,
                    &value.to_string(),
                    &format!("1 to {YEAR_MS}"),
                ));
            }
        }
        if self.opinion_ms > self.mediation_ms {
            let range = format!("1 to mediation_ms, {}", self.mediation_ms);
            return Err(super::out_of_range(
                pointer,
                "opinion_ms",
                &self.opinion_ms.to_string(),
                &range,
            ));
        }
        Ok(())
    }
}
