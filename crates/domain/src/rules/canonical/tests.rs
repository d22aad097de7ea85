use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn values_that_mean_the_same_are_the_same() {
    for (a, a_unit, b, b_unit, tolerance) in [
        (json!(30), Some("days"), json!(1), Some("month"), 0.0),
        (json!("30 days"), None, json!(30), Some("day"), 0.0),
        (
            json!("$1,000,000"),
            None,
            json!(1_000_000),
            Some("USD"),
            0.0,
        ),
        (json!("usd 500"), None, json!(500), Some("$"), 0.0),
        (json!(5), Some("%"), json!(0.05), None, 0.0),
        (json!("2.5 %"), None, json!(0.025), None, 0.0),
        (
            json!("November 21, 2026"),
            None,
            json!("2026-11-21"),
            None,
            0.0,
        ),
        (
            json!("21st day of November, 2026"),
            None,
            json!("11/21/2026"),
            None,
            0.0,
        ),
        (json!("Yes"), None, json!(true), None, 0.0),
        (json!(" New  York. "), None, json!("new york"), None, 0.0),
        (json!(100.0), None, json!(100.4), None, 0.005),
        (
            json!({"value": 60, "unit": "days"}),
            None,
            json!(2),
            Some("months"),
            0.0,
        ),
        (json!("\u{2212}5 %"), None, json!("-5 %"), None, 0.0),
        (json!("\u{2013}5 %"), None, json!(-5), Some("%"), 0.0),
        (json!("-$5"), None, json!("$-5"), None, 0.0),
        (json!("+5 %"), None, json!("5 %"), None, 0.0),
        (json!("$1,000,000"), None, json!("USD 1 million"), None, 0.0),
        (
            json!("1.5 billion"),
            None,
            json!("1,500 million"),
            None,
            0.0,
        ),
        (json!("$1.5bn"), None, json!("1,500 million USD"), None, 0.0),
        (json!(5), Some("USD million"), json!("$5m"), None, 0.0),
        (json!("5 pp"), None, json!("5 percentage points"), None, 0.0),
        (json!("60 calendar days"), None, json!("60 days"), None, 0.0),
        (
            json!("2025-12-31T00:00:00Z"),
            None,
            json!("2025-12-31"),
            None,
            0.0,
        ),
    ] {
        check_same((&a, a_unit), (&b, b_unit), tolerance);
    }
}

#[test]
fn units_of_time_currencies_and_names_that_mean_the_same_are_the_same() {
    for (a, a_unit, b, b_unit) in [
        (json!("500 ms"), None, json!(0.5), Some("s")),
        (json!(60), Some("s"), json!("1 minute"), None),
        (json!(24), Some("hrs"), json!("1 day"), None),
        (json!("1 hr"), None, json!("60 mins"), None),
        (json!("ISO 27001"), None, json!("iso  27001."), None),
        (json!("%5"), None, json!("5 %"), None),
        (json!("CHF 1,000,000"), None, json!(1e6), Some("chf")),
        (json!("CHF 1 million"), None, json!("chf 1000000"), None),
        (json!("C$ 500"), None, json!("500 C$"), None),
        (json!("90 US dollars"), None, json!("$90"), None),
    ] {
        check_same((&a, a_unit), (&b, b_unit), 0.0);
    }
}

fn check_same(one: (&Value, Option<&str>), other: (&Value, Option<&str>), tolerance: f64) {
    let (x, y) = (canonical(one.0, one.1), canonical(other.0, other.1));
    assert!(
        same(&x, &y, &Allowance::relative(tolerance)),
        "{one:?} is {x:?}; {other:?} is {y:?}"
    );
}

#[test]
fn values_that_differ_are_different() {
    for (a, a_unit, b, b_unit) in [
        (json!(30), Some("days"), json!(30), Some("months")),
        (json!(30), Some("USD"), json!(30), Some("EUR")),
        (json!(100), None, json!(101), None),
        (json!(true), None, json!(false), None),
        (json!("Delaware"), None, json!("New York"), None),
        (json!("2026-11-21"), None, json!("2026-11-22"), None),
        (
            json!("2025-12-31T08:00:00Z"),
            None,
            json!("2025-12-31"),
            None,
        ),
        (json!("31 February 2026"), None, json!("2026-02-31"), None),
        (json!("\u{2212}5 %"), None, json!("5 %"), None),
        (json!("< 28 %"), None, json!("28 %"), None),
        (json!("5 pp"), None, json!("5 %"), None),
        (json!("ISO 27001"), None, json!("ISO 27002"), None),
        (json!("ISO-27001"), None, json!("ISO-27002"), None),
        (json!("Rule 505"), None, json!("Rule 506"), None),
        (json!("HTTP 502"), None, json!("HTTP 504"), None),
        (json!("Section 1031"), None, json!("Section 1033"), None),
        (json!("#1031"), None, json!("#1033"), None),
        (json!("year 2025"), None, json!("year 2026"), None),
        (json!("week 4"), None, json!("4 weeks"), None),
        (json!("500 ms"), None, json!("500 million"), None),
        (json!("20\u{2013}30 days"), None, json!("20 days"), None),
        (
            json!("section 5 of 12 acts"),
            None,
            json!("section 5 of 13 acts"),
            None,
        ),
    ] {
        let (x, y) = (canonical(&a, a_unit), canonical(&b, b_unit));
        assert!(
            !same(&x, &y, &Allowance::relative(0.005)),
            "{x:?} and {y:?}"
        );
    }
}

