use concord_events::Heard;
use proptest::prelude::*;

use super::*;
use crate::fixtures::*;
use crate::rules::size_budget::EVENT_BYTES_MAX;

mod edited;
mod old_state;
mod units;

const DAY_MS: u64 = 86_400_000;

fn rules(value: Value) -> Watched {
    let rules: AlertRules = serde_json::from_value(json!({ "rules": value })).unwrap();
    rules.check("").unwrap();
    Watched::of((3, &rules), &token("regime"), &agent("macro"), true)
}

fn rule(when: Value) -> Value {
    json!({ "name": "r", "topic": "regime", "event_type": "noticed", "when": when })
}

/// A topic as it is written, version by version.
#[derive(Default)]
struct Topic {
    history: TopicHistory,
    last: Option<MemoryPut>,
    raised: usize,
}

impl Topic {
    /// Writes a version: the rules that it fulfils.
    fn write(&mut self, watched: &Watched, at_ms: u64, value: Value) -> Vec<String> {
        self.write_surely(watched, at_ms, (value, Some(0.9)))
    }

    fn write_surely(
        &mut self,
        watched: &Watched,
        at_ms: u64,
        (value, confidence): (Value, Option<f64>),
    ) -> Vec<String> {
        let entry = Remember {
            agent: None,
            topic: token("regime"),
            value,
            importance: 0.9,
            confidence,
            evidence: vec!["minutes".into()],
            tags: Vec::new(),
            based_on: None,
        };
        let known = Known {
            now: after(at_ms),
            old: self.last.as_ref().map(|last| &last.entry.value),
            history: &self.history,
            raised_within_hour: self.raised,
        };
        let fired = fired(watched, &entry, &known);
        let put = MemoryPut {
            case_id: None,
            version: self.history.versions() + 1,
            entry,
            heard: Heard {
                agent_id: agent("macro"),
                message_id: message("m-1"),
                digest: String::new(),
            },
            reach: None,
            told: Vec::new(),
            fired,
        };
        self.history.note(&put, after(at_ms));
        let fired = put.fired.iter().filter(|one| !one.withheld);
        let names = fired.map(|one| one.because.clone()).collect();
        self.last = Some(put);
        names
    }
}

/// How many alerts each of these values raises.
fn raised(when: Value, values: Vec<Value>) -> Vec<usize> {
    let (watched, mut topic) = (rules(json!([rule(when)])), Topic::default());
    let at = |place: usize| place as u64 * 1_000;
    let values = values.into_iter().enumerate();
    values
        .map(|(place, value)| topic.write(&watched, at(place), value).len())
        .collect()
}

#[test]
fn the_table_of_triggers_of_single_versions() {
    let bp = json!({ "moved_by": { "by": 25, "unit": "bp" } });
    let points = json!({ "moved_by": { "by": 0.5 } });
    let within = json!({ "moved_by": { "by": 3, "within_ms": 2_500 } });
    for (when, values, expected) in [
        (
            json!({ "changed": {} }),
            json!(["QE", "qe ", "QT", "QT"]),
            vec![0, 0, 1, 0],
        ),
        // Nothing known is no value, and what comes next is a first version.
        (
            json!({ "changed": {} }),
            json!(["QE", null, "QT", " ", "QE"]),
            vec![0, 0, 0, 0, 0],
        ),
        (
            bp.clone(),
            json!(["5 %", "5.24 %", "5.49 %", "5.49 %", "5.24 %"]),
            vec![0, 0, 1, 0, 1],
        ),
        (
            bp.clone(),
            json!([0.05, "525 bp", { "value": 5.5, "unit": "%" }]),
            vec![0, 1, 1],
        ),
        // What has another dimension has not moved, and neither has a text.
        (
            bp,
            json!(["5 EUR", "6 EUR", "high", "5 %"]),
            vec![0, 0, 0, 0],
        ),
        (points, json!([1, 1.4, 1.9, 1.4]), vec![0, 0, 1, 1]),
        // Little by little, but only since it was last told.
        (
            within,
            json!([0, 1, 2, 3, 4, 5, 6, 6, 6]),
            vec![0, 0, 0, 1, 0, 0, 1, 0, 0],
        ),
    ] {
        let values: Vec<Value> = serde_json::from_value(values).unwrap();
        assert_eq!(
            raised(when.clone(), values.clone()),
            expected,
            "{when} {values:?}"
        );
    }
}

