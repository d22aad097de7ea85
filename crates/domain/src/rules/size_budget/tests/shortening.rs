//! Texts and positions that are shortened.

use super::*;

fn with_evidence(evidence: &[String]) -> Position {
    Position {
        evidence: evidence.to_vec(),
        reasoning: Some("Because.".into()),
        ..position("ann", json!(1), 0.5)
    }
}

#[test]
fn usual_evidence_is_not_touched() {
    let quotes: Vec<String> = (0..30)
        .map(|n| format!("{n} {}", "Either party may terminate. ".repeat(20)))
        .collect();
    let whole = with_evidence(&quotes);
    assert_eq!(shortened_position(&whole, Room::MOST.among(5)), whole);
}

#[test]
fn what_is_left_out_is_marked_and_counted_and_shortening_again_changes_nothing() {
    let quotes: Vec<String> = (0..40)
        .map(|n| filled(&n.to_string(), "é", 1_000 * (n % 6)))
        .collect();
    let whole = with_evidence(&quotes);
    let mut earlier = 0;
    for room in Room::STEPS {
        let short = shortened_position(&whole, room);
        let kept = short.evidence.len();
        assert_eq!(kept + short.evidence_omitted as usize, quotes.len());
        assert!(short.evidence_omitted >= earlier, "less room, fewer items");
        earlier = short.evidence_omitted;
        for (quote, item) in quotes.iter().zip(&short.evidence) {
            let beginning = item.strip_suffix("… [shortened]");
            assert!(
                item == quote || beginning.is_some_and(|text| quote.starts_with(text)),
                "{item}"
            );
        }
        assert_eq!(shortened_position(&short, room), short);
    }
    assert_eq!(earlier, 40);
}

#[test]
fn shortened_values_are_the_same_when_the_whole_ones_are() {
    let long = |end: &str| format!("{}{end}", "Word of many ".repeat(200));
    let values = [
        json!(long("one")),
        json!(long("ONE ")),
        json!(long("two")),
        json!({"value": long("one"), "unit": "days"}),
        json!({"value": 3, "unit": long("one")}),
        json!({"value": 3, "unit": long("two")}),
        json!([long("one"), 1]),
        json!([long("one"), 2]),
        json!({"value": {"nested": long("one")}}),
        json!(format!("{}sign", " ".repeat(2_000))),
        json!("sign"),
        json!(7),
    ];
    let of = |value: &Value| crate::rules::canonical::canonical(value, None);
    for one in &values {
        let short = truncate::value(one);
        assert!(json_bytes(&short) <= 512, "{short}");
        assert_eq!(truncate::value(&short), short);
        for other in &values {
            assert_eq!(
                of(one) == of(other),
                of(&short) == of(&truncate::value(other)),
                "{one} and {other}"
            );
        }
    }
    assert_eq!(
        truncate::words(&truncate::words(&long("one"))),
        truncate::words(&long("one"))
    );
}
