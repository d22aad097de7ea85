//! What is known of how often an agent was right, and the credibility that follows from it.
//!
//! The names here are short because they are read with the module's: `track_record::Version`, `track_record::Query`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;
use crate::payload::check_name;
use crate::timestamp::Timestamp;

mod imported;
mod settlement;

pub use imported::ImportedRecord;
pub use settlement::{Settlement, SettlementReason, Side};

/// How it became known whether a position was right.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ObservationSource")]
pub enum Source {
    /// What proved right later.
    Outcome,
    /// A person ruled in a debate.
    Ruling,
    /// A person overrode a decision.
    Override,
    /// An operator brought it in from elsewhere.
    Import,
}

/// The circumstances in which something was judged. An absent field is not known.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(default)]
#[schemars(rename = "RecordContext")]
pub struct Context {
    /// Sector of the economy, for example `software`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector: Option<String>,
    /// The metric that was judged, for example `price_target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// How far ahead, for example `1y`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<String>,
    /// Size of what was judged, for example `large_cap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Stage of its life, for example `growth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

impl Context {
    /// Whether nothing is known.
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The five dimensions by name, in the order in which they are written.
    pub fn dimensions(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("sector", self.sector.as_deref()),
            ("metric", self.metric.as_deref()),
            ("horizon", self.horizon.as_deref()),
            ("size", self.size.as_deref()),
            ("stage", self.stage.as_deref()),
        ]
    }

    /// Checks the names; `pointer` is where the context stands in its message.
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        let stated = self
            .dimensions()
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        stated
            .into_iter()
            .try_for_each(|(name, value)| check_name(&format!("{pointer}/{name}"), value))
    }
}

/// What is known of the circumstances of a case: what its agents' track records are weighed by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Circumstances {
    /// The present regime, for example `bull_low_rates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regime: Option<String>,
    /// The rest. A metric stated here stands back behind what a debate is about.
    #[serde(skip_serializing_if = "Context::is_unknown")]
    pub context: Context,
}

impl Circumstances {
    /// Whether nothing is known; such circumstances are left out.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the names; `pointer` is where the circumstances stand in their message.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        self.regime
            .iter()
            .try_for_each(|regime| check_name(&format!("{pointer}/regime"), regime))?;
        self.context.check(&format!("{pointer}/context"))
    }

    /// The context in which this metric is judged.
    pub fn judging(&self, metric: &str) -> Context {
        Context {
            metric: Some(metric.to_owned()),
            ..self.context.clone()
        }
    }

    /// These, and of the others what is not known here.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let either =
            |own: &Option<String>, other: &Option<String>| own.clone().or_else(|| other.clone());
        let (own, other) = (&self.context, &others.context);
        Self {
            regime: either(&self.regime, &others.regime),
            context: Context {
                sector: either(&own.sector, &other.sector),
                metric: either(&own.metric, &other.metric),
                horizon: either(&own.horizon, &other.horizon),
                size: either(&own.size, &other.size),
                stage: either(&own.stage, &other.stage),
            },
        }
    }
}

/// One time that an agent proved right or wrong. The order is that of time; the rest only makes it total.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// When that became known. One later than the present counts as made at present.
    pub at: Timestamp,
    /// Whether the agent was right.
    pub correct: bool,
    /// The domain it was judged in, for example `valuation`.
    pub domain: String,
    /// The regime at that time, for example `bull_low_rates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<String>,
    /// The circumstances.
    #[serde(default)]
    pub context: Context,
    /// The way in which it became known.
    pub source: Source,
    /// Whether a person overrode what this agent held. The source alone does not say it: an override of one agent is also
    /// an observation of the agent that it proved right.
    #[serde(default)]
    pub overridden: bool,
}

impl Observation {
    /// Checks the names; `pointer` is where the observation stands in its message.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        if self.domain.trim().is_empty() {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("{pointer}/domain"),
                "An observation needs a domain.",
                "Name the domain as the agent's card does, for example \"valuation\".",
            ));
        }
        check_name(&format!("{pointer}/domain"), &self.domain)?;
        self.regime
            .iter()
            .try_for_each(|regime| check_name(&format!("{pointer}/regime"), regime))?;
        self.context.check(&format!("{pointer}/context"))
    }
}

/// Everything that is known of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrackRecord {
    /// Whose record it is.
    pub agent_id: AgentId,
    /// The observations; their order means nothing.
    #[serde(default)]
    pub observations: Vec<Observation>,
}