#[test]
fn a_regime_change_is_told_above_its_confidence_and_in_the_printed_form() {
    let rule = json!({
        "name": "regime", "topic": "reg*", "field": "regime", "event_type": "regime_change",
        "when": { "confidence_above": { "confidence": 0.8 } },
        "recommended_actions": ["Review in-progress analyses for regime sensitivity"],
    });
    let watched = rules(json!([rule]));
    let regime = |name: &str| {
        json!({
            "regime": name,
            "implications": { "discount_rate_changes": { "Technology": 0.025, "Utilities": 0.015 } },
            "recommended_actions": ["Recalculate DCF models with new discount rates"],
        })
    };
    let mut topic = Topic::default();
    for (name, confidence, expected) in [
        ("BULL_LOW_RATES", Some(0.9), 0),
        ("BEAR_HIGH_RATES", Some(0.8), 0),
        ("BULL_LOW_RATES", None, 0),
        ("BEAR_HIGH_RATES", Some(0.85), 1),
        ("BEAR_HIGH_RATES", Some(0.95), 0),
    ] {
        let before = topic.last.clone();
        let told = topic.write_surely(&watched, 1_000, (regime(name), confidence));
        assert_eq!(told.len(), expected, "{name} {confidence:?}");
        if expected == 0 {
            continue;
        }
        assert!(before.is_some());
        let put = topic.last.as_ref().unwrap();
        let alert = alert_of(put, &put.fired[0]);
        assert_eq!(alert.check(""), Ok(()));
        let mut said = serde_json::to_value(&alert).unwrap();
        let source = said.as_object_mut().unwrap().remove("source").unwrap();
        assert_eq!(
            source["because"],
            "it has changed, with a confidence of 0.85, above 0.8"
        );
        assert_eq!(
            (&source["version"], &source["rules_version"]),
            (&json!(4), &json!(3))
        );
        let expected = json!({
            "event_type": "regime_change", "old_regime": "BULL_LOW_RATES", "new_regime": "BEAR_HIGH_RATES", "confidence": 0.85,
            "evidence": ["minutes"],
            "implications": { "discount_rate_changes": { "Technology": 0.025, "Utilities": 0.015 } },
            "recommended_actions": [
                "Recalculate DCF models with new discount rates", "Review in-progress analyses for regime sensitivity"
            ],
        });
        assert_eq!(said, expected);
    }
}

#[test]
fn a_change_that_nobody_was_sure_of_at_first_is_told_once_somebody_is() {
    let rule = rule(json!({ "confidence_above": { "confidence": 0.8 } }));
    let watched = rules(json!([rule]));
    for story in [
        [
            ("BULL", 0.9, 0),
            ("BEAR", 0.75, 0),
            ("BEAR", 0.9, 1),
            ("BEAR", 0.95, 0),
        ],
        // What is back, everybody knows still.
        [
            ("BULL", 0.9, 0),
            ("BEAR", 0.75, 0),
            ("BULL", 0.9, 0),
            ("BEAR", 0.9, 1),
        ],
        // Where nobody was sure before, it is held against the version before.
        [
            ("BULL", 0.5, 0),
            ("BEAR", 0.5, 0),
            ("BEAR", 0.9, 0),
            ("BULL", 0.9, 1),
        ],
        // Less and less sure, but sure enough.
        [
            ("BULL", 0.9, 0),
            ("BEAR", 0.85, 1),
            ("BULL", 0.82, 1),
            ("BULL", 0.9, 0),
        ],
    ] {
        let mut topic = Topic::default();
        let told = story.map(|(regime, confidence, _)| {
            topic
                .write_surely(&watched, 1_000, (json!(regime), Some(confidence)))
                .len()
        });
        assert_eq!(told, story.map(|(.., expected)| expected), "{story:?}");
    }
}

