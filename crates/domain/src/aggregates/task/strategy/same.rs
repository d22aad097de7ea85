//! Results that are compared as values and not as texts.

use std::cmp::Ordering;

use serde_json::Value;

/// Whether two results are the same. Numbers may differ by `tolerance`, a share of the larger one.
pub(super) fn same(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()) + f64::EPSILON,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, value): (&String, &Value)| {
                b.get(name)
                    .is_some_and(|other| same(value, other, tolerance))
            };
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

/// An order of all values, so that grouping does not depend on who answered first.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(one), Value::Number(other)) => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => one.to_string().cmp(&other.to_string()),
        },
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other).map(|(a, b)| order(a, b));
            let first = pairs.find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            // The names are in alphabetical order.
            let mut pairs = one.iter().zip(other);
            let differs = pairs.find_map(|(a, b)| {
                let order = a.0.cmp(b.0).then_with(|| order(a.1, b.1));
                order.is_ne().then_some(order)
            });
            differs.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_numbers_have_a_tolerance_at_any_depth() {
        for (a, b, tolerance, expected) in [
            (
                json!({ "a": 1, "b": [2] }),
                json!({ "b": [2.0], "a": 1 }),
                0.0,
                true,
            ),
            (json!({ "a": 100 }), json!({ "a": 104 }), 0.05, true),
            (json!({ "a": 100 }), json!({ "a": 106 }), 0.05, false),
            (json!([1]), json!([1, 1]), 0.5, false),
            (json!("a"), json!("A"), 1.0, false),
            (json!(null), json!(0), 1.0, false),
        ] {
            assert_eq!(same(&a, &b, tolerance), expected, "{a} {b}");
        }
        assert_eq!(order(&json!({"a": 2}), &json!({"a": 10})), Ordering::Less);
    }
}
