use super::*;

/// The pointer of what is refused of these changes to a preset.
fn refused_in(bounds: &PolicyBounds, preset: &str, mut changes: Value) -> Option<String> {
    let base = Policy::preset(preset).unwrap();
    changes["preset"] = json!(preset);
    let requested = Policy::resolve(&changes, "/policy").unwrap();
    let fault = bounds.check(&base, &requested, "/policy").err()?;
    assert_eq!(fault.code, ErrorCode::Unauthorized);
    Some(fault.pointer)
}

#[track_caller]
fn checked(rows: &[(&str, Value, Option<&str>)]) {
    for (preset, changes, refused) in rows {
        assert_eq!(
            refused_in(&PolicyBounds::default(), preset, changes.clone()),
            refused.map(|field| format!("/policy/{field}")),
            "{preset} {changes}"
        );
    }
}

const USUAL: &str = "contract-review";

#[test]
fn by_default_an_opener_changes_nothing_that_loosens() {
    let ladder = |fields: Value| json!({ "ladder": fields });
    checked(&[
        (USUAL, json!({}), None),
        (USUAL, json!({ "case_timeout_ms": 600_000 }), None),
        (
            USUAL,
            json!({ "case_timeout_ms": 900_001 }),
            Some("case_timeout_ms"),
        ),
        (
            USUAL,
            json!({ "risk_spread_max": 10.0, "answers_min": 3 }),
            None,
        ),
        (
            USUAL,
            json!({ "risk_spread_max": 20.1 }),
            Some("risk_spread_max"),
        ),
        (USUAL, json!({ "hear_answers": false }), None),
        (USUAL, json!({ "rounds_max": 1 }), Some("rounds_max")),
        (USUAL, json!({ "vote_rule": "majority" }), Some("vote_rule")),
        (
            USUAL,
            json!({ "conflict_handling": "ladder" }),
            Some("conflict_handling"),
        ),
        (
            USUAL,
            ladder(json!({ "pass_unreviewed": true })),
            Some("ladder/pass_unreviewed"),
        ),
        (
            USUAL,
            ladder(json!({ "time_scale": 2 })),
            Some("ladder/time_scale"),
        ),
        (
            USUAL,
            ladder(json!({ "mediator": "eve" })),
            Some("ladder/mediator"),
        ),
        (
            USUAL,
            ladder(json!({ "outcome_sources": ["eve"] })),
            Some("ladder/outcome_sources"),
        ),
        (USUAL, ladder(json!({ "priority": "supporting" })), None),
        (
            USUAL,
            ladder(json!({ "signed": true, "digest_required": true })),
            None,
        ),
        (
            USUAL,
            ladder(json!({ "priority": "critical-path" })),
            Some("ladder/priority"),
        ),
        ("incident", ladder(json!({ "priority": "valuation" })), None),
        (
            USUAL,
            ladder(json!({ "caution": { "eps": "lowest" } })),
            Some("ladder/caution/eps"),
        ),
    ]);
}

#[test]
fn a_persons_time_is_that_of_each_priority_wherever_it_is_written() {
    const HOUR: u64 = 3_600_000;
    let times = |ms: u64| json!({ "ladder": { "times": { "person_ms": ms } } });
    let of = |priority: &str, ms: u64| json!({ "ladder": { "times_by_priority": { priority: { "person_ms": ms } } } });
    checked(&[
        (USUAL, times(5 * HOUR), None),
        (USUAL, times(7 * HOUR), Some(CRITICAL)),
        (USUAL, of("supporting", 5 * HOUR), None),
        (USUAL, of("supporting", 7 * HOUR), Some(SUPPORTING)),
        ("investment", of("critical-path", 7 * HOUR), Some(CRITICAL)),
        ("investment", times(7 * HOUR), None),
    ]);
}

const CRITICAL: &str = "ladder/times_by_priority/critical-path/person_ms";
const SUPPORTING: &str = "ladder/times_by_priority/supporting/person_ms";

#[test]
fn an_operator_may_set_other_bounds() {
    let bounds: PolicyBounds = serde_json::from_value(json!({
        "rounds_max": { "within": [0.0, 3.0] }, "vote_rule": "any", "ladder.times.person_ms": "higher",
    }))
    .unwrap();
    for (changes, refused) in [
        (json!({ "rounds_max": 3, "vote_rule": "majority" }), None),
        (json!({ "rounds_max": 4 }), Some("rounds_max")),
        (
            json!({ "case_timeout_ms": 600_000 }),
            Some("case_timeout_ms"),
        ),
        (
            json!({ "ladder": { "times": { "person_ms": 30_000_000 } } }),
            None,
        ),
    ] {
        assert_eq!(
            refused_in(&bounds, "contract-review", changes.clone()),
            refused.map(|field| format!("/policy/{field}")),
            "{changes}"
        );
    }
}

