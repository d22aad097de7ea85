//! JSON Schema 2020-12 of everything on the wire, and the AsyncAPI 3 document that ties schemas to subjects.
//!
//! Everything here is made from the types and tables of `concord-wire` and `concord-events`; [`crate::generate`] writes it into
//! `proto-schemas/` and `docs/`.

mod asyncapi;
mod event;
mod json;
mod message;
mod reference;
mod yaml;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub use asyncapi::asyncapi;
pub use json::pretty;
pub use reference::{EXIT_CODES, errors, subjects};

use concord_events::dead_letter::DeadLetter;
use concord_wire::payload::{OpenCase, OpenDebate};
use concord_wire::subject;

/// What the `$id` of every document begins with; the file name follows.
pub const ID_BASE: &str = "https://concord.dev/schemas/v1/";

/// The [`MakeSchema`](concord_wire::MakeSchema) of a type.
fn make<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Every JSON Schema document with its file name: messages, notifications, parameters, events, dead letters.
pub fn documents() -> Vec<(String, Value)> {
    let mut documents = message::documents();
    documents.push(alone::<OpenCase>(
        "open_case",
        "Parameters of a request to the coordinator to open a case.",
    ));
    documents.push(alone::<OpenDebate>(
        "open_debate",
        "Parameters of a request to the facilitator to open a debate.",
    ));
    documents.extend(event::documents());
    documents.push(alone::<DeadLetter>(
        "dead-letter",
        "A dead letter, as the command line lists it.",
    ));
    documents
}

/// Form and purpose of every subject: messages first, then what services store, then what is not stored.
fn grammar() -> Vec<(&'static str, &'static str)> {
    const KINDS: [&str; 8] = [
        "msg", "urgent", "event", "timer", "memory", "dead", "beat", "api",
    ];
    let mut forms = [&subject::GRAMMAR[..], &concord_events::subject::GRAMMAR[..]].concat();
    forms.sort_by_key(|(form, _)| {
        KINDS
            .iter()
            .position(|kind| form.split('.').next() == Some(kind))
    });
    forms
}

/// The file name of the document called `name`.
fn file_name(name: &str) -> String {
    format!("{name}.schema.json")
}

/// The document of one type.
fn alone<T: JsonSchema>(name: &str, description: &str) -> (String, Value) {
    document(name, description, generator().into_root_schema_for::<T>())
}

/// Completes a root schema with what every document begins with.
fn document(name: &str, description: &str, mut schema: Schema) -> (String, Value) {
    let file = file_name(name);
    schema.insert("$id".into(), json!(format!("{ID_BASE}{file}")));
    schema.insert("title".into(), json!(name));
    schema.insert("description".into(), json!(description));
    (file, schema.to_value())
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(tidy))
        .into_generator()
}

/// Adds limits that the types have and the generator leaves out, and removes what has no meaning.
fn tidy(schema: &mut Schema) {
    if schema.get("format").and_then(Value::as_str) == Some("uint32") {
        schema.insert("maximum".into(), json!(u32::MAX));
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        // Line ends inside a paragraph of a comment have no meaning.
        let paragraphs: Vec<String> = text
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        schema.insert("description".into(), json!(paragraphs.join("\n\n")));
    }
    // The default of a required field is never used.
    let required: Vec<String> = strings(schema.get("required")).map(str::to_owned).collect();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for name in required {
            if let Some(property) = properties.get_mut(&name).and_then(Value::as_object_mut) {
                property.remove("default");
            }
        }
    }
}

/// The texts of a JSON array.
fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The properties of a schema; an empty object is added if it has none.
fn properties(schema: &mut Schema) -> Option<&mut Map<String, Value>> {
    schema
        .ensure_object()
        .entry("properties")
        .or_insert_with(|| json!({}))
        .as_object_mut()
}

/// The names and descriptions of an enum without contents, as its documentation gives them.
fn variants<T: JsonSchema>() -> Vec<(String, String)> {
    let schema = generator().into_root_schema_for::<T>().to_value();
    let text = |variant: &Value, key: &str| {
        variant
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let variants = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    variants
        .map(|variant| (text(variant, "const"), text(variant, "description")))
        .collect()
}
