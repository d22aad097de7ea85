//! One document a fact: the whole stored record.

use schemars::Schema;
use serde_json::{Value, json};

use super::{Make, document, generator, properties};
use crate::event::{
    AgentEvent, CaseEvent, DeadlineEvent, DebateEvent, DetectionEvent, FactInfo, Facts,
    PrecedentEvent, QueueEvent, RecordEvent, RecordMeta, RequestEvent, WakeEvent,
};
use crate::subject::Aggregate;

/// The name of a fact's document, and of its message in the AsyncAPI document.
pub(super) fn name(aggregate: Aggregate, fact: &str) -> String {
    format!("event.{aggregate}.{fact}")
}

pub(super) fn documents() -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    add::<CaseEvent>(CaseEvent::SCHEMAS, &mut documents);
    add::<DetectionEvent>(DetectionEvent::SCHEMAS, &mut documents);
    add::<DebateEvent>(DebateEvent::SCHEMAS, &mut documents);
    add::<DeadlineEvent>(DeadlineEvent::SCHEMAS, &mut documents);
    add::<RecordEvent>(RecordEvent::SCHEMAS, &mut documents);
    add::<PrecedentEvent>(PrecedentEvent::SCHEMAS, &mut documents);
    add::<QueueEvent>(QueueEvent::SCHEMAS, &mut documents);
    add::<AgentEvent>(AgentEvent::SCHEMAS, &mut documents);
    add::<RequestEvent>(RequestEvent::SCHEMAS, &mut documents);
    add::<WakeEvent>(WakeEvent::SCHEMAS, &mut documents);
    documents
}

fn add<E: Facts>(schemas: &[Make], documents: &mut Vec<(String, Value)>) {
    documents.extend(
        E::FACTS
            .iter()
            .zip(schemas)
            .map(|(info, make)| record(E::AGGREGATE, info, *make)),
    );
}

fn record(aggregate: Aggregate, info: &FactInfo, make: Make) -> (String, Value) {
    let mut generator = generator();
    let data = make(&mut generator).to_value();
    let mut schema: Schema = generator.into_root_schema_for::<RecordMeta>();
    if let Some(properties) = properties(&mut schema) {
        properties.insert(
            "fact".into(),
            json!({ "description": "What happened.", "const": info.name }),
        );
        properties.insert(
            "aggregate".into(),
            json!({ "description": "To what kind.", "const": aggregate.as_str() }),
        );
        properties.insert("data".into(), data);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.extend(["fact", "aggregate", "data"].map(Value::from));
    }
    document(
        &name(aggregate, info.name),
        &format!("{} The record as it is stored.", info.doc),
        schema,
    )
}
