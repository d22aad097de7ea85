//! The schema of the parameters of an action: the part of JSON Schema 2020-12 that a card may use.
//!
//! Only a part, because both the schema and the parameters come from agents that nobody vouches for: nothing here looks anything
//! up (`$ref`), and nothing takes long (`pattern`). A card with any other keyword is refused when it is registered, so that no
//! keyword is ever ignored when a request is checked. `docs/adr/0029` has the reasons.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::shortened;
use crate::error_code::ErrorCode;
use crate::fault::Fault;

/// A schema as it is written.
pub type Schema = Map<String, Value>;

/// How deep schemas may be nested, with the outermost.
const DEPTH_MAX: usize = 8;
/// How many schemas one may contain, with itself.
const SCHEMAS_MAX: usize = 256;
/// Most names in `required` and most values in `enum`: each is compared with each element of a list.
const LIST_MAX: usize = 64;

/// The keywords by which a value is checked.
const ASSERTIONS: [&str; 10] = [
    "type",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
];
/// The keywords that are for readers only.
const ANNOTATIONS: [&str; 6] = [
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
];
const TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// Checks that a schema keeps to the part that is supported; `pointer` is where it stands.
pub(super) fn check_schema(schema: &Schema, pointer: &str) -> Result<(), Fault> {
    check_within(schema, pointer, 1, &mut 0)
}

fn check_within(
    schema: &Schema,
    pointer: &str,
    depth: usize,
    count: &mut usize,
) -> Result<(), Fault> {
    *count += 1;
    if depth > DEPTH_MAX || *count > SCHEMAS_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            pointer,
            "The schema is too large.",
            format!(
                "Nest schemas at most {DEPTH_MAX} deep, and write at most {SCHEMAS_MAX} of them."
            ),
        ));
    }
    for (keyword, value) in schema {
        let pointer = at(pointer, keyword);
        match (keyword.as_str(), value) {
            ("type", Value::String(name)) => check_type(name, &pointer)?,
            ("type", Value::Array(names)) if !names.is_empty() => {
                for (place, name) in names.iter().enumerate() {
                    let pointer = format!("{pointer}/{place}");
                    check_type(
                        name.as_str()
                            .ok_or_else(|| not_a(&pointer, "the name of a type"))?,
                        &pointer,
                    )?;
                }
            }
            ("required", Value::Array(names)) => {
                at_most(&pointer, names)?;
                if let Some(place) = names.iter().position(|name| !name.is_string()) {
                    return Err(not_a(
                        &format!("{pointer}/{place}"),
                        "the name of a property",
                    ));
                }
            }
            ("enum", Value::Array(values)) => at_most(&pointer, values)?,
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let pointer = at(&pointer, name);
                    check_within(as_schema(property, &pointer)?, &pointer, depth + 1, count)?;
                }
            }
            ("additionalProperties", Value::Bool(_)) => {}
            ("additionalProperties" | "items", schema) => {
                check_within(as_schema(schema, &pointer)?, &pointer, depth + 1, count)?;
            }
            ("minimum" | "maximum", Value::Number(_)) => {}
            ("minLength" | "maxLength", Value::Number(length)) if length.is_u64() => {}
            (known, _) if ASSERTIONS.contains(&known) => {
                return Err(not_a(&pointer, "what this keyword takes"));
            }
            (annotation, _) if ANNOTATIONS.contains(&annotation) => {}
            (unknown, _) => return Err(unsupported(&pointer, unknown)),
        }
    }
    Ok(())
}

fn check_type(name: &str, pointer: &str) -> Result<(), Fault> {
    if TYPES.contains(&name) {
        return Ok(());
    }
    let what = format!("{:?} is no type.", shortened(name));
    Err(Fault::invalid(
        pointer,
        what,
        format!("Name one of {}.", TYPES.join(", ")),
    ))
}

fn as_schema<'a>(value: &'a Value, pointer: &str) -> Result<&'a Schema, Fault> {
    value
        .as_object()
        .ok_or_else(|| not_a(pointer, "a schema that is an object"))
}

fn at_most(pointer: &str, list: &[Value]) -> Result<(), Fault> {
    if list.len() <= LIST_MAX {
        return Ok(());
    }
    let (what, advice) = (
        format!("There are {}.", list.len()),
        format!("Give at most {LIST_MAX}."),
    );
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        what,
        advice,
    ))
}

