//! What serde says of JSON that it cannot read, in the words of somebody who writes JSON: a text, a number, an object, a list.

use crate::payload::shortened;

/// What is wrong at a place, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InWords {
    pub(super) message: String,
    pub(super) advice: String,
    /// The field that the place lacks.
    pub(super) missing: Option<String>,
}

/// Says in words what serde says of a value. What it does not know it leaves as it is.
pub(super) fn in_words(error: &serde_json::Error) -> InWords {
    let text = error.to_string();
    let said = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(said, _)| said);
    missing(said)
        .or_else(|| unknown(said))
        .or_else(|| unexpected(said))
        .unwrap_or_else(|| InWords {
            message: format!("It is not what is expected: {said}."),
            advice: "Compare it with the JSON Schema of what you send; docs/subjects.md links that of each message type.".into(),
            missing: None,
        })
}

fn missing(said: &str) -> Option<InWords> {
    let field = said.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(InWords {
        message: format!("The field {field:?} is missing."),
        advice: "Add it.".into(),
        missing: Some(field.to_owned()),
    })
}

/// A field or a word that is none of those known at its place.
fn unknown(said: &str) -> Option<InWords> {
    let field = |name: &str| format!("There is no field {name:?} here.");
    let word = |name: &str| format!("{name:?} is no word that can stand here.");
    let (rest, is_field) = match said.strip_prefix("unknown field `") {
        Some(rest) => (rest, true),
        None => (said.strip_prefix("unknown variant `")?, false),
    };
    let (name, expected) = rest.split_once('`')?;
    let name = shortened(name);
    // What is between backticks: every second part.
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let advice = match (known.as_slice(), is_field) {
        ([], _) => "Leave it out.".to_owned(),
        (known, true) => format!("Leave it out, or write one of: {}.", known.join(", ")),
        (known, false) => format!("Write one of: {}.", known.join(", ")),
    };
    Some(InWords {
        message: if is_field { field(&name) } else { word(&name) },
        advice,
        missing: None,
    })
}

/// A value of another type than is expected, or outside of what its type can hold.
fn unexpected(said: &str) -> Option<InWords> {
    let found = said
        .strip_prefix("invalid type: ")
        .or_else(|| said.strip_prefix("invalid value: "))?;
    // The text that was found may have these words too.
    let (found, expected) = found.rsplit_once(", expected ")?;
    let expected = kind_expected(expected);
    Some(InWords {
        message: format!(
            "It is {}, where {expected} is expected.",
            value_found(found)
        ),
        advice: format!("Write {expected} there."),
        missing: None,
    })
}

fn value_found(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" => "null".to_owned(),
        _ => {
            if let Some(text) = found.strip_prefix("string ") {
                return format!("the text {}", shortened(text));
            }
            let value = found.split('`').nth(1);
            match value {
                Some(value) if found.starts_with("boolean") => value.to_owned(),
                Some(value) => format!("the number {value}"),
                None => found.to_owned(),
            }
        }
    }
}

fn kind_expected(expected: &str) -> String {
    let kind = match expected {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number from 0 on",
        "a string" | "str" | "string" => "a text",
        "a boolean" | "bool" => "true or false",
        "a sequence" => "a list",
        "a map" | "map" => "an object",
        "string or map" => "a text or an object",
        other if other.starts_with("struct ") || other.contains("tagged enum ") => "an object",
        other => other,
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Skill {
        #[serde(rename = "name")]
        _name: String,
        #[serde(default, rename = "weight")]
        _weight: Option<f64>,
        #[serde(default, rename = "level")]
        _level: Option<Level>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Level {
        Low,
        High,
    }

    fn said(value: &Value) -> (String, Option<String>) {
        let bytes = value.to_string();
        let error = serde_json::from_str::<Skill>(&bytes).unwrap_err();
        let InWords {
            message,
            advice,
            missing,
        } = in_words(&error);
        (format!("{message} {advice}"), missing)
    }

    #[test]
    fn types_are_said_in_words_and_no_type_of_this_code_is_named() {
        let rows = [
            (
                json!("vat"),
                "It is the text \"vat\", where an object is expected. Write an object there.",
            ),
            (
                json!({ "name": 5 }),
                "It is the number 5, where a text is expected. Write a text there.",
            ),
            (
                json!({ "name": null }),
                "It is null, where a text is expected. Write a text there.",
            ),
            (
                json!({ "name": "a", "weight": "1" }),
                "It is the text \"1\", where a number is expected. Write a number there.",
            ),
            (
                json!({ "name": "a", "weight": true }),
                "It is true, where a number is expected. Write a number there.",
            ),
            (
                json!({ "name": ["x"] }),
                "It is a list, where a text is expected. Write a text there.",
            ),
            (
                json!({ "name": "a", "level": "medium" }),
                "\"medium\" is no word that can stand here. Write one of: low, high.",
            ),
            (
                json!({ "name": "a", "nmae": 1 }),
                "There is no field \"nmae\" here. Leave it out, or write one of: name, weight, level.",
            ),
        ];
        for (value, expected) in rows {
            assert_eq!(said(&value), (expected.to_owned(), None), "{value}");
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let expected = "The field \"name\" is missing. Add it.".to_owned();
        assert_eq!(said(&json!({})), (expected, Some("name".into())));
    }
}
