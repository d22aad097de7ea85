//! The form in which events hold a policy: a preset as it is shipped, and the fields that differ from it.
//!
//! A case's policy stands in several of its events. Almost always it is a preset with a few changes, so that is what is written:
//! `{"base": "contract-review@1", "rounds_max": 1}`. Events of earlier versions have every field and no `base`; both are read.
//! Use it with `#[serde(with = "concord_wire::policy::stored")]`. [`Policy::digest`] is that of the whole policy, in either form.

use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{EstimatePolicy, Policy};

/// The field that names the preset. No policy has a field of this name.
const BASE: &str = "base";

/// A preset that stored policies refer to, under a name that never means another one.
struct Base {
    name: &'static str,
    fields: Map<String, Value>,
}

/// Every base that stored policies may name. **A base is never changed or removed**, because it would change what is stored: when
/// a preset changes, its form of before is kept here under its name, and the new one is added with the next number. A test holds
/// the digest of each. The last of a preset's bases is the one that is written.
static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    [
        ("contract-review@1", Policy::contract_review()),
        ("investment@1", without_estimates(Policy::investment())),
        ("incident@1", Policy::incident()),
        ("quick@1", Policy::quick()),
        ("investment@2", Policy::investment()),
    ]
    .into_iter()
    .map(|(name, policy)| Base {
        name,
        fields: policy.every_field(),
    })
    .collect()
});

/// A preset as it was before estimates were compared.
fn without_estimates(preset: Policy) -> Policy {
    Policy {
        estimates: EstimatePolicy::default(),
        ..preset
    }
}

/// The base that a policy of this name is written with; the first preset's for a policy that an operator has stored.
fn base_of(policy: &Policy) -> Option<&'static Base> {
    let of_name = |base: &&Base| base.fields.get("preset") == Some(&Value::from(&*policy.preset));
    BASES.iter().rfind(of_name).or(BASES.first())
}

/// Writes a policy.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(base) = base_of(policy) else {
        return Err(S::Error::custom("there is no preset"));
    };
    let mut changes = policy.every_field();
    changes.retain(|field, value| base.fields.get(field) != Some(value));
    changes.insert(BASE.to_owned(), base.name.into());
    changes.serialize(serializer)
}

/// Reads a policy in this form or with every field.
///
/// # Errors
/// When it names a base that this build does not know, or a field is missing or wrong.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
    let mut fields = Map::deserialize(deserializer)?;
    if let Some(name) = fields.remove(BASE) {
        let mut bases = BASES.iter();
        let Some(base) = bases.find(|base| name == base.name) else {
            return Err(D::Error::custom(format!(
                "the preset {name} is not known to this build; run the version that stored it, or a newer one"
            )));
        };
        let mut whole = base.fields.clone();
        whole.extend(fields);
        fields = whole;
    }
    serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)
}

/// The schema of the stored form, for `#[schemars(schema_with = ...)]`.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    let mut policy = Policy::json_schema(generator);
    let mut fields = policy
        .get_mut("properties")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        let base = serde_json::json!({
            "type": "string",
            "description": "The preset that holds for every field that is left out. Without it, none is left out.",
        });
        fields.insert(BASE.to_owned(), base);
    }
    let required = policy.get_mut("required").map(Value::take);
    json_schema!({
        "description": "A policy: a preset as it is shipped, and the fields that differ from it. Earlier versions wrote every field.",
        "type": "object",
        "properties": fields,
        "additionalProperties": false,
        "anyOf": [{ "required": [BASE] }, { "required": required }],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        policy: Policy,
    }

    fn written(policy: &Policy) -> Value {
        let holder = Holder {
            policy: policy.clone(),
        };
        json!(holder)["policy"].take()
    }

    fn read(policy: Value) -> Result<Policy, String> {
        serde_json::from_value::<Holder>(json!({ "policy": policy }))
            .map(|holder| holder.policy)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_is_written_as_what_differs_from_its_preset() {
        let request =
            json!({ "preset": "contract-review", "rounds_max": 1, "hear_answers": false });
        let policy = Policy::resolve(&request, "").unwrap();
        let expected =
            json!({ "base": "contract-review@1", "rounds_max": 1, "hear_answers": false });
        assert_eq!(written(&policy), expected);
        assert_eq!(written(&Policy::quick()), json!({ "base": "quick@1" }));
    }

    #[test]
    fn every_policy_is_read_back_whatever_it_was_made_from() {
        for preset in Policy::PRESETS {
            for name in Policy::PRESETS.into_iter().chain(["house rules"]) {
                let mut policy = Policy::preset(preset).unwrap();
                policy.preset = name.to_owned();
                for ladder in [json!({}), json!({ "signed": true, "queue_max": 7 })] {
                    let changes =
                        json!({ "preset": name, "ladder": ladder, "decide": "when_settled" });
                    let request = super::super::PolicyRequest::parse(&changes, "").unwrap();
                    let changed = request.applied_to(&policy, "").unwrap();
                    for policy in [&policy, &changed] {
                        let again = read(written(policy)).unwrap();
                        assert_eq!(again, *policy);
                        assert_eq!(again.digest(), policy.digest());
                    }
                }
            }
        }
    }

    #[test]
    fn the_form_of_earlier_versions_is_read() {
        for preset in Policy::PRESETS {
            let policy = Policy::preset(preset).unwrap();
            assert_eq!(read(json!(policy)), Ok(policy));
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let unknown = read(json!({ "base": "contract-review@9" })).unwrap_err();
        assert!(unknown.contains("newer"), "{unknown}");
        let lacking = read(json!({ "preset": "quick" })).unwrap_err();
        assert!(lacking.contains("missing field"), "{lacking}");
        let surplus = read(json!({ "base": "quick@1", "round_max": 1 })).unwrap_err();
        assert!(surplus.contains("round_max"), "{surplus}");
    }

    #[test]
    fn a_base_never_means_another_policy() {
        let digests: Vec<(&str, String)> = BASES
            .iter()
            .map(|base| {
                (
                    base.name,
                    read(json!({ "base": base.name })).unwrap().digest(),
                )
            })
            .collect();
        let digests: Vec<(&str, &str)> = digests
            .iter()
            .map(|(name, digest)| (*name, &digest[..16]))
            .collect();
        assert_eq!(
            digests,
            [
                ("contract-review@1", "ef659e92d54a2dc5"),
                ("investment@1", "1ab4bb9074a92f59"),
                ("incident@1", "b33e20f042fdd275"),
                ("quick@1", "5d57d6eee87e2a85"),
                ("investment@2", "a3224e131274cbc3"),
            ]
        );
    }
}
