use serde_json::{Value, json};

use super::*;

fn rule(field: &str, value: Value) -> Value {
    let mut rule = json!({
        "name": "regime", "topic": "regime", "event_type": "regime_change",
        "when": { "confidence_above": { "confidence": 0.8 } },
    });
    rule[field] = value;
    rule
}

#[test]
fn what_is_wrong_with_a_rule_is_said_at_its_place() {
    let when = |kind: &str, fields: Value| rule("when", json!({ kind: fields }));
    for (rule, pointer) in [
        (rule("topic", json!("indicator_*")), None),
        (rule("topic", json!("*")), None),
        (rule("topic", json!("a.b")), Some("/rules/0/topic")),
        (rule("topic", json!("a*b")), Some("/rules/0/topic")),
        (rule("event_type", json!(" ")), Some("/rules/0/event_type")),
        (rule("field", json!("")), Some("/rules/0/field")),
        (
            rule("recommended_actions", json!(vec!["look"; 33])),
            Some("/rules/0/recommended_actions"),
        ),
        (when("changed", json!({})), None),
        (
            when("confidence_above", json!({ "confidence": 80 })),
            Some("/rules/0/when/confidence_above/confidence"),
        ),
        (
            when("moved_by", json!({ "by": -25, "unit": "bp" })),
            Some("/rules/0/when/moved_by/by"),
        ),
        (when("beyond_percentile", json!({})), None),
        (
            when("beyond_percentile", json!({ "above": 95 })),
            Some("/rules/0/when/beyond_percentile/above"),
        ),
        (
            when("beyond_percentile", json!({ "below": 0.6 })),
            Some("/rules/0/when/beyond_percentile/below"),
        ),
        (
            when("beyond_percentile", json!({ "observations_min": 1 })),
            Some("/rules/0/when/beyond_percentile/observations_min"),
        ),
    ] {
        let rules: AlertRules = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
        let fault = rules.check("").err();
        let found = fault.as_ref().map(|fault| fault.pointer.as_str());
        assert_eq!(found, pointer, "{rules:?}");
    }
}

#[test]
fn an_unknown_kind_is_refused_and_so_are_two_rules_of_one_name() {
    let unknown = rule("when", json!({ "doubled": {} }));
    let read = serde_json::from_value::<AlertRules>(json!({ "rules": [unknown] }));
    let error = read.unwrap_err().to_string();
    assert!(error.contains("beyond_percentile"), "{error}");
    let twice = [rule("topic", json!("a")), rule("topic", json!("b"))];
    let twice: AlertRules = serde_json::from_value(json!({ "rules": twice })).unwrap();
    assert_eq!(twice.check("").unwrap_err().pointer, "/rules/1/name");
    let often: AlertRules = serde_json::from_value(json!({ "per_hour_max": 0 })).unwrap();
    assert_eq!(often.check("").unwrap_err().pointer, "/per_hour_max");
}
