//! JSON Schema 2020-12 of everything on the wire, and the AsyncAPI 3 document that ties schemas to subjects.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The JSON Schema 2020-12 of a type.
pub(crate) fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}
