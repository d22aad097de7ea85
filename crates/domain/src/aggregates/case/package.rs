//! The decision package: everything about a decided case in one document, for people and programs.

use std::collections::BTreeMap;

use concord_events::ReceivedFinding;
use concord_wire::payload::{AlertFlag, ConfirmedFinding, Decision, DecisionChange, Task};
use concord_wire::policy::Policy;
use concord_wire::{AgentId, CaseId, Timestamp};
use serde::Serialize;

use super::state::{Cancellation, CaseState, Phase};

/// A case with its decision, if it has one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecisionPackage {
    /// The case.
    pub case_id: CaseId,
    /// The phase of the case.
    pub phase: Phase,
    /// The agent that opened it.
    pub opened_by: AgentId,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it was decided.
    pub decided_at: Option<Timestamp>,
    /// By whom and why it was cancelled, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancellation>,
    /// The agents that take part.
    pub participants: Vec<AgentId>,
    /// The task, without its input.
    pub task: Task,
    /// The policy of the case.
    pub policy: Policy,
    /// The decision: its current version, or the one that was asked for.
    pub decision: Option<Decision>,
    /// How each later version of the decision came to be, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<VersionNote>,
    /// The findings that count, ordered by agent id.
    pub findings: Vec<ReceivedFinding>,
    /// Findings that others have confirmed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<ConfirmedFinding>,
    /// The share of the doubt about a finding that those of the confirmations which count have taken away, by author; none where they only are shown.
    #[serde(skip)]
    pub counted: BTreeMap<AgentId, f64>,
    /// Findings that were recorded and not used, with those after the decision.
    pub set_aside: Vec<AsideFinding>,
    /// The changes of regime while it was open, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertFlag>,
}

/// How a version of the decision came to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VersionNote {
    /// When the decision was changed.
    pub at: Timestamp,
    /// What changed, and why.
    #[serde(flatten)]
    pub change: DecisionChange,
}

/// A finding that was recorded and not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AsideFinding {
    /// The reason and the time.
    #[serde(flatten)]
    pub note: concord_wire::payload::SetAside,
    /// The finding itself.
    pub finding: concord_wire::payload::Finding,
}

/// The package of a case; `None` if it was never opened.
pub fn package(case_id: &CaseId, state: &CaseState) -> Option<DecisionPackage> {
    let opened = state.opened.as_ref()?;
    let mut findings = state.findings.clone();
    findings.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let aside = state.set_aside.iter();
    Some(DecisionPackage {
        case_id: case_id.clone(),
        phase: state.phase,
        opened_by: opened.opened_by.clone(),
        opened_at: state.opened_at,
        decided_at: state.decided_at,
        cancelled: state.cancelled.clone(),
        participants: opened.participants.clone(),
        task: Task {
            input: serde_json::Value::Null,
            ..opened.task.clone()
        },
        policy: opened.policy.clone(),
        decision: state.decision.clone(),
        changes: state
            .changes
            .iter()
            .map(|(at, change)| VersionNote {
                at: *at,
                change: change.clone(),
            })
            .collect(),
        findings,
        confirmed: state.confirmed_findings(),
        counted: state.confirmed(),
        set_aside: aside
            .map(|(note, received)| AsideFinding {
                note: note.clone(),
                finding: received.finding.clone(),
            })
            .collect(),
        alerts: state.flags.iter().map(|flag| (**flag).clone()).collect(),
    })
}