#[test]
fn units_of_estimates_may_have_a_scale() {
    for (value, unit, expected, dimension) in [
        (25.0, "%", 0.25, ""),
        (0.25, "fraction", 0.25, ""),
        (2.0, "percentage points", 0.02, ""),
        (5_000.0, "bps", 0.5, ""),
        (3.0, "thousands", 3e3, ""),
        (3.0, "bn", 3e9, ""),
        (5.0, "USD million", 5e6, "usd"),
        (5.0, "million US dollars", 5e6, "usd"),
        (5.0, "millions of EUR", 5e6, "eur"),
        (5.0, "$m", 5e6, "usd"),
        (5.0, "k£", 5.0, "k£"),
        (5.0, "million users", 5e6, "user"),
        (1.2, "million shares", 1.2e6, "share"),
        (1.2e6, "shares", 1.2e6, "share"),
        (0.3, "share", 0.3, ""),
        (1.5, "ratio", 1.5, ""),
        (2.0, "years", 720.0, "time"),
        (48.0, "hrs", 2.0, "time"),
        (86_400.0, "s", 1.0, "time"),
        (86_400_000.0, "ms", 1.0, "time"),
        (7.0, "USD per share", 7.0, "usd per share"),
    ] {
        let expected = Canonical::Number {
            value: expected,
            dimension: dimension.to_owned(),
        };
        assert_eq!(canonical_estimate(&json!(value), Some(unit)), expected);
    }
    // Of facts beside a currency only.
    let whole = canonical(&json!(5), Some("million users"));
    assert!(matches!(whole, Canonical::Number { dimension, .. } if dimension == "million user"));
}

#[test]
fn a_date_is_one_of_the_calendar() {
    for (text, day) in [
        ("29 February 2024", Some("2024-02-29")),
        ("2000-02-29", Some("2000-02-29")),
        ("29 February 2025", None),
        ("29 February 1900", None),
        ("31 February 2026", None),
        ("2026-04-31", None),
        ("2026-00-10", None),
        ("2026-12-31 00:00", Some("2026-12-31")),
        ("2026-12-31T00:00:00.000+00:00", Some("2026-12-31")),
        ("2026-12-31T00:00:00+02:00", None),
    ] {
        let read = canonical(&json!(text), None);
        let expected = day.map(|day| Canonical::Date(day.to_owned()));
        let is_date = matches!(read, Canonical::Date(_));
        assert_eq!(is_date.then_some(read), expected, "{text}");
    }
}

#[test]
fn a_deeply_nested_value_is_compared_as_text() {
    let nested = json!({"value": {"value": {"value": 1}}});
    assert!(matches!(canonical(&nested, None), Canonical::Text(_)));
}

proptest! {
    #[test]
    fn groups_do_not_depend_on_the_order_of_the_items(mut values in proptest::collection::vec(-1000.0..1000.0f64, 0..12)) {
        let canon = |v: &[f64]| v.iter().map(|n| canonical(&json!(n), None)).collect::<Vec<_>>();
        let one = group(&canon(&values), &Allowance::relative(0.05));
        let by_value: std::collections::BTreeMap<_, _> =
            values.iter().map(|v| v.to_bits()).zip(one.iter().copied()).collect();
        values.reverse();
        let two = group(&canon(&values), &Allowance::relative(0.05));
        for (value, place) in values.iter().zip(two) {
            prop_assert_eq!(by_value[&value.to_bits()], place);
        }
    }

    #[test]
    fn no_text_makes_it_fail(text in ".{0,60}", unit in proptest::option::of(".{0,8}")) {
        let value = canonical(&json!(text), unit.as_deref());
        prop_assert!(same(&value, &value, &Allowance::default()));
    }
}
