//! `find_agents`: who can do something, as a question of its own.

use std::sync::Arc;

use concord_domain::aggregates::task::AGENTS_MAX;
use concord_events::topology::StreamKind;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::{Directory, Ports};
use concord_wire::envelope::from_json;
use concord_wire::payload::{AgentStatus, FindAgents, FoundAgent, Response, ResponseStatus};
use concord_wire::subject::Lane;
use concord_wire::{Envelope, ErrorCode, Fault, MessageId, MessageType};
use serde_json::json;

/// Answers `find_agents`: `{"agents": [...]}`, at most as many as one task can be given to.
pub(crate) fn verb(directory: &Arc<Directory>) -> Verb {
    api::verb(Arc::clone(directory), |directory, call| async move {
        let asked: FindAgents = from_json(&call.body, "")?;
        answer(&json!({ "agents": found(&directory, &asked) }))
    })
}

fn found(directory: &Directory, asked: &FindAgents) -> Vec<FoundAgent> {
    let fits = |status: AgentStatus| !asked.available || status == AgentStatus::Available;
    let found = directory.find(&asked.criteria, None, AGENTS_MAX, |_, known| {
        fits(known.status)
    });
    let mut found: Vec<FoundAgent> = found
        .into_iter()
        .map(|(agent_id, score, known)| FoundAgent {
            agent_id,
            score,
            status: known.status,
            capacity: known.card.as_ref().and_then(|card| card.capacity),
        })
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found
}

/// The id of an answer that follows from no event, by the end of it; the rest is the place of the request.
fn id_of<P: Ports>(
    request: &Envelope,
    delivery: &Delivery,
    service: &ServiceContext<P>,
) -> MessageId {
    let urgent = delivery.stream == service.ports.layout().stream_name(StreamKind::Urgent);
    let lane = if urgent { Lane::Urgent } else { Lane::Normal };
    let id = format!("{}-{}-found", lane.as_str(), delivery.sequence);
    MessageId::new(id).unwrap_or_else(|_| request.message_id.clone())
}

/// The response to a request. It is made anew when the request is delivered again, under the same id.
pub(super) fn answer_message<P: Ports>(
    directory: &Directory,
    asked: &FindAgents,
    request: &Envelope,
    delivery: &Delivery,
    service: &ServiceContext<P>,
) -> Result<Envelope, HandleError> {
    let from = service.service.agent_id();
    let payload = Response {
        status: ResponseStatus::Success,
        result: json!({ "agents": found(directory, asked) }),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let payload = serde_json::value::to_raw_value(&payload).map_err(|error| {
        Fault::new(
            ErrorCode::InternalError,
            "",
            format!("The answer cannot be written: {error}."),
            "Report this.",
        )
    })?;
    let message_id = id_of(request, delivery, service);
    let to = request.from_agent.clone();
    let kind = MessageType::Response;
    let now = service.ports.now();
    let answered = request.message_id.to_string();
    Ok(Envelope {
        case_id: request.case_id.clone(),
        correlation_id: request
            .correlation_id
            .clone()
            .or_else(|| Some(answered.clone())),
        reply_to: Some(answered),
        ..Envelope::new(message_id, now, from, to.into(), kind, payload)
    })
}
