//! Events of the analyses of a case and of what they rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, DebateId, Token};
use concord_wire::payload::{
    ChangedAssumption, Dependency, Figure, ImpactReport, PublishAnalysis, RerunPlan, Status,
};

events! {
    /// What can happen to the analyses of a case.
    ImpactEvent of Aggregate::Impact;
    Published(Box<AnalysisPublished>) = "published", effects: true, deadlines: false,
        "An agent has published an analysis, or a new version of one, with what it has used.";
    Assessed(Box<ImpactAssessed>) = "assessed", effects: true, deadlines: false,
        "A decision or an assumption has changed on which analyses rest; whose they are, and who opened the case, is told.";
    Estimated(Box<ImpactEstimated>) = "estimated", effects: true, deadlines: false,
        "An agent has said what becomes of a figure, or has not; the report is completed, and told when no other answer is awaited.";
    RerunStarted(Box<RerunStarted>) = "rerun_started", effects: true, deadlines: false,
        "What rests on something that has changed is done again: it is said which analyses, in which order, and who is asked first.";
    RerunStepEnded(Box<RerunStepEnded>) = "rerun_step_ended", effects: true, deadlines: false,
        "An analysis was done again, or could not be; it is said what follows, and whether that was the last.";
}

/// Contents of `published`. What the version before said remains in the events before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalysisPublished {
    /// The case.
    pub case_id: CaseId,
    /// The version of the analysis, from 1.
    pub version: u32,
    /// The analysis. Each of its dependencies says the value that was used, as far as one is known.
    pub analysis: PublishAnalysis,
    /// The message, and its sender, whose analysis it is.
    pub heard: Heard,
}

/// Contents of `assessed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactAssessed {
    /// The case.
    pub case_id: CaseId,
    /// The debate whose outcome has changed something; none where a part of the case's decision has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debate_id: Option<DebateId>,
    /// The way in which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// Everything that has changed; the report names the first.
    pub changed: Vec<ChangedAssumption>,
    /// What that does.
    pub report: ImpactReport,
    /// Who is told: who opened the case, and the authors of affected analyses.
    pub told: Vec<AgentId>,
    /// Who is asked for estimates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<AskedEstimate>,
    /// The rules by which it was counted; none before they had a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
}

/// A figure of which an agent is asked what becomes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedEstimate {
    /// The number of the question, from 1 in each case.
    pub estimate: u32,
    /// The analysis, and its version.
    pub analysis_id: Token,
    /// The version of it that is estimated from.
    pub version: u32,
    /// The figure.
    pub metric: String,
    /// The agent.
    pub agent_id: AgentId,
    /// How long its answer is awaited, in milliseconds.
    pub within_ms: u64,
    /// What the analysis uses, with the values that stand now.
    pub uses: Vec<Dependency>,
}

/// What an agent has said of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EstimateOutcome {
    /// What becomes of it.
    Given {
        /// The new value.
        figure: Figure,
        /// How sure the agent is, 0 to 1.
        confidence: f64,
    },
    /// Nothing that can be used.
    Failed {
        /// Why.
        why: String,
    },
}

/// Contents of `estimated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactEstimated {
    /// The number of the question.
    pub estimate: u32,
    /// What came of it.
    pub outcome: EstimateOutcome,
    /// The report that it belongs to, by its number in the case.
    pub report: u32,
    /// That report as it is now, and who is asked further.
    pub assessed: ImpactAssessed,
    /// Whether no other answer is awaited for the report: then it is told.
    pub is_complete: bool,
}

/// An analysis that its author is asked to do again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedRerun {
    /// The step, by its place in the plan.
    pub step: u32,
    /// The analysis.
    pub analysis_id: Token,
    /// Its author.
    pub agent_id: AgentId,
    /// How long it takes, in minutes.
    pub rerun_minutes: u32,
    /// What it is to use.
    pub uses: Vec<Dependency>,
}

/// What follows in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RerunNext {
    /// These are asked for now, as tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<AskedRerun>,
    /// These steps are not needed: nothing that they use has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_needed: Vec<u32>,
    /// These steps cannot be done: something that they use has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<u32>,
    /// The end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RerunEnd>,
}

/// What came of the steps of a run, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunEnd {
    /// Done, with other figures.
    pub changed: u32,
    /// Done, with the same figures.
    pub unchanged: u32,
    /// Not needed.
    pub not_needed: u32,
    /// Not done.
    pub failed: u32,
    /// Waiting for one that was not done.
    pub blocked: u32,
    /// The analyses with other figures.
    pub with_other_figures: Vec<Token>,
}

/// Contents of `rerun_started`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerunStarted {
    /// The case.
    pub case_id: CaseId,
    /// The number of the run, from 1.
    pub run: u32,
    /// Who has asked for it.
    pub by: AgentId,
    /// What is done again.
    pub plan: RerunPlan,
    /// What follows.
    pub next: RerunNext,
    /// Who is told how it goes.
    pub told: Vec<AgentId>,
}

/// What came of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunOutcome {
    /// Other figures.
    Changed,
    /// The same figures.
    Unchanged,
    /// None.
    Failed {
        /// Why.
        why: String,
    },
}

/// A version of an analysis that was done again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerunVersion {
    /// The version.
    pub version: u32,
    /// Whose analysis it is.
    pub author: AgentId,
    /// The analysis with its new figures, and with what they rest on now.
    pub analysis: PublishAnalysis,
}

/// Contents of `rerun_step_ended`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerunStepEnded {
    /// The case.
    pub case_id: CaseId,
    /// The number of the run.
    pub run: u32,
    /// The step, by its place in the plan.
    pub step: u32,
    /// The analysis.
    pub analysis_id: Token,
    /// What came of it.
    pub outcome: RerunOutcome,
    /// Its new version; none where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<RerunVersion>,
    /// How many steps have ended.
    pub done: u32,
    /// How many steps there are.
    pub of: u32,
    /// What follows.
    pub next: RerunNext,
    /// Who is told how it goes.
    pub told: Vec<AgentId>,
}
