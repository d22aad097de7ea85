//! Events of an alert: news of which everybody is told at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::Priority;
use concord_wire::id::{AgentId, CaseId};
use concord_wire::payload::Alert;
use concord_wire::timestamp::Timestamp;

/// Most names of those who are told that an event has room for. Everybody is told, however many there are.
pub const TOLD_MAX: usize = 4_096;

events! {
    /// What can happen to an alert.
    AlertEvent of Aggregate::Alert;
    Raised(AlertRaised) = "raised", effects: true, deadlines: true,
        "Somebody who may alert has, or a rule: everybody is told.";
    Reported(AlertReported) = "reported", effects: true, deadlines: true,
        "The report that follows the alert was given.";
    ReportMissed(ReportMissed) = "report_missed", effects: false, deadlines: true,
        "No report has followed the alert in time: people are told.";
}

/// Contents of `raised`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertRaised {
    /// What is told.
    pub alert: Alert,
    /// At which priority.
    pub priority: Priority,
    /// The case in which it was said, where it was in one. Everybody is told nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// How many agents were on the register.
    pub registered: u64,
    /// Their names, at most 4,096.
    pub told: Vec<AgentId>,
    /// The message, and its sender.
    pub heard: Heard,
    /// The time until which a report is to follow, where one is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_due: Option<Timestamp>,
    /// At which gates open cases show it; at every one where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

/// Contents of `reported`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertReported {
    /// The report.
    pub report: String,
    /// The message that brought it, and its sender.
    pub heard: Heard,
}

/// Contents of `report_missed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportMissed {
    /// The time until which it was due.
    pub due: Timestamp,
    /// Who was to report.
    pub by: AgentId,
    /// What has happened, as the alert says it.
    pub event_type: String,
}
