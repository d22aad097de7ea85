//! One document for each message type, and one for each notification of Concord: the envelope with its payload.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{document, generator, make, properties};
use concord_wire::MakeSchema;
use concord_wire::envelope::{Envelope, MessageType};
use concord_wire::payload::notification::NotificationInfo;
use concord_wire::payload::{
    ADD_PARTICIPANT, Acknowledgement, AddParticipant, AgentJoined, Alert, Answer, Award, BATCH,
    BOARD_PUT, Batch, BatchResult, Bid, CANCEL_TASK, CallForProposals, CancelTask, Card, Challenge,
    Clarification, CollaborationInvite, Commitment, Confirmation, DEREGISTER_AGENT, Decline,
    Deregister, ErrorReport, Evidence, ExpertiseOffer, FIND_AGENTS, FindAgents, Finding,
    GroupQuestion, Handoff, InfoUpdate, JOIN_TASK, LEAVE_TASK, MEMORY_PUT, Notification,
    NotificationData, NotificationSeverity, OPEN_CASE, OPEN_DEBATE, OPEN_TASK, OpenCase,
    OpenDebate, OpenTask, OutcomeReport, PUBLISH_ANALYSIS, PublishAnalysis, PutEntry, Question,
    REGISTER_AGENT, REPORT_ALERT, Remember, ReportAlert, Request, Response, Review, ReviewCode,
    Ruling, RunTests, SessionBriefing, StatusMessage, TaskAssignment, TaskMember, TaskResult,
    UPDATE_AGENT, UpdateDocumentation,
};
use concord_wire::subject::Service;

/// The message types whose payload has a type. The payload of any other known type is an object of any form.
const PAYLOADS: [(MessageType, MakeSchema); 35] = [
    (MessageType::Finding, make::<Finding>),
    (MessageType::FindingWithPrecedent, make::<Finding>),
    (MessageType::Question, make::<Question>),
    (MessageType::Agreement, make::<Answer>),
    (MessageType::Disagreement, make::<Answer>),
    (MessageType::Revision, make::<Answer>),
    (MessageType::Request, make::<Request>),
    (MessageType::Response, make::<Response>),
    (MessageType::Notification, make::<Notification>),
    (MessageType::Error, make::<ErrorReport>),
    (MessageType::TaskAssignment, make::<TaskAssignment>),
    (MessageType::TaskResult, make::<TaskResult>),
    (MessageType::Handoff, make::<Handoff>),
    (MessageType::CallForProposals, make::<CallForProposals>),
    (MessageType::Bid, make::<Bid>),
    (MessageType::Refuse, make::<Decline>),
    (MessageType::Award, make::<Award>),
    (MessageType::Challenge, make::<Challenge>),
    (MessageType::Acknowledgement, make::<Acknowledgement>),
    (MessageType::Clarification, make::<Clarification>),
    (MessageType::Evidence, make::<Evidence>),
    (MessageType::Alert, make::<Alert>),
    (MessageType::Confirmation, make::<Confirmation>),
    (MessageType::Ruling, make::<Ruling>),
    (MessageType::Outcome, make::<OutcomeReport>),
    (MessageType::Review, make::<Review>),
    (MessageType::AgentJoined, make::<AgentJoined>),
    (MessageType::Commitment, make::<Commitment>),
    (MessageType::SessionBriefing, make::<SessionBriefing>),
    (MessageType::InfoUpdate, make::<InfoUpdate>),
    (MessageType::Status, make::<StatusMessage>),
    (MessageType::GroupQuery, make::<GroupQuestion>),
    (MessageType::PeerRequest, make::<GroupQuestion>),
    (MessageType::ExpertiseOffer, make::<ExpertiseOffer>),
    (
        MessageType::CollaborationInvite,
        make::<CollaborationInvite>,
    ),
];

/// The actions of requests whose parameters have a type: those to a service, and the standard ones to any agent.
const ACTIONS: [(Option<Service>, &str, MakeSchema); 19] = [
    (Some(Service::Coordinator), OPEN_CASE, make::<OpenCase>),
    (
        Some(Service::Coordinator),
        ADD_PARTICIPANT,
        make::<AddParticipant>,
    ),
    (Some(Service::Coordinator), OPEN_TASK, make::<OpenTask>),
    (Some(Service::Coordinator), CANCEL_TASK, make::<CancelTask>),
    (Some(Service::Coordinator), JOIN_TASK, make::<TaskMember>),
    (Some(Service::Coordinator), LEAVE_TASK, make::<TaskMember>),
    (Some(Service::Coordinator), FIND_AGENTS, make::<FindAgents>),
    (Some(Service::Coordinator), BOARD_PUT, make::<PutEntry>),
    (Some(Service::Coordinator), MEMORY_PUT, make::<Remember>),
    (
        Some(Service::Coordinator),
        REPORT_ALERT,
        make::<ReportAlert>,
    ),
    (
        Some(Service::Coordinator),
        PUBLISH_ANALYSIS,
        make::<PublishAnalysis>,
    ),
    (Some(Service::Coordinator), REGISTER_AGENT, make::<Card>),
    (Some(Service::Coordinator), UPDATE_AGENT, make::<Card>),
    (
        Some(Service::Coordinator),
        DEREGISTER_AGENT,
        make::<Deregister>,
    ),
    (
        Some(Service::DebateFacilitator),
        OPEN_DEBATE,
        make::<OpenDebate>,
    ),
    (None, "review_code", make::<ReviewCode>),
    (None, "run_tests", make::<RunTests>),
    (None, "update_documentation", make::<UpdateDocumentation>),
    (None, BATCH, make::<Batch>),
];

