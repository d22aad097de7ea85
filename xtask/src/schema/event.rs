//! One document for each event: the whole stored event.

use schemars::Schema;
use serde_json::{Value, json};

use super::{document, generator, properties};
use concord_events::{Aggregate, AggregateEvent, EventInfo, EventMeta, EventVisitor};
use concord_wire::MakeSchema;

/// The name of an event's document, and of its message in the AsyncAPI document.
pub(super) fn name(aggregate: Aggregate, event: &str) -> String {
    format!("event.{aggregate}.{event}")
}

pub(super) fn documents() -> Vec<(String, Value)> {
    let each = Aggregate::ALL.iter();
    each.flat_map(|aggregate| aggregate.visit_event(Documents))
        .collect()
}

/// The documents of one aggregate's events.
struct Documents;

impl EventVisitor for Documents {
    type Output = Vec<(String, Value)>;

    fn visit<E: AggregateEvent>(self) -> Self::Output {
        let events = E::EVENTS.iter().zip(E::SCHEMAS);
        events
            .map(|(info, make)| stored_event(E::AGGREGATE, info, *make))
            .collect()
    }
}

fn stored_event(aggregate: Aggregate, info: &EventInfo, make: MakeSchema) -> (String, Value) {
    let mut generator = generator();
    let data = make(&mut generator).to_value();
    let mut schema: Schema = generator.into_root_schema_for::<EventMeta>();
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
        &format!("{} The event as it is stored.", info.doc),
        schema,
    )
}
