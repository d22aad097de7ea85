//! The messages about requests and agents.

use concord_events::SynthesisAsked;
use concord_wire::payload::{
    AgentJoined, Alert, ErrorReport, Response, ResponseStatus, SYNTHESISE, StatusReport,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, MessageType, Priority, Recipient};
use serde_json::{Value, json};

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

pub(super) fn ask_synthesiser(from: Service, asked: SynthesisAsked) -> Draft {
    let SynthesisAsked {
        to,
        due,
        synthesise,
    } = asked;
    let payload = json!({ "action": SYNTHESISE, "parameters": synthesise, "deadline": due });
    Draft::new(from, to, MessageType::Request, &payload)
        .about(&synthesise.question)
        .waiting_until(Some(due))
}

pub(super) fn announce_agent(from: Service, joined: &AgentJoined) -> Draft {
    Draft::new(from, Recipient::All, MessageType::AgentJoined, joined)
}

pub(super) fn alert(from: Service, priority: Priority, alert: &Alert) -> Draft {
    Draft {
        priority,
        ..Draft::new(from, Recipient::All, MessageType::Alert, alert)
    }
}

pub(super) fn announce_status(from: Service, report: &StatusReport) -> Draft {
    Draft::new(from, Recipient::All, MessageType::Status, report)
}
