//! One document a message type: the envelope with its payload.

use schemars::Schema;
use serde_json::{Value, json};

use super::{Make, document, generator, make, properties};
use crate::envelope::{Envelope, MessageType};
use crate::payload::{
    Acknowledgement, Answer, Challenge, Clarification, ErrorReport, Evidence, Finding, Notification, OpenCase,
    OpenDebate, OutcomeReport, Question, Request, Response, Review, Ruling, TaskAssignment,
};
use crate::subject::Service;

/// The message types whose payload has a type. The payload of any other known type is an object of any form.
const PAYLOADS: [(MessageType, Make); 17] = [
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
];

/// The actions of requests to services whose parameters have a type.
const ACTIONS: [(Service, &str, Make); 2] = [
    (Service::Coordinator, "open_case", make::<OpenCase>),
    (Service::DebateFacilitator, "open_debate", make::<OpenDebate>),
];

pub(super) fn documents() -> Vec<(String, Value)> {
    let envelope = generator().into_root_schema_for::<Envelope>();
    let about = "The one envelope of everything that is said, whatever its message type. Unknown fields are ignored.";
    let mut documents = vec![document("envelope", about, envelope)];
    documents.extend(MessageType::DOCS.iter().map(|(name, doc)| message(name, doc)));
    documents
}

fn message(name: &str, doc: &str) -> (String, Value) {
    let mut generator = generator();
    let payload = PAYLOADS.iter().find(|(kind, _)| kind.as_str() == name).map(|(_, make)| make(&mut generator));
    let actions: Vec<Value> = match name {
        "request" => ACTIONS
            .iter()
            .map(|(service, action, make)| parameters_of(*service, action, make(&mut generator).to_value()))
            .collect(),
        _ => Vec::new(),
    };
    let mut schema: Schema = generator.into_root_schema_for::<Envelope>();
    if let Some(properties) = properties(&mut schema) {
        set(properties, "message_type", "const", json!(name));
        if let Some(Some(reference)) = payload.as_ref().map(|payload| payload.get("$ref")) {
            let description = properties.get("payload").and_then(|p| p.get("description")).cloned();
            properties.insert("payload".into(), json!({ "description": description, "$ref": reference }));
        }
    }
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.remove("MessageType");
    }
    if !actions.is_empty() {
        schema.insert("allOf".into(), Value::Array(actions));
    }
    document(name, &format!("{doc} A whole message: the envelope with the payload of this type."), schema)
}

/// Replaces what a property may hold, and keeps its description.
fn set(properties: &mut serde_json::Map<String, Value>, name: &str, keyword: &str, value: Value) {
    let description = properties.get(name).and_then(|property| property.get("description")).cloned();
    let description = description.unwrap_or_default();
    properties.insert(name.to_owned(), json!({ "description": description, keyword: value }));
}

/// A request to `service` to do `action` has these parameters.
fn parameters_of(service: Service, action: &str, parameters: Value) -> Value {
    json!({
        "if": {
            "properties": {
                "to_agent": { "const": service.as_str() },
                "payload": { "properties": { "action": { "const": action } }, "required": ["action"] },
            },
        },
        "then": {
            "properties": { "payload": { "properties": { "parameters": parameters }, "required": ["parameters"] } },
        },
    })
}
