//! The gates that a case has passed: by whom, and why.

use concord_events::{CaseEvent, ReviewRecorded, StoredEvent};
use concord_wire::payload::ReviewAction;
use concord_wire::{AgentId, DebateId, Timestamp};
use serde::Serialize;

/// A gate that a case has passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassedGate {
    /// The gate.
    pub gate: String,
    /// When the case passed it.
    pub at: Timestamp,
    /// The person who let it pass.
    pub by: AgentId,
    /// That person's reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// The reviewer who said the same before, where the policy wants two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The reason of the first reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_rationale: Option<String>,
    /// Provisional decisions with which it was passed unreviewed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreviewed: Vec<DebateId>,
}

/// The gates that a case has passed by these events of it, in their order.
pub fn gates_passed(events: &[StoredEvent<CaseEvent>]) -> Vec<PassedGate> {
    let mut said: Vec<&ReviewRecorded> = Vec::new();
    let mut gates = Vec::new();
    for stored in events {
        match &stored.event {
            CaseEvent::ReviewRecorded(recorded) => said.push(recorded),
            CaseEvent::GatePassed(passed) => {
                let first = passed.first_reviewer.as_ref();
                // The event names the first reviewer alone; the reason stands where that review was recorded, the last time.
                let theirs = said.iter().rev().find(|one| {
                    Some(&one.heard.agent_id) == first
                        && one.review.action == ReviewAction::Pass
                        && one.review.gate == passed.gate
                });
                let reason = theirs.map(|one| one.review.rationale.clone());
                gates.push(PassedGate {
                    gate: passed.gate.clone(),
                    at: stored.meta.at,
                    by: passed.heard.agent_id.clone(),
                    rationale: passed.rationale.clone(),
                    first_reviewer: first.cloned(),
                    first_rationale: reason.filter(|reason| !reason.is_empty()),
                    unreviewed: passed.unreviewed.clone(),
                });
            }
            _ => {}
        }
    }
    gates
}
