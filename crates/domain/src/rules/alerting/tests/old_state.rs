//! What an alert says was before.

use super::*;

/// The last of these versions, written a day after each other, raises an alert; those before are written before the rule was stored, where
/// `is_late`. The old and the new state that it tells.
fn told(when: Value, values: Value, is_late: bool) -> (Value, Value) {
    let watched = rules(json!([rule(when)]));
    let values: Vec<Value> = serde_json::from_value(values).unwrap();
    let mut topic = Topic::default();
    for (place, value) in values.iter().enumerate() {
        let is_last = place + 1 == values.len();
        let none = Watched::default();
        let held_against = if is_last || !is_late { &watched } else { &none };
        let raised = topic.write(held_against, place as u64 * DAY_MS, value.clone());
        assert_eq!(raised.len(), usize::from(is_last), "{place}: {value}");
    }
    let put = topic.last.as_ref().unwrap();
    let alert = alert_of(put, &put.fired[0]);
    assert_eq!(alert.check(""), Ok(()));
    (alert.old_state.unwrap(), alert.new_state.unwrap())
}

#[test]
fn the_old_state_is_what_the_new_one_is_held_against_and_never_the_same() {
    let beyond = json!({ "beyond_percentile": {} });
    let within = json!({ "moved_by": { "by": 3, "within_ms": 30 * DAY_MS } });
    let by_points = json!({ "moved_by": { "by": 25, "unit": "bp" } });
    let mut quiet = vec![json!(20); 30];
    quiet.push(json!(18));
    let lasting = |values: &[Value]| json!([quiet.as_slice(), values].concat());
    let forty = vec![json!(40); 5];
    let percent = |number: f64| json!({ "value": number, "unit": "%" });
    let of_percent = json!(
        vec![percent(20.0); 31]
            .into_iter()
            .chain(vec![json!("40 %"); 5])
            .collect::<Vec<_>>()
    );
    for (when, values, is_late, expected) in [
        (
            beyond.clone(),
            lasting(&forty),
            false,
            (json!(18.0), json!(40)),
        ),
        (beyond, of_percent, false, (percent(20.0), json!("40 %"))),
        (within, json!([10, 13, 13]), true, (json!(10.0), json!(13))),
        (
            by_points.clone(),
            json!(["5 %", "not published", "5.5 %"]),
            false,
            (percent(5.0), json!("5.5 %")),
        ),
        // As it was written, where that is what it is held against.
        (
            by_points,
            json!(["5 %", "550 bp"]),
            false,
            (json!("5 %"), json!("550 bp")),
        ),
        (
            json!({ "changed": {} }),
            json!(["QE", "QT"]),
            false,
            (json!("QE"), json!("QT")),
        ),
    ] {
        assert_eq!(told(when.clone(), values, is_late), expected, "{when}");
    }
}