#[test]
fn an_extreme_is_told_once_when_it_has_lasted_for_longer_than_three_days() {
    let when = json!({ "beyond_percentile": {} });
    let watched = rules(json!([rule(when)]));
    // Thirty quiet days, a jump of one day, and then one that stays.
    let mut days: Vec<f64> = (0..30).map(|day| 15.0 + f64::from(day % 7)).collect();
    days.extend([40.0, 16.0, 40.0, 41.0, 40.0, 42.0, 40.0, 40.0, 40.0]);
    let mut topic = Topic::default();
    let mut told = Vec::new();
    for (day, value) in days.into_iter().enumerate() {
        for because in topic.write(&watched, day as u64 * DAY_MS, json!(value)) {
            told.push((day, because));
        }
    }
    let [(day, because)] = &told[..] else {
        panic!("{told:?}");
    };
    // The fifth of them: four days after the first, which is longer than three.
    assert_eq!(*day, 36);
    assert_eq!(
        because,
        "it has been above 21, the percentile 95 of the 32 numbers before, for longer than 3 days"
    );
    let few = raised(
        json!({ "beyond_percentile": { "longer_than_ms": 0 } }),
        (0..20).map(|n| json!(n)).collect(),
    );
    assert_eq!(few.iter().sum::<usize>(), 0, "there is no history yet");
}

#[test]
fn an_extreme_is_told_though_its_rule_was_another_when_it_began() {
    let moved = rules(json!([rule(json!({ "moved_by": { "by": 20 } }))]));
    let beyond = Watched {
        version: moved.version + 1,
        ..rules(json!([rule(json!({ "beyond_percentile": {} }))]))
    };
    let mut topic = Topic::default();
    let mut write = |day: u64, watched| topic.write(watched, day * DAY_MS, json!(40 * (day / 30)));
    assert!((0..30).all(|day| write(day, &moved).is_empty()));
    assert_eq!(write(30, &moved).len(), 1, "it jumps");
    let told = (31..40).filter(|day| !write(*day, &beyond).is_empty());
    assert_eq!(told.collect::<Vec<_>>(), [34]);
}

#[test]
fn an_extreme_is_told_of_what_is_written_every_five_minutes_and_no_dip_is_forgotten() {
    const STEP_MS: u64 = 300_000;
    let watched = rules(json!([rule(json!({ "beyond_percentile": {} }))]));
    let steps_of_a_day = usize::try_from(DAY_MS / STEP_MS).unwrap();
    // Thirty quiet days, and five far above, with or without one number as before.
    for (dip, expected) in [
        (None, 3 * steps_of_a_day + 1),
        (Some(1), 3 * steps_of_a_day + 3),
    ] {
        let mut topic = Topic::default();
        for day in 0..30 {
            let quiet = topic.write(&watched, day * DAY_MS, json!(15 + day % 7));
            assert!(quiet.is_empty());
        }
        let mut told = Vec::new();
        for step in 0..5 * steps_of_a_day {
            let at = 30 * DAY_MS + step as u64 * STEP_MS;
            let value = if dip == Some(step) { 16 } else { 40 };
            if !topic.write(&watched, at, json!(value)).is_empty() {
                told.push(step);
            }
        }
        // Not too early, and later by no more than a few hours: older numbers are fewer.
        let [step] = told[..] else {
            panic!("{dip:?}: {told:?}");
        };
        let late = step.checked_sub(expected);
        assert!(late.is_some_and(|late| late <= 48), "{dip:?}: {step}");
    }
}

