//! Opening a case by request and reply, for those who want the answer at once.

use std::sync::Arc;

use bytes::Bytes;
use concord_domain::Machine;
use concord_domain::aggregates::case::{CaseInput, CaseMachine, OpenRequest};
use concord_domain::aggregates::person::Authority;
use concord_runtime::delivery::handlers::Prepare;
use concord_runtime::event_store::step;
use concord_runtime::service::ServiceContext;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api;
use concord_runtime::{Aggregates, Outcome, Ports, Trace};
use concord_wire::payload::OpenCase;
use concord_wire::subject::OPERATOR;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId, Token};
use futures::future::try_join;
use serde_json::json;

use crate::people::Names;

type Cases<P> = Arc<Aggregates<CaseMachine, P>>;

/// Answers `open_case`: the parameters of the request of the same name; the answer is `{"case_id": ...}`. The same
/// parameters again get the same answer, others for a case that exists are refused. Who asks under no name is the installation's
/// own operator, whom no bounds hold.
pub(super) fn verb<P: Ports>(
    service: &ServiceContext<P>,
    cases: &Cases<P>,
    names: &Names<P>,
) -> Verb {
    api::verb(
        (service.clone(), Arc::clone(cases), names.clone()),
        |(service, cases, names), call| async move { open(&service, &cases, &names, call).await },
    )
}

async fn open<P: Ports>(
    service: &ServiceContext<P>,
    cases: &Cases<P>,
    names: &Names<P>,
    call: Call,
) -> Result<Bytes, Fault> {
    let request: OpenCase = concord_wire::envelope::from_json(&call.body, "")?;
    // A request without an id is a new case each time it is sent; one with an id may be repeated.
    let case_id = match &request.case_id {
        Some(case_id) => case_id.clone(),
        None => CaseId::derived(&service.ports.unique_id()),
    };
    let request_id = MessageId::of_api_request(&case_id);
    // The installation's own operator has no quota.
    let has_caller = call.caller.is_some();
    let (opened_by, sender) = match &call.caller {
        None => (AgentId::fixed(OPERATOR), Authority::of_installation()),
        Some(caller) => (caller.name.clone(), caller.authority.clone()),
    };
    let id: Token = case_id.token();
    let read = try_join(
        names.policies.known(&request.policy),
        names.openers.is_open(&id),
    );
    let (known, is_open) = read.await.map_err(|error| failed(&error))?;
    let asked = OpenRequest {
        opened_by,
        request_id: request_id.clone(),
        request,
        policy_pointer: "/policy",
        known,
        sender,
    };
    let context = service.of_message(request_id);
    let input = CaseInput::Open(Box::new(asked));
    call.spend(CaseMachine::fan_out_bytes(&input), service.ports.now())?;
    if let CaseInput::Open(asked) = &input {
        let admitted = names.openers.admit(&id, asked, is_open).await;
        admitted.map_err(operator_api::unprepared)?;
    }
    let outcome = cases
        .step(&id, &context, &input, Some(&Trace::of_case(&case_id)))
        .await
        .map_err(|error| failed(&error))?;
    service.count_step::<CaseMachine>(&outcome);
    if has_caller {
        let settled = names.decided(&id, &input).await;
        settled.map_err(operator_api::unprepared)?;
    }
    match outcome {
        Outcome::Rejected(fault) => Err(fault),
        Outcome::Appended { .. } | Outcome::Ignored(_) => answer(&json!({ "case_id": case_id })),
    }
}

fn failed(error: &step::Error) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!(
            "The case could not be opened: {}.",
            concord_runtime::delivery::ErrorChain(error)
        ),
        "Send the request again with the same case_id; a case that was opened is not opened twice.",
    )
}