#[test]
fn the_name_of_an_object_and_a_star_stand_for_fields_without_a_bound() {
    let bounds: PolicyBounds = serde_json::from_value(json!({
        "ladder": "any", "ladder.priority": "fixed", "*": "lower",
    }))
    .unwrap();
    assert_eq!(bounds.check_fields("/bounds"), Ok(()));
    for (changes, refused) in [
        (
            json!({ "ladder": { "time_scale": 60, "mediator": "eve" } }),
            None,
        ),
        (
            json!({ "ladder": { "times": { "person_ms": 30_000_000 } } }),
            None,
        ),
        (
            json!({ "ladder": { "priority": "supporting" } }),
            Some("ladder/priority"),
        ),
        (json!({ "rounds_max": 1 }), None),
        (json!({ "rounds_max": 3 }), Some("rounds_max")),
        (json!({ "vote_rule": "majority" }), Some("vote_rule")),
    ] {
        assert_eq!(
            refused_in(&bounds, USUAL, changes.clone()),
            refused.map(|field| format!("/policy/{field}")),
            "{changes}"
        );
    }
}

#[test]
fn a_bound_is_one_of_a_field_and_can_be_kept() {
    assert_eq!(PolicyBounds::default().check_fields("/bounds"), Ok(()));
    for (field, bound, known) in [
        ("rounds_max", json!("any"), true),
        ("hear_answers", json!("any"), true),
        ("decide", json!("any"), true),
        ("ladder", json!("any"), true),
        ("ladder.calendar", json!("any"), true),
        ("ladder.caution.eps", json!("any"), true),
        (
            "ladder.times.person_ms",
            json!({ "within": [1.0, 2.0] }),
            true,
        ),
        (
            "ladder.times.person_ms",
            json!({ "within": [2.0, 1.0] }),
            false,
        ),
        ("round_max", json!("any"), false),
        ("ladder.time", json!("any"), false),
        ("ladder.caution.", json!("any"), false),
        ("", json!("any"), false),
    ] {
        let bounds: PolicyBounds = serde_json::from_value(json!({ field: bound })).unwrap();
        let checked = bounds.check_fields("/bounds");
        assert_eq!(checked.is_ok(), known, "{field}: {checked:?}");
        if let Err(fault) = checked {
            assert_eq!(fault.pointer, format!("/bounds/{field}"));
        }
    }
}

#[test]
fn an_opener_cannot_do_without_what_the_policy_asks_of_people() {
    let mut base = Policy::contract_review();
    (base.ladder.signed, base.ladder.digest_required) = (true, true);
    for (signed, digest_required, refused) in [
        (true, true, None),
        (false, true, Some("/policy/ladder/signed")),
        (true, false, Some("/policy/ladder/digest_required")),
    ] {
        let mut requested = base.clone();
        (requested.ladder.signed, requested.ladder.digest_required) = (signed, digest_required);
        let fault = PolicyBounds::default()
            .check(&base, &requested, "/policy")
            .err();
        assert_eq!(fault.map(|fault| fault.pointer).as_deref(), refused);
    }
}

#[test]
fn another_preset_is_no_change_of_this_one() {
    let bounds = PolicyBounds::default();
    let fault = bounds.check(&Policy::contract_review(), &Policy::quick(), "");
    assert!(fault.is_err());
}

#[test]
fn every_field_with_a_bound_is_one_of_a_policy() {
    let known = leaves(&Policy::investment());
    for field in PolicyBounds::default().fields.keys() {
        let of_priority = field.replace("ladder.times.", "ladder.times_by_priority.valuation.");
        assert!(known.contains_key(&of_priority), "{field}");
    }
}

#[test]
fn a_bound_covers_the_fields_of_its_object() {
    let bounds = |bounds: Value| serde_json::from_value::<PolicyBounds>(bounds).unwrap();
    let time = "ladder.times.person_ms";
    for (one, other, expected) in [
        (json!({ time: "lower" }), json!({ time: "lower" }), &[][..]),
        (
            json!({ time: "lower" }),
            json!({ "ladder.times": "lower" }),
            &[("ladder.times", Bound::Fixed, Bound::Lower)],
        ),
        (
            json!({ "ladder": "any" }),
            json!({ "ladder": "any", time: "any" }),
            &[],
        ),
        (
            json!({ "ladder": "any" }),
            json!({ "ladder": "any", time: "fixed" }),
            &[(time, Bound::Any, Bound::Fixed)],
        ),
        (
            json!({ "*": "any", "rounds_max": "any" }),
            json!({ "rounds_max": "any" }),
            &[("*", Bound::Any, Bound::Fixed)],
        ),
        (
            json!({ "ladder.caution.price": "any" }),
            json!({ "ladder.caution": "any" }),
            &[("ladder.caution", Bound::Fixed, Bound::Any)],
        ),
        (
            json!({ "rounds_max": { "within": [0.0, 3.0] } }),
            json!({ "rounds_max": "fixed" }),
            &[("rounds_max", Bound::Within(0.0, 3.0), Bound::Fixed)],
        ),
    ] {
        let found = bounds(one.clone()).differences(&bounds(other.clone()));
        let found: Vec<(&str, Bound, Bound)> = found
            .iter()
            .map(|(name, one, other)| (name.as_str(), *one, *other))
            .collect();
        assert_eq!(found, expected, "{one} {other}");
    }
}