pub(super) fn documents() -> Vec<(String, Value)> {
    let envelope = generator().into_root_schema_for::<Envelope>();
    let about = "The one envelope of everything that is said, whatever its message type. Unknown fields are ignored.";
    let mut documents = vec![document("envelope", about, envelope)];
    documents.extend(
        MessageType::DOCS
            .iter()
            .map(|(name, doc)| message(name, doc)),
    );
    documents.extend(NotificationData::ALL.iter().map(notification));
    documents
}

fn message(name: &str, doc: &str) -> (String, Value) {
    let mut generator = generator();
    let payload = PAYLOADS
        .iter()
        .find(|(kind, _)| kind.as_str() == name)
        .map(|(_, make)| make(&mut generator));
    let actions: Vec<Value> = match name {
        "request" => ACTIONS
            .iter()
            .map(|(service, action, make)| {
                parameters_of(*service, action, make(&mut generator).to_value())
            })
            .collect(),
        "response" => vec![result_of_batch(
            &make::<BatchResult>(&mut generator).to_value(),
        )],
        _ => Vec::new(),
    };
    let payload = payload.and_then(|payload| payload.get("$ref").cloned());
    let payload = payload.map(|reference| json!({ "$ref": reference }));
    let mut schema = envelope_of(generator, name, payload);
    if !actions.is_empty() {
        schema.insert("allOf".into(), Value::Array(actions));
    }
    document(
        name,
        &format!("{doc} A whole message: the envelope with the payload of this type."),
        schema,
    )
}

/// The name of a notification's document, and of its message in the AsyncAPI document.
pub(super) fn notification_name(event: &str) -> String {
    format!("{}.{event}", MessageType::Notification)
}

fn notification(info: &NotificationInfo) -> (String, Value) {
    let mut generator = generator();
    let data = (info.schema)(&mut generator);
    let severity = generator.subschema_for::<NotificationSeverity>();
    let payload = json!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": { "description": "What happened.", "const": info.event },
            "data": data,
            "severity": { "description": "How it is meant.", "default": "info", "$ref": severity.get("$ref") },
        },
    });
    let schema = envelope_of(generator, MessageType::Notification.as_str(), Some(payload));
    let (from, to) = (info.from, info.to);
    document(
        &notification_name(info.event),
        &format!("{} A whole message, from the {from} to {to}.", info.when),
        schema,
    )
}

/// The schema of the envelope with one message type; `payload` replaces the schema of its payload, where there is one.
fn envelope_of(generator: SchemaGenerator, message_type: &str, payload: Option<Value>) -> Schema {
    let mut schema: Schema = generator.into_root_schema_for::<Envelope>();
    if let Some(properties) = properties(&mut schema) {
        replace(properties, "message_type", json!({ "const": message_type }));
        if let Some(payload) = payload {
            replace(properties, "payload", payload);
        }
    }
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.remove("MessageType");
    }
    schema
}

/// Replaces what a property may hold, and keeps its description.
fn replace(properties: &mut Map<String, Value>, name: &str, mut schema: Value) {
    let before = properties.get(name);
    let description = before.and_then(|property| property.get("description"));
    if let Some(schema) = schema.as_object_mut() {
        let description = description.cloned().unwrap_or_default();
        schema.insert("description".into(), description);
    }
    properties.insert(name.to_owned(), schema);
}

/// A result that says how each of several requests went is that of a batch.
fn result_of_batch(result: &Value) -> Value {
    let is_batch =
        json!({ "type": "array", "items": { "type": "object", "required": ["status"] } });
    let is_batch = json!({ "type": "object", "required": ["responses"], "properties": { "responses": is_batch } });
    let of_result = |result: &Value| json!({ "properties": { "payload": { "properties": { "result": result }, "required": ["result"] } } });
    json!({ "if": of_result(&is_batch), "then": of_result(result) })
}

/// A request to `service` to do `action` has these parameters.
fn parameters_of(service: Option<Service>, action: &str, parameters: Value) -> Value {
    let mut properties = json!({ "payload": { "properties": { "action": { "const": action } }, "required": ["action"] } });
    if let (Some(service), Some(properties)) = (service, properties.as_object_mut()) {
        properties.insert("to_agent".into(), json!({ "const": service.as_str() }));
    }
    json!({
        "if": { "properties": properties },
        "then": {
            "properties": { "payload": { "properties": { "parameters": parameters }, "required": ["parameters"] } },
        },
    })
}
