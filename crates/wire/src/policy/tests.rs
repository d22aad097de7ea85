use super::*;

#[test]
fn the_preset_has_the_limits_of_the_specification() {
    let policy = Policy::resolve(&json!("contract-review"), "").unwrap();
    assert_eq!(policy.rounds_max, 2);
    assert_eq!(policy.messages_per_round_max, 10);
    assert_eq!(policy.tokens_per_message_max, 500);
    assert_eq!(policy.answer_timeout_ms, 10_000);
    assert_eq!(policy.conflicts_max, 5);
    assert!((policy.risk_spread_max - 20.0).abs() < f64::EPSILON);
}

#[test]
fn every_field_can_be_overridden_and_changes_the_digest() {
    let preset = Policy::contract_review();
    let fields = serde_json::to_value(&preset).unwrap();
    for (field, value) in fields.as_object().unwrap() {
        let changed = match value {
            Value::Number(n) if n.is_f64() => json!(0.5),
            Value::Number(n) => json!(n.as_u64().unwrap() + 1),
            Value::Array(_) => json!(["stop"]),
            Value::String(_) if field == "vote_rule" => json!("majority"),
            _ => continue,
        };
        let policy = Policy::resolve(&json!({ field: changed }), "").unwrap();
        assert_ne!(policy.digest(), preset.digest(), "{field}");
    }
    let unheard = Policy::resolve(&json!({ "hear_answers": false }), "").unwrap();
    assert_ne!(unheard.digest(), preset.digest());
}

#[test]
fn nonsense_is_refused_at_its_place() {
    for (request, pointer) in [
        (json!("contract-revue"), "/p"),
        (json!(7), "/p"),
        (json!({"rounds_max": -1}), "/p/rounds_max"),
        (json!({"rounds_max": 11}), "/p/rounds_max"),
        (json!({"answers_min": 1}), "/p/answers_min"),
        (json!({"risk_spread_max": 101}), "/p/risk_spread_max"),
        (json!({"vote_rule": "loudest"}), "/p/vote_rule"),
        (json!({"conflicts_max": 33}), "/p/conflicts_max"),
        (
            json!({"finding_bytes_max": 524_289}),
            "/p/finding_bytes_max",
        ),
        (json!({"caution_order": vec!["x"; 33]}), "/p/caution_order"),
        (
            json!({"estimates": {"tolerance": {"relative": 1.5}}}),
            "/p/estimates/tolerance/relative",
        ),
        (
            json!({"estimates": {"by_metric": {"margin": {"absolute": -1}}}}),
            "/p/estimates/by_metric/margin/absolute",
        ),
        (
            json!({"estimates": {"by_metric": {"m".repeat(257): {}}}}),
            &format!("/p/estimates/by_metric/{}", "m".repeat(257)),
        ),
        (
            json!({"importance": {"broadcast_above": 0.3}}),
            "/p/importance/hold_above",
        ),
        (
            json!({"importance": {"broadcast_above": 1.1}}),
            "/p/importance/broadcast_above",
        ),
        (
            json!({"importance": {"synthesis_every_ms": u64::MAX}}),
            "/p/importance/synthesis_every_ms",
        ),
        (
            json!({"importance": {"adapted_by": -0.1}}),
            "/p/importance/adapted_by",
        ),
        (
            json!({"caution_order": ["x", "y".repeat(257)]}),
            "/p/caution_order/1",
        ),
    ] {
        assert_eq!(
            Policy::resolve(&request, "/p").unwrap_err().pointer,
            pointer,
            "{request}"
        );
    }
    assert!(Policy::resolve(&json!({"round_max": 1}), "/p").is_err());
}
