//! Which cases are to be examined for conflicts.

use concord_domain::aggregates::case::CaseState;
use concord_domain::aggregates::detection::DetectionInput;
use concord_wire::CaseId;

/// The findings of a case, once its phase has closed; none before.
pub fn from_case(case_id: &CaseId, state: &CaseState) -> Option<DetectionInput> {
    let opened = state.opened.as_ref()?;
    Some(DetectionInput {
        case_id: case_id.clone(),
        opened_by: opened.opener_of_debates(),
        policy: opened.policy.clone(),
        gate: state.reviewing_gate().map(str::to_owned),
        circumstances: opened.circumstances.clone(),
        findings: state.findings.clone(),
    })
}
