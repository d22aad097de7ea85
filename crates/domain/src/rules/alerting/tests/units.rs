//! A rule and the entries that it looks at are read by the same units.

use super::*;

#[test]
fn a_move_is_told_in_every_unit_that_a_rule_may_have() {
    for (unit, by, from, to) in [
        ("x", 0.5, "2 x", "2.6 x"),
        ("ratio", 0.5, "1.5 ratio", "2.1 ratio"),
        ("fraction", 0.1, "0.2 fraction", "0.35 fraction"),
        ("pp", 1.0, "5 pp", "6.5 pp"),
        ("pp", 1.0, "5 %", "6.5 %"),
    ] {
        let when = json!({ "moved_by": { "by": by, "unit": unit } });
        for (old, new) in [(json!(from), json!(to)), (in_members(from), in_members(to))] {
            let (watched, mut topic) = (rules(json!([rule(when.clone())])), Topic::default());
            assert_eq!(topic.write(&watched, 0, old.clone()), Vec::<String>::new());
            let raised = topic.write(&watched, 1_000, new);
            let [because] = &raised[..] else {
                panic!("{unit} from {old}: {raised:?}");
            };
            assert!(because.contains(unit), "{because}");
            let fired = &topic.last.as_ref().unwrap().fired[0];
            assert_eq!(fired.old, Some(old), "{unit}");
        }
    }
}

/// `2 x` as a number and its unit.
fn in_members(text: &str) -> Value {
    let (number, unit) = text.split_once(' ').unwrap();
    json!({ "value": number.parse::<f64>().unwrap(), "unit": unit })
}
