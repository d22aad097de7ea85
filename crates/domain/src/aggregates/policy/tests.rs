use std::sync::Arc;

use concord_wire::policy::{Bound, PolicyRequest};
use serde_json::json;

use super::*;
use crate::fixtures::*;

fn name(text: &str) -> PolicyName {
    PolicyName::parse(text).unwrap()
}

fn put(policy: Policy, bounds: PolicyBounds, why: &str) -> PolicyInput {
    PolicyInput::Put {
        name: name("house rules v1.0"),
        policy: Box::new(policy),
        bounds,
        by: agent("olga"),
        why: why.into(),
    }
}

fn bounds(fields: serde_json::Value) -> PolicyBounds {
    serde_json::from_value(fields).unwrap()
}

#[test]
fn versions_are_counted_and_the_same_content_is_none() {
    let id = id_of(&name("house rules v1.0"));
    let mut story = Story::<PolicyMachine>::of(id.as_str());
    let (quick, usual) = (Policy::quick(), PolicyBounds::default());
    let wide = bounds(json!({ "*": "any" }));
    let wrong = bounds(json!({ "round_max": "any" }));
    let mut at = 0;
    for (input, expected) in [
        (put(quick.clone(), usual.clone(), ""), "refused: /why"),
        (
            put(quick.clone(), wrong, "why"),
            "refused: /bounds/round_max",
        ),
        (put(quick.clone(), usual.clone(), "why"), "put"),
        (
            put(quick.clone(), usual.clone(), "again"),
            "ignored: already_done",
        ),
        (put(quick.clone(), wide.clone(), "freedom"), "put"),
        (put(policy(), wide, "longer"), "put"),
        (put(quick, usual, "back to the first"), "put"),
    ] {
        at += 1;
        let context = said(&format!("m-{at}"), at);
        assert_eq!(story.hears(&context, &input), expected, "{input:?}");
    }
    let state = story.state();
    let versions: Vec<u32> = state.versions.iter().map(|one| one.0.version).collect();
    assert_eq!(versions, [1, 2, 3, 4]);
    let stands = |version| state.find("house rules v1.0", version);
    let last = stands(None).unwrap();
    assert_eq!((last.version, last.policy.rounds_max), (4, 1));
    assert_eq!(last.policy.preset, "house rules v1.0");
    let second = stands(Some(2)).unwrap();
    assert_eq!(second.bounds.fields.get("*"), Some(&Bound::Any));
    assert_eq!((stands(Some(5)), stands(Some(0))), (None, None));
}

#[test]
fn a_preset_is_version_0_and_can_be_replaced() {
    let empty = PolicyState::default();
    for preset in Policy::PRESETS {
        let found = empty.find(preset, None).unwrap();
        assert_eq!((found.version, found.policy.preset.as_str()), (0, preset));
        assert_eq!(found, empty.find(preset, Some(0)).unwrap());
        assert!(empty.find(preset, Some(1)).is_none());
    }
    assert!(empty.find("house rules", None).is_none());
    let replaced = replacing_quick();
    assert_eq!(replaced.find("quick", None).unwrap().policy.rounds_max, 2);
    let shipped = replaced.find("quick", Some(0)).unwrap();
    assert_eq!(shipped.policy, Policy::quick());
}

/// What stands under the name of the preset `quick` when it was replaced by two rounds, of which an opener may have any number.
fn replacing_quick() -> Arc<PolicyState> {
    let mut story = Story::<PolicyMachine>::of("quick");
    let policy = Policy {
        rounds_max: 2,
        ..Policy::quick()
    };
    let input = PolicyInput::Put {
        name: name("quick"),
        policy: Box::new(policy),
        bounds: bounds(json!({ "rounds_max": "any" })),
        by: agent("olga"),
        why: "ours".into(),
    };
    assert_eq!(story.hears(&said("m-1", 1), &input), "put");
    story.versioned.state
}

#[test]
fn a_request_is_resolved_by_what_stands_under_its_name() {
    let known = KnownPolicies {
        stored: replacing_quick(),
        names: vec![name("quick"), name("house rules")],
    };
    let changed = json!({ "preset": "quick", "rounds_max": 5 });
    let (policy, base) = known.resolve(&changed, None, "/policy").unwrap();
    assert_eq!((policy.rounds_max, base.version), (5, 1));
    let (policy, base) = known.resolve(&changed, Some(0), "/policy").unwrap();
    assert_eq!((policy.rounds_max, base.version), (5, 0));
    let nobody = KnownPolicies {
        stored: Arc::default(),
        ..known
    };
    let fault = nobody
        .resolve(&json!("house"), None, "/policy")
        .unwrap_err();
    let names = "contract-review, investment, incident, quick, house rules.";
    assert_eq!(fault.pointer, "/policy");
    assert!(fault.advice.ends_with(names), "{fault}");
    assert!(PolicyRequest::parse(&json!("house"), "").is_ok());
}
