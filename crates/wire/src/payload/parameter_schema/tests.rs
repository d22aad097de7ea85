use serde_json::json;

use super::*;

fn schema(value: Value) -> Schema {
    let Value::Object(schema) = value else {
        panic!("{value} is no object")
    };
    schema
}

fn translation() -> Schema {
    schema(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Translation", "type": "object",
        "required": ["text", "to"], "additionalProperties": false,
        "properties": {
            "text": { "type": "string", "minLength": 1, "maxLength": 5, "description": "what" },
            "to": { "enum": ["de", "fr"] },
            "tries": { "type": "integer", "minimum": 1, "maximum": 3, "default": 1 },
            "share": { "type": ["number", "null"], "minimum": 0 },
            "glossary": { "type": "array", "items": { "type": "object", "required": ["a/b"], "properties": { "a/b": { "type": "string" } } } },
            "labels": { "type": "object", "additionalProperties": { "type": "boolean" } },
        },
    }))
}

#[test]
fn what_fits_is_accepted() {
    let schema = translation();
    assert_eq!(check_schema(&schema, ""), Ok(()));
    for value in [
        json!({ "text": "Größe", "to": "de" }),
        json!({ "text": "x", "to": "fr", "tries": 3.0, "share": null, "glossary": [], "labels": { "new": true } }),
        json!({ "text": "x", "to": "fr", "share": 0, "glossary": [{ "a/b": "c", "more": 1 }] }),
    ] {
        assert_eq!(conforms(&schema, &value, "/p"), Ok(()), "{value}");
    }
    assert_eq!(
        conforms(&Schema::new(), &json!([1, { "any": "thing" }]), ""),
        Ok(())
    );
}

#[test]
fn what_does_not_fit_is_refused_at_its_place() {
    let schema = translation();
    for (value, pointer) in [
        (json!(null), "/p"),
        (json!([]), "/p"),
        (json!({ "text": "x" }), "/p"),
        (json!({ "text": "", "to": "de" }), "/p/text"),
        (json!({ "text": "sixsix", "to": "de" }), "/p/text"),
        (json!({ "text": 1, "to": "de" }), "/p/text"),
        (json!({ "text": "x", "to": "it" }), "/p/to"),
        (json!({ "text": "x", "to": "de", "tries": 1.5 }), "/p/tries"),
        (json!({ "text": "x", "to": "de", "tries": 0 }), "/p/tries"),
        (json!({ "text": "x", "to": "de", "tries": 4 }), "/p/tries"),
        (
            json!({ "text": "x", "to": "de", "share": -0.5 }),
            "/p/share",
        ),
        (
            json!({ "text": "x", "to": "de", "glossary": [{ "a/b": "c" }, { "a/b": 1 }] }),
            "/p/glossary/1/a~1b",
        ),
        (
            json!({ "text": "x", "to": "de", "labels": { "new": 1 } }),
            "/p/labels/new",
        ),
        (
            json!({ "text": "x", "to": "de", "other~": 1 }),
            "/p/other~0",
        ),
    ] {
        let fault = conforms(&schema, &value, "/p").unwrap_err();
        assert_eq!(
            (fault.code, fault.pointer.as_str()),
            (ErrorCode::InvalidRequest, pointer),
            "{value}: {fault}"
        );
    }
}

#[test]
fn large_numbers_are_compared_exactly() {
    let bounded = schema(json!({ "maximum": 9_007_199_254_740_992_u64 }));
    assert!(conforms(&bounded, &json!(9_007_199_254_740_993_u64), "").is_err());
    assert!(conforms(&schema(json!({ "enum": [1] })), &json!(1.0), "").is_ok());
}

/// Checks that each schema is refused with this code, at this place.
fn refused(code: ErrorCode, schemas: impl IntoIterator<Item = (Value, &'static str)>) {
    for (written, pointer) in schemas {
        let fault = check_schema(&schema(written.clone()), "/s").unwrap_err();
        assert_eq!(
            (fault.code, fault.pointer.as_str()),
            (code, pointer),
            "{written}: {fault}"
        );
    }
}

#[test]
fn a_schema_that_uses_something_else_is_refused_at_its_place() {
    let schemas = [
        (json!({ "pattern": "(a+)+$" }), "/s/pattern"),
        (json!({ "$ref": "https://example.org/x" }), "/s/$ref"),
        (
            json!({ "properties": { "a": { "oneOf": [] } } }),
            "/s/properties/a/oneOf",
        ),
        (json!({ "properties": { "a": true } }), "/s/properties/a"),
        (json!({ "properties": [] }), "/s/properties"),
        (json!({ "items": [{}] }), "/s/items"),
        (json!({ "type": "text" }), "/s/type"),
        (json!({ "type": ["string", 1] }), "/s/type/1"),
        (json!({ "type": [] }), "/s/type"),
        (json!({ "required": ["a", 1] }), "/s/required/1"),
        (json!({ "minimum": "1" }), "/s/minimum"),
        (json!({ "maxLength": -1 }), "/s/maxLength"),
    ];
    refused(ErrorCode::InvalidRequest, schemas);
}

#[test]
fn a_schema_that_is_too_large_is_refused_at_its_place() {
    let mut deep = json!({});
    for _ in 0..8 {
        deep = json!({ "items": deep });
    }
    let wide: Schema = (0..256).map(|n| (format!("p{n}"), json!({}))).collect();
    let many: Vec<u32> = (0..65).collect();
    let schemas = [
        (json!({ "enum": many }), "/s/enum"),
        (json!({ "properties": wide }), "/s/properties/p99"),
        (deep, "/s/items/items/items/items/items/items/items/items"),
    ];
    refused(ErrorCode::CapacityExceeded, schemas);
}
