//! One document a message type: the envelope with its payload.

use schemars::Schema;
use serde_json::{Value, json};

use super::{Make, document, generator, make, properties};
use concord_wire::envelope::{Envelope, MessageType};
use concord_wire::payload::{
    Acknowledgement, AgentJoined, Answer, BATCH, Batch, Card, Challenge, Clarification,
    DEREGISTER_AGENT, Deregister, ErrorReport, Evidence, Finding, Notification, OpenCase,
    OpenDebate, OutcomeReport, Question, REGISTER_AGENT, Request, Response, Review, ReviewCode,
    Ruling, RunTests, TaskAssignment, UPDATE_AGENT, UpdateDocumentation,
};
use concord_wire::subject::Service;

/// The message types whose payload has a type. The payload of any other known type is an object of any form.
const PAYLOADS: [(MessageType, Make); 18] = [
    (MessageType::Finding, make::<Finding>),
    (MessageType::Question, make::<Question>),
    (MessageType::Agreement, make::<Answer>),
    (MessageType::Disagreement, make::<Answer>),
    (MessageType::Revision, make::<Answer>),
    (MessageType::Request, make::<Request>),
    (MessageType::Response, make::<Response>),
    (MessageType::Notification, make::<Notification>),
    (MessageType::Error, make::<ErrorReport>),
    (MessageType::TaskAssignment, make::<TaskAssignment>),
    (MessageType::Challenge, make::<Challenge>),
    (MessageType::Acknowledgement, make::<Acknowledgement>),
    (MessageType::Clarification, make::<Clarification>),
    (MessageType::Evidence, make::<Evidence>),
    (MessageType::Ruling, make::<Ruling>),
    (MessageType::Outcome, make::<OutcomeReport>),
    (MessageType::Review, make::<Review>),
    (MessageType::AgentJoined, make::<AgentJoined>),
];

/// The actions of requests whose parameters have a type: those to a service, and the standard ones to any agent.
const ACTIONS: [(Option<Service>, &str, Make); 9] = [
    (Some(Service::Coordinator), "open_case", make::<OpenCase>),
    (Some(Service::Coordinator), REGISTER_AGENT, make::<Card>),
    (Some(Service::Coordinator), UPDATE_AGENT, make::<Card>),
    (
        Some(Service::Coordinator),
        DEREGISTER_AGENT,
        make::<Deregister>,
    ),
    (
        Some(Service::DebateFacilitator),
        "open_debate",
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
        _ => Vec::new(),
    };
    let mut schema: Schema = generator.into_root_schema_for::<Envelope>();
    if let Some(properties) = properties(&mut schema) {
        set(properties, "message_type", "const", json!(name));
        if let Some(Some(reference)) = payload.as_ref().map(|payload| payload.get("$ref")) {
            let description = properties
                .get("payload")
                .and_then(|p| p.get("description"))
                .cloned();
            properties.insert(
                "payload".into(),
                json!({ "description": description, "$ref": reference }),
            );
        }
    }
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.remove("MessageType");
    }
    if !actions.is_empty() {
        schema.insert("allOf".into(), Value::Array(actions));
    }
    document(
        name,
        &format!("{doc} A whole message: the envelope with the payload of this type."),
        schema,
    )
}

/// Replaces what a property may hold, and keeps its description.
fn set(properties: &mut serde_json::Map<String, Value>, name: &str, keyword: &str, value: Value) {
    let description = properties
        .get(name)
        .and_then(|property| property.get("description"))
        .cloned();
    let description = description.unwrap_or_default();
    properties.insert(
        name.to_owned(),
        json!({ "description": description, keyword: value }),
    );
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
