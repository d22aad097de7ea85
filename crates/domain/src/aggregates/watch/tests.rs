use concord_wire::payload::Role;
use serde_json::json;

use super::*;
use crate::fixtures::*;

fn put(rules: serde_json::Value, why: &str) -> WatchInput {
    WatchInput::Put {
        rules: Box::new(serde_json::from_value(rules).unwrap()),
        by: agent("olga"),
        why: why.into(),
    }
}

fn rule(confidence: f64) -> serde_json::Value {
    json!({ "rules": [{
        "name": "regime", "topic": "regime", "event_type": "regime_change",
        "when": { "confidence_above": { "confidence": confidence } },
    }] })
}

#[test]
fn versions_are_counted_and_the_same_rules_are_none() {
    let mut story = Story::<WatchMachine>::of(id().as_str());
    for (at, (input, expected)) in [
        (put(json!({}), "why"), "ignored: already_done"),
        (put(rule(0.8), " "), "refused: /why"),
        (
            put(rule(8.0), "why"),
            "refused: /rules/rules/0/when/confidence_above/confidence",
        ),
        (put(rule(0.8), "why"), "rules_put"),
        (put(rule(0.8), "again"), "ignored: already_done"),
        (put(rule(0.9), "surer"), "rules_put"),
        (put(json!({}), "none"), "rules_put"),
    ]
    .into_iter()
    .enumerate()
    {
        let context = said(&format!("m-{at}"), at as u64);
        assert_eq!(story.hears(&context, &input), expected, "{input:?}");
    }
    let versions = story.state().versions.iter();
    let versions: Vec<u32> = versions.map(|one| one.0.version).collect();
    assert_eq!(versions, [1, 2, 3]);
}

#[test]
fn who_is_suspended_raises_nothing() {
    let mut story = Story::<WatchMachine>::of(id().as_str());
    story.hears(&said("m-1", 1), &put(rule(0.8), "why"));
    let state = story.state();
    let (topic, who) = (token("regime"), agent("macro"));
    let many = |sender: &Authority| state.watched(&topic, &who, sender).rules.len();
    let alerter = authority("macro", &[Role::Alerter]);
    assert_eq!(many(&alerter), 1);
    assert_eq!(many(&authority("macro", &[Role::Opener])), 0);
    assert_eq!(many(&Authority::default()), 0);
    let suspended = Authority {
        suspended: Some("on leave".into()),
        ..alerter
    };
    assert_eq!(many(&suspended), 0);
}

fn change(regime: &str, alert: &str, sequence: u64) -> WatchInput {
    WatchInput::RegimeChange(Box::new(RegimeChange {
        regime: regime.into(),
        alert: token(alert),
        raised_at: after(sequence * 1_000),
        sequence,
    }))
}

#[test]
fn the_regime_is_that_of_the_later_alert_in_whatever_order_they_are_heard_of() {
    let mut story = Story::<WatchMachine>::of(id().as_str());
    for (event, input, expected) in [
        ("e-7", change("BEAR", "a-7", 7), "regime_changed"),
        ("e-5", change("BULL", "a-5", 5), "ignored: already_done"),
        ("e-7", change("BEAR", "a-7", 7), "ignored: already_done"),
        ("e-9", change("CRISIS", "a-9", 9), "regime_changed"),
    ] {
        assert_eq!(
            story.hears(&happened(event, 10_000), &input),
            expected,
            "{event}"
        );
    }
    let state = story.state();
    let present = state.regime.as_ref().unwrap();
    assert_eq!(
        (present.regime.as_str(), present.before.as_deref()),
        ("CRISIS", Some("BEAR"))
    );
    for (opened, stated, expected) in [
        (8, Some("BULL"), Some("CRISIS")),
        (8, None, Some("CRISIS")),
        (10, None, Some("CRISIS")),
        // Who opens a case after it, and says otherwise, means it.
        (10, Some("BULL"), None),
    ] {
        assert_eq!(
            state.regime_of(opened, stated).as_deref(),
            expected,
            "{opened} {stated:?}"
        );
    }
    assert_eq!(WatchState::default().regime_of(0, None), None);
}