fn not_a(pointer: &str, what: &str) -> Fault {
    Fault::invalid(
        pointer,
        format!("It is not {what}."),
        "Write it as JSON Schema 2020-12 says.",
    )
}

fn unsupported(pointer: &str, keyword: &str) -> Fault {
    Fault::invalid(
        pointer,
        format!(
            "The keyword {:?} is not supported in the schema of an action.",
            shortened(keyword)
        ),
        format!(
            "Use only {}; {} are kept for readers.",
            ASSERTIONS.join(", "),
            ANNOTATIONS.join(", ")
        ),
    )
}

/// The pointer to a property.
fn at(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Checks a value against a schema that [`check_schema`] has let pass; `pointer` is where the value stands.
pub(super) fn conforms(schema: &Schema, value: &Value, pointer: &str) -> Result<(), Fault> {
    if let Some(types) = schema.get("type") {
        let one = std::slice::from_ref(types);
        let mut names = types
            .as_array()
            .map_or(one, Vec::as_slice)
            .iter()
            .filter_map(Value::as_str);
        if !names.any(|name| is_type(value, name)) {
            return Err(unfit(
                pointer,
                format!("It is {}, not of type {types}.", type_of(value)),
            ));
        }
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.iter().any(|one| is_equal(one, value))
    {
        let values = Value::from(values.clone()).to_string();
        return Err(unfit(
            pointer,
            format!("It is none of {}.", shortened(&values)),
        ));
    }
    match value {
        Value::Object(fields) => conforms_object(schema, fields, pointer),
        Value::Array(items) => match schema.get("items").and_then(Value::as_object) {
            Some(each) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(place, item)| {
                    conforms(each, item, &format!("{pointer}/{place}"))
                })
            }
            None => Ok(()),
        },
        Value::String(text) => conforms_text(schema, text, pointer),
        Value::Number(number) => conforms_number(schema, number, pointer),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn conforms_object(
    schema: &Schema,
    fields: &Map<String, Value>,
    pointer: &str,
) -> Result<(), Fault> {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    if let Some(missing) = required
        .into_iter()
        .find(|name| !fields.contains_key(*name))
    {
        return Err(unfit(
            pointer,
            format!("It lacks {:?}.", shortened(missing)),
        ));
    }
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (name, field) in fields {
        match (known.and_then(|known| known.get(name)), others) {
            (Some(Value::Object(property)), _) | (None, Some(Value::Object(property))) => {
                conforms(property, field, &at(pointer, name))?;
            }
            (None, Some(Value::Bool(false))) => {
                return Err(unfit(
                    &at(pointer, name),
                    format!("There is no {:?}.", shortened(name)),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn conforms_text(schema: &Schema, text: &str, pointer: &str) -> Result<(), Fault> {
    let bound = |keyword| schema.get(keyword).and_then(Value::as_u64);
    let (least, most) = (bound("minLength"), bound("maxLength"));
    if least.is_none() && most.is_none() {
        return Ok(());
    }
    let length = text.chars().count() as u64;
    if let Some(least) = least.filter(|least| length < *least) {
        return Err(unfit(
            pointer,
            format!("It has {length} characters, fewer than {least}."),
        ));
    }
    if let Some(most) = most.filter(|most| length > *most) {
        return Err(unfit(
            pointer,
            format!("It has {length} characters, more than {most}."),
        ));
    }
    Ok(())
}

fn conforms_number(schema: &Schema, number: &Number, pointer: &str) -> Result<(), Fault> {
    for (keyword, wrong, word) in [
        ("minimum", Ordering::Less, "less"),
        ("maximum", Ordering::Greater, "more"),
    ] {
        if let Some(Value::Number(bound)) = schema.get(keyword)
            && compare(number, bound) == Some(wrong)
        {
            return Err(unfit(pointer, format!("{number} is {word} than {bound}.")));
        }
    }
    Ok(())
}

fn unfit(pointer: &str, what: String) -> Fault {
    Fault::invalid(
        pointer,
        what,
        "Write it as the schema of this action says; `concord agents --json` shows it.",
    )
}

fn is_type(value: &Value, name: &str) -> bool {
    match value {
        // 1.0 is a whole number as well.
        Value::Number(number) => {
            let is_whole = number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|n| n.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        other => name == type_of(other),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether two values are equal; 1 and 1.0 are.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Some(Ordering::Equal),
        _ => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

#[cfg(test)]
mod tests;
