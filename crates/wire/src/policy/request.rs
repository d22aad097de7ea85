//! A policy as it is asked for: a name, and the fields that differ from what stands under it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::{EstimatePolicy, ImportancePolicy, Policy};
use crate::fault::Fault;
use crate::id::{PLAIN_NAME_PATTERN, PolicyName};

/// A policy as it is asked for: a name, or an object with `preset` and the fields that differ.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRequest {
    /// The name; none for the first preset.
    name: Option<PolicyName>,
    changes: Map<String, Value>,
}

impl PolicyRequest {
    /// Reads a request; `pointer` is where it stands, for the fault.
    pub fn parse(requested: &Value, pointer: &str) -> Result<Self, Fault> {
        let (name, changes) = match requested {
            Value::Null => (None, Map::new()),
            Value::String(name) => (Some(name.as_str()), Map::new()),
            Value::Object(fields) => {
                let mut changes = fields.clone();
                let name = changes.remove("preset");
                if name.as_ref().is_some_and(|name| !name.is_string()) {
                    return Err(no_name(&format!("{pointer}/preset")));
                }
                (fields.get("preset").and_then(Value::as_str), changes)
            }
            _ => return Err(no_name(pointer)),
        };
        let name = name.map(PolicyName::parse).transpose().map_err(|error| {
            Fault::invalid(
                pointer,
                format!("{error}."),
                "`concord policy list` shows the policies that there are.",
            )
        })?;
        Ok(Self { name, changes })
    }

    /// The name of the policy that is asked for.
    pub fn name(&self) -> &str {
        let first = Policy::PRESETS[0];
        self.name.as_ref().map_or(first, PolicyName::as_str)
    }

    /// The policy with what differs: `base` is what stands under the name.
    pub fn applied_to(&self, base: &Policy, pointer: &str) -> Result<Policy, Fault> {
        if self.changes.is_empty() {
            return Ok(base.clone());
        }
        // A policy has no map with other than text keys, so writing it cannot fail.
        let mut merged = serde_json::to_value(base).unwrap_or_default();
        merge(&mut merged, &self.changes);
        let policy: Policy = crate::envelope::from_json(merged.to_string().as_bytes(), pointer)?;
        policy.check(pointer)?;
        check_switches(base, &policy, pointer)?;
        Ok(policy)
    }
}

/// Refuses what would have no effect: whoever states a tolerance or a threshold means that it holds.
fn check_switches(base: &Policy, asked: &Policy, pointer: &str) -> Result<(), Fault> {
    let estimates = EstimatePolicy {
        compared: asked.estimates.compared,
        ..base.estimates.clone()
    };
    let importance = ImportancePolicy {
        filtered: asked.importance.filtered,
        ..base.importance.clone()
    };
    for (has_no_effect, switch, what) in [
        (
            !asked.estimates.compared && asked.estimates != estimates,
            "estimates/compared",
            "estimates are not compared",
        ),
        (
            !asked.importance.filtered && asked.importance != importance,
            "importance/filtered",
            "entries of shared memory are not told by their importance",
        ),
    ] {
        if has_no_effect {
            return Err(Fault::invalid(
                format!("{pointer}/{switch}"),
                format!("What is stated beside it has no effect, because {what}."),
                "Set it to true, or leave the rest of the object out.",
            ));
        }
    }
    Ok(())
}

fn no_name(pointer: &str) -> Fault {
    Fault::invalid(
        pointer,
        "A policy is the name of a preset or of a stored policy, or an object.",
        "Write \"contract-review\", or {\"preset\": \"contract-review\", \"rounds_max\": 1}.",
    )
}

/// The fault for a name under which there is no policy; `names` are those that there are.
pub fn unknown_policy<'a>(
    pointer: &str,
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Fault {
    const NAMED_MAX: usize = 32;
    let mut names = names.into_iter();
    let named: Vec<&str> = names.by_ref().take(NAMED_MAX).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more (`concord policy list`)"),
    };
    Fault::invalid(
        pointer,
        format!("There is no policy {name:?}."),
        format!("Use one of: {}{more}.", named.join(", ")),
    )
}

