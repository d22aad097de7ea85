//! What is told where the rules are edited meanwhile.

use concord_wire::payload::Role;

use super::*;
use crate::aggregates::watch::{self, WatchInput, WatchMachine};

#[test]
fn an_extreme_is_told_once_though_other_rules_are_edited_meanwhile() {
    let beyond = |longer_than_ms| {
        let terms = json!({ "beyond_percentile": { "longer_than_ms": longer_than_ms } });
        rule(terms)
    };
    let other =
        json!({ "name": "o", "topic": "other", "event_type": "e", "when": { "changed": {} } });
    for (edited, expected) in [
        (vec![beyond(DAY_MS), other.clone()], vec![40]),
        (vec![beyond(DAY_MS - 1), other], vec![40, 41]),
    ] {
        let mut story = Story::<WatchMachine>::of(watch::id().as_str());
        let mut watched = |rules: Vec<Value>| {
            let put = WatchInput::Put {
                rules: Box::new(serde_json::from_value(json!({ "rules": rules })).unwrap()),
                by: agent("olga"),
                why: "as agreed".into(),
            };
            let id = format!("m-{}", rules.len());
            assert_eq!(story.hears(&said(&id, 0), &put), "rules_put");
            let alerter = authority("macro", &[Role::Alerter]);
            (story.state()).watched(&token("regime"), &agent("macro"), &alerter)
        };
        let before = watched(vec![beyond(DAY_MS)]);
        let after = watched(edited);
        // With the forty-first number what is usual is the third highest, no longer the second, and the extreme stands out again.
        let mut days = [0; 43];
        days[5] = 50;
        days[38..].copy_from_slice(&[45, 30, 40, 40, 40]);
        let mut topic = Topic::default();
        let told = (0..).zip(days).filter(|(day, value)| {
            let stands = if *day > 40 { &after } else { &before };
            let at_ms = *day * DAY_MS;
            !topic.write(stands, at_ms, json!(value)).is_empty()
        });
        let told: Vec<u64> = told.map(|(day, _)| day).collect();
        assert_eq!(told, expected);
    }
}