/// The formula of credibility.
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
#[schemars(rename = "CredibilityVersion")]
pub enum Version {
    /// Accuracy in the domain, weighted by age.
    #[default]
    Simple,
    /// That, adjusted for the regime, the context, the trend, and overrides by people.
    Comprehensive,
    /// That, adjusted for domain expertise; observations of wider domains count a share: those of `valuation` for
    /// `valuation.revenue`.
    Specialised,
}

impl Version {
    /// The version as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Comprehensive => "comprehensive",
            Self::Specialised => "specialised",
        }
    }
}

/// What a credibility is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CredibilityQuery")]
pub struct Query {
    /// The present: ages are counted back from it.
    pub now: Timestamp,
    /// Only observations of this domain count, and in the specialised version a share of those of wider ones.
    pub domain: String,
    /// The present regime, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<String>,
    /// The circumstances of what is to be judged.
    #[serde(default)]
    pub context: Context,
}

/// A confidence interval of a proportion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConfidenceInterval")]
pub struct Interval {
    /// Lower end, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub low: f64,
    /// Upper end, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub high: f64,
}

impl Interval {
    /// The middle. That of a Wilson interval is nearer to one half than the proportion.
    pub fn centre(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The factors that a credibility can have, in the order in which they are multiplied.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FactorName {
    /// Accuracy in the domain, every observation alike.
    BaseAccuracy,
    /// The effect of weighting by age.
    TemporalWeight,
    /// Accuracy in the domain itself, where wider domains count as well.
    DomainExpertise,
    /// Accuracy in the present regime.
    RegimeAdjustment,
    /// Accuracy in circumstances like the present ones.
    ContextMatch,
    /// Where the accuracy is heading.
    TrendAdjusted,
    /// How often people overrode the agent.
    OverridePenalty,
}

impl FactorName {
    /// The name as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BaseAccuracy => "base_accuracy",
            Self::TemporalWeight => "temporal_weight",
            Self::DomainExpertise => "domain_expertise",
            Self::RegimeAdjustment => "regime_adjustment",
            Self::ContextMatch => "context_match",
            Self::TrendAdjusted => "trend_adjusted",
            Self::OverridePenalty => "override_penalty",
        }
    }
}

/// One factor of a credibility, and why it has its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CredibilityFactor")]
pub struct Factor {
    /// The name of the factor.
    pub name: FactorName,
    /// What the score is multiplied by; 1 where it is not applied.
    pub value: f64,
    /// The proportion it was computed from: an accuracy, the extrapolated accuracy, or the rate of overrides. Absent
    /// where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<f64>,
    /// The share of the score that the basis stands for, where the factor blends the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// How much the basis rests on: the smaller of the sum of weights and the effective size.
    pub data_points: f64,
    /// Whether the factor was applied.
    pub applied: bool,
    /// One sentence for a reader.
    pub explanation: String,
}

/// How far an agent is to be believed, and what that was computed from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Credibility {
    /// The product of the factors, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
    /// 95% interval around the score.
    pub interval: Interval,
    /// The smaller of the sum of weights and the effective size: what must reach 15 before the score decides anything.
    pub data_points: f64,
    /// Kish's effective sample size of the weighted observations.
    pub effective_size: f64,
    /// How many observations of the domain there are.
    pub observations: u32,
    /// Every factor that this version knows, applied or not, in the order in which they are multiplied.
    pub factors: Vec<Factor>,
    /// What does not count because one opener's cases would outweigh all others; absent where everything counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// How far an agent is to be believed, in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CredibilityScore {
    /// From 0 to 1; a half where nothing is known.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
    /// 95% interval around the score.
    pub interval: Interval,
    /// What the score rests on; below 15 it decides nothing.
    pub data_points: f64,
}

impl From<&Credibility> for CredibilityScore {
    fn from(credibility: &Credibility) -> Self {
        Self {
            score: credibility.score,
            interval: credibility.interval,
            data_points: credibility.data_points,
        }
    }
}

/// What one opener's cases would weigh in a track record, and how much of it does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    /// Who opened the cases; absent in a brief, which others than the readers of track records may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// The sum of the weights of the observations from these cases.
    pub points: f64,
    /// How much of that sum does not count.
    pub held: f64,
}

#[cfg(test)]
mod tests;