/// Puts what differs in the place of what stands in the policy; of an object, field by field.
fn merge(base: &mut Value, changes: &Map<String, Value>) {
    let Some(fields) = base.as_object_mut() else {
        return;
    };
    for (key, value) in changes {
        match (fields.get_mut(key), value) {
            (Some(merged @ Value::Object(_)), Value::Object(inner)) => merge(merged, inner),
            _ => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The schema of a policy as a case asks for it: a name, or an object with `preset` and the fields that differ from it.
pub(crate) fn requested_policy(generator: &mut SchemaGenerator) -> Schema {
    let mut policy = Policy::json_schema(generator);
    let mut fields = policy
        .get_mut("properties")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(preset) = fields.pointer_mut("/preset").and_then(Value::as_object_mut) {
        preset.insert("pattern".into(), json!(PLAIN_NAME_PATTERN));
    }
    json_schema!({
        "type": ["string", "object", "null"],
        "pattern": PLAIN_NAME_PATTERN,
        "properties": fields,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_changed_and_the_rest_is_that_of_the_name() {
        let mut base = Policy::investment();
        base.preset = "house rules".into();
        for (requested, name) in [
            (json!(null), "contract-review"),
            (json!({ "rounds_max": 1 }), "contract-review"),
            (json!("house rules"), "house rules"),
            (
                json!({ "preset": "house rules", "rounds_max": 1 }),
                "house rules",
            ),
        ] {
            let request = PolicyRequest::parse(&requested, "").unwrap();
            assert_eq!(request.name(), name, "{requested}");
        }
        let requested =
            json!({ "preset": "house rules", "ladder": { "times": { "person_ms": 9 } } });
        let request = PolicyRequest::parse(&requested, "").unwrap();
        let mut expected = base.clone();
        expected.ladder.times.person_ms = 9;
        assert_eq!(request.applied_to(&base, "").unwrap(), expected);
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (preset, changes, pointer) in [
            (
                "contract-review",
                json!({ "estimates": { "tolerance": { "relative": 0.2 } } }),
                Some("/p/estimates/compared"),
            ),
            (
                "contract-review",
                json!({ "estimates": { "compared": true, "tolerance": { "relative": 0.2 } } }),
                None,
            ),
            (
                "investment",
                json!({ "estimates": { "tolerance": { "relative": 0.2 } } }),
                None,
            ),
            (
                "investment",
                json!({ "estimates": { "compared": false } }),
                None,
            ),
            (
                "contract-review",
                json!({ "importance": { "hold_above": 0.5 } }),
                Some("/p/importance/filtered"),
            ),
            (
                "contract-review",
                json!({ "importance": { "filtered": true, "hold_above": 0.5 } }),
                None,
            ),
        ] {
            let base = Policy::resolve(&json!(preset), "").unwrap();
            let request = PolicyRequest::parse(&changes, "/p").unwrap();
            let fault = request.applied_to(&base, "/p").err();
            let found = fault.as_ref().map(|fault| fault.pointer.as_str());
            assert_eq!(found, pointer, "{changes}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_at_its_place() {
        for (requested, pointer) in [
            (json!(7), "/p"),
            (json!([]), "/p"),
            (json!("House rules"), "/p"),
            (json!({ "preset": 7 }), "/p/preset"),
            (json!({ "preset": "v$(touch x)" }), "/p"),
        ] {
            let fault = PolicyRequest::parse(&requested, "/p").unwrap_err();
            assert_eq!(fault.pointer, pointer, "{requested}");
        }
        let request = PolicyRequest::parse(&json!({ "round_max": 1 }), "/p").unwrap();
        assert!(request.applied_to(&Policy::quick(), "/p").is_err());
        let fault = unknown_policy("/p", "house", ["a", "b"]);
        assert!(fault.advice.contains("a, b."), "{fault}");
        let many: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
        let fault = unknown_policy("/p", "house", many.iter().map(String::as_str));
        assert!(fault.advice.contains("8 more"), "{fault}");
    }
}
