//! Which cases are to be examined for conflicts.

use concord_domain::aggregates::case::CaseState;
use concord_domain::aggregates::detection::DetectionInput;
use concord_wire::CaseId;

/// The findings of a case, once its phase has closed, as they are without a sentence model; none before.
pub fn from_case(case_id: &CaseId, state: &CaseState) -> Option<DetectionInput> {
    let opened = state.opened.as_ref()?;
    Some(DetectionInput {
        case_id: case_id.clone(),
        opened_by: opened.opener_of_debates(),
        policy: opened.policy.clone(),
        gate: state.reviewing_gate().map(str::to_owned),
        circumstances: opened.circumstances.clone(),
        findings: state.compared_findings().into_owned(),
        scored: Vec::new(),
        model_absent: opened.policy.vocabulary.similarity_min.is_some(),
    })
}
