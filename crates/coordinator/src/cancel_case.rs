//! Cancelling a case by request and reply, for operators.

use concord_domain::aggregates::case::CaseInput;
use concord_wire::{AgentId, CaseId, Fault, Token};
use serde::Deserialize;

/// `cancel_case`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    case_id: CaseId,
    by: AgentId,
    why: String,
}

/// The case and the input of a request.
pub(super) fn read(request: &[u8]) -> Result<(Token, CaseInput), Fault> {
    let Cancel { case_id, by, why } = concord_wire::envelope::from_json(request, "")?;
    Ok((case_id.token(), CaseInput::Cancel { by, why }))
}
