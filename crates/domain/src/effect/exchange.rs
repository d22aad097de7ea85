//! The messages about requests and agents.

use concord_wire::payload::{AgentJoined, ErrorReport, Response, ResponseStatus, StatusReport};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, MessageType, Recipient};
use serde_json::Value;

use super::draft::Draft;

pub(super) fn respond(from: Service, to: AgentId, request_id: MessageId, result: Value) -> Draft {
    let payload = Response {
        status: ResponseStatus::Success,
        result,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    Draft::new(from, to, MessageType::Response, &payload).answering(request_id)
}

pub(super) fn fail(
    from: Service,
    to: AgentId,
    request_id: MessageId,
    report: &ErrorReport,
) -> Draft {
    Draft::new(from, to, MessageType::Error, report).answering(request_id)
}

pub(super) fn announce_agent(from: Service, joined: &AgentJoined) -> Draft {
    Draft::new(from, Recipient::All, MessageType::AgentJoined, joined)
}

pub(super) fn announce_status(from: Service, report: &StatusReport) -> Draft {
    Draft::new(from, Recipient::All, MessageType::Status, report)
}