#[test]
fn whoever_may_not_alert_raises_none_unless_the_rule_names_them() {
    let named = json!({ "name": "n", "topic": "*", "event_type": "e", "agents": ["ann"], "when": { "changed": {} } });
    let rules: AlertRules =
        serde_json::from_value(json!({ "rules": [rule(json!({ "changed": {} })), named] }))
            .unwrap();
    for (topic, who, may_alert, expected) in [
        ("regime", "macro", true, 1),
        ("regime", "macro", false, 0),
        ("regime", "ann", false, 1),
        ("regime", "ann", true, 2),
        ("margin", "ann", true, 1),
        ("margin", "macro", true, 0),
    ] {
        let watched = Watched::of((1, &rules), &token(topic), &agent(who), may_alert);
        assert_eq!(watched.rules.len(), expected, "{topic} {who} {may_alert}");
    }
}

#[test]
fn what_has_no_room_in_an_alert_is_said_to_be_in_memory() {
    let watched = rules(json!([rule(json!({ "changed": {} }))]));
    let mut topic = Topic::default();
    let large = |text: &str| json!({ "x": text, "implications": { "all": "x".repeat(65_000) } });
    topic.write(&watched, 0, large("a"));
    assert_eq!(topic.write(&watched, 1, large("b")).len(), 1);
    let put = topic.last.unwrap();
    let alert = alert_of(&put, &put.fired[0]);
    assert_eq!(alert.check(""), Ok(()));
    assert!(alert.implications.is_empty());
    assert_eq!(
        alert.evidence,
        ["The rest is in the memory of macro: version 2 of regime."]
    );
}

#[test]
fn more_alerts_than_the_bound_are_noted_and_withheld() {
    let many: Vec<Value> = (0..12)
        .map(|n| json!({ "name": format!("r-{n}"), "topic": "*", "event_type": "e", "when": { "changed": {} } }))
        .collect();
    let watched = rules(json!(many));
    let mut topic = Topic {
        raised: 10,
        ..Topic::default()
    };
    topic.write(&watched, 0, json!(1));
    assert_eq!(topic.write(&watched, 1, json!(2)).len(), 2);
    let put = topic.last.unwrap();
    let withheld: Vec<bool> = put.fired.iter().map(|one| one.withheld).collect();
    assert_eq!(withheld, [false, false, true, true, true, true, true, true]);
}

#[test]
fn the_largest_entry_that_fulfils_rules_has_room() {
    let many: Vec<Value> = (0..8)
        .map(|n| {
            json!({ "name": format!("r-{n}"), "topic": "*", "event_type": "e", "when": { "changed": {} },
                    "recommended_actions": vec!["x".repeat(240); 32] })
        })
        .collect();
    let watched = rules(json!(many));
    let mut topic = Topic::default();
    topic.write(&watched, 0, json!("a".repeat(65_000)));
    topic.write(&watched, 1, json!("b".repeat(65_000)));
    let put = topic.last.unwrap();
    assert_eq!(put.fired.len(), 8);
    assert!(serde_json::to_string(&put).unwrap().len() < EVENT_BYTES_MAX);
}

proptest! {
    /// Whatever is written, the history is bounded, and nothing is told of what does not change.
    #[test]
    fn whatever_is_written(values in prop::collection::vec((0..5_u8, 0..4_000_u64), 1..60)) {
        let watched = rules(json!([
            rule(json!({ "changed": {} })),
            { "name": "m", "topic": "*", "event_type": "e", "when": { "moved_by": { "by": 2, "within_ms": 5_000 } } },
            { "name": "p", "topic": "*", "event_type": "e",
              "when": { "beyond_percentile": { "above": 0.9, "below": 0.1, "longer_than_ms": 2_000, "observations_min": 3 } } },
        ]));
        let (mut topic, mut now, mut before) = (Topic::default(), 0, None);
        for (value, later) in values {
            now += later;
            topic.write(&watched, now, json!(value));
            let put = topic.last.as_ref().unwrap();
            let is_changed = before.is_some_and(|before| before != value);
            prop_assert_eq!(put.fired.iter().any(|one| one.rule.as_str() == "r"), is_changed);
            let moved = put.fired.iter().any(|one| one.rule.as_str() == "m");
            prop_assert!(!moved || before.is_some());
            for fired in &put.fired {
                prop_assert_eq!(alert_of(put, fired).check(""), Ok(()));
            }
            before = Some(value);
        }
    }
}
