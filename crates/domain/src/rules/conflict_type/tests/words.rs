//! Signs, comparisons, units and names in words.

use super::*;

fn of(number: f64, unit: &str) -> Value {
    json!({ "value": number, "unit": unit })
}

#[test]
fn a_minus_is_read_however_it_is_written_or_the_words_state_nothing() {
    let percent = [("ann", of(2.0, "%"), 0.5), ("ben", of(-5.0, "%"), 0.5)];
    let growth = conflict("d-1", EstimateDisagreement, "revenue growth", &percent);
    let words = [
        ("-2 %", of(-2.0, "%")),
        ("\u{2212}2 %", of(-2.0, "%")),
        ("\u{2212} 2 %", of(-2.0, "%")),
        ("\u{2013}2 %", of(-2.0, "%")),
        ("\u{ff0d}2 %", of(-2.0, "%")),
        ("revenue growth \u{2212}2 %", of(-2.0, "%")),
        ("Revenue growth: \u{2212}2 %", of(-2.0, "%")),
        ("Revenue growth:\u{2013}2 %", of(-2.0, "%")),
        ("revenue-growth: 2 %", of(2.0, "%")),
        ("- Revenue growth: 2 %", of(2.0, "%")),
        ("Revenue growth：−2 %", of(-2.0, "%")),
        ("+2 %", of(2.0, "%")),
        ("\u{2212}.5 %", of(-0.5, "%")),
        (".5 %", of(0.5, "%")),
        ("- 2 %", Value::Null),
        ("\u{2013} 2 %", Value::Null),
        ("revenue growth - 2 %", Value::Null),
        ("revenue growth \u{2014} 2 %", Value::Null),
        ("\u{2014}2 %", Value::Null),
        ("1\u{2013}2 %", Value::Null),
        ("2024-2025", Value::Null),
        ("growth-2 %", Value::Null),
        ("pre-2020", Value::Null),
        ("(5) %", Value::Null),
        ("(5 %)", Value::Null),
        ("+/- 2 %", Value::Null),
    ];
    check_held(&growth, &words);
    check_held(
        &conflict("d-1", ChallengeOf, "revenue growth", &percent),
        &words,
    );
    let scores = [
        ("Risk score: \u{2212}50", Value::Null),
        ("Risk score: -50", Value::Null),
        ("Risk score - 50", Value::Null),
        ("\u{2013}50", Value::Null),
        ("+50", json!(50.0)),
        ("- Risk score: 50", json!(50.0)),
    ];
    check(RiskScoreDisagreement, "risk_score", &scores);
}

#[test]
fn what_is_not_just_a_number_is_none() {
    let percent = [("ann", of(25.0, "%"), 0.5), ("ben", of(35.0, "%"), 0.5)];
    let margin = conflict("d-1", EstimateDisagreement, "operating margin", &percent);
    for sign in [
        "<", ">", "<=", ">=", "~", "!=", "\u{2264}", "\u{2265}", "\u{2248}", "±", "->",
    ] {
        for number in [format!("{sign} 28 %"), format!("{sign}28 %")] {
            let named = format!("Operating margin: {number}");
            let words = [
                (number.as_str(), Value::Null),
                (named.as_str(), Value::Null),
            ];
            check_held(&margin, &words);
            let score = number.replace(" %", "");
            let named = format!("Risk score: {score}");
            let words = [(score.as_str(), Value::Null), (named.as_str(), Value::Null)];
            check(RiskScoreDisagreement, "risk_score", &words);
        }
    }
    let scores = [
        ("around 50", Value::Null),
        ("roughly 50", Value::Null),
        ("Risk score: about 50", Value::Null),
        ("50, at most", Value::Null),
        ("50 (approximately)", Value::Null),
        ("50, as the cap is high", json!(50.0)),
        ("**Risk score:** 50", json!(50.0)),
    ];
    check(RiskScoreDisagreement, "risk_score", &scores);
}

#[test]
fn a_unit_that_was_held_is_known_and_may_stand_before_the_number() {
    for (held, words) in [
        (
            [of(50.0, "mg"), of(100.0, "mg")],
            vec![
                ("75 mg", of(75.0, "mg")),
                ("100 mg", of(100.0, "mg")),
                ("mg 75", of(75.0, "mg")),
                ("75", of(75.0, "mg")),
                ("Dose: 75 mg", of(75.0, "mg")),
                ("about 75 mg", Value::Null),
                ("75 ml", Value::Null),
            ],
        ),
        (
            [json!("50 mg"), json!("100 mg")],
            vec![("75 mg", of(75.0, "mg")), ("about 75", Value::Null)],
        ),
        (
            [of(7.0, "USD per dose"), of(9.0, "USD per dose")],
            vec![("8 USD per dose", of(8.0, "usd per dose"))],
        ),
        (
            [of(85.0, "USD"), of(95.0, "USD")],
            vec![
                ("USD 90", of(90.0, "usd")),
                ("US$ 90", of(90.0, "us$")),
                ("US$90", of(90.0, "us$")),
                ("USD \u{2212}90", of(-90.0, "usd")),
                ("\u{2212}$90", of(-90.0, "$")),
                ("90 US dollars", of(90.0, "us dollars")),
                ("a dose of USD 1 million", of(1.0, "million usd")),
                ("EUR 90", Value::Null),
                ("USD - 90", Value::Null),
            ],
        ),
        (
            [of(30.0, "days"), of(90.0, "days")],
            vec![
                ("60 calendar days", of(60.0, "calendar days")),
                ("week 4", Value::Null),
                ("day 30", Value::Null),
            ],
        ),
    ] {
        check_dose(held, &words);
    }
}

#[test]
fn a_number_beside_ratios_and_shares_is_in_these() {
    for (held, words) in [
        (
            [of(1.5, "ratio"), of(1.8, "ratio")],
            vec![
                ("1.6", of(1.6, "ratio")),
                ("0.9", of(0.9, "ratio")),
                ("1.6 ratio", of(1.6, "ratio")),
                ("Dose: 1.6", of(1.6, "ratio")),
                ("160 %", of(160.0, "%")),
            ],
        ),
        (
            [of(1e4, "shares"), of(12e3, "shares")],
            vec![
                ("12000", of(12e3, "shares")),
                ("12,000 shares", of(12e3, "shares")),
                ("0.012 million shares", of(0.012, "million shares")),
                ("12 %", Value::Null),
            ],
        ),
    ] {
        check_dose(held, &words);
    }
}

fn check_dose([ann, ben]: [Value; 2], words: &[(&str, Value)]) {
    let held = [("ann", ann, 0.5), ("ben", ben, 0.5)];
    for kind in [EstimateDisagreement, FactualDisagreement, ChallengeOf] {
        check_held(&conflict("d-1", kind, "dose", &held), words);
    }
}

#[test]
fn words_that_somebody_holds_have_the_value_that_is_held_with_them() {
    let held = [("ann", json!(30), 0.5), ("ben", json!(80), 0.5)];
    let mut doubted = conflict("d-1", ChallengeOf, "risk_score", &held);
    doubted.positions[0].position = "The risk is low.".into();
    doubted.positions[1].position = "Reduce it to 60.".into();
    let words = [
        ("the risk is low", json!(30)),
        ("Reduce it to 60", json!(60.0)),
        ("the risk is high", Value::Null),
    ];
    check_held(&doubted, &words);
    doubted.positions[1].position = "The risk is low.".into();
    check_held(&doubted, &[("the risk is low", Value::Null)]);
}

#[test]
fn a_recommendation_and_what_is_said_of_a_clause_may_stand_after_a_name() {
    let words = [
        ("Recommendation: reject", json!("reject")),
        ("Our final recommendation: Reject.", json!("reject")),
        ("Recommendation: hold, for now", json!("hold, for now")),
        ("sign: with a cap", json!("sign: with a cap")),
        ("recommendation:", json!("recommendation:")),
    ];
    check(RecommendationConflict, "recommendation", &words);
    check(ChallengeOf, "Recommendation", &words);
    let words = [
        ("true", json!(true)),
        ("false", json!(false)),
        ("Exclusivity: present", json!(true)),
        ("exclusivity: not found.", json!(false)),
        ("the clause is present", json!(true)),
        ("The exclusivity clause is not present", json!(false)),
        ("It is absent", json!(false)),
        ("No exclusivity clause is present", Value::Null),
        ("the clause is not really present", Value::Null),
        ("Renewal: present", Value::Null),
        ("cannot be found", Value::Null),
    ];
    check(ClausePresenceDisagreement, "Exclusivity", &words);
    let words = [
        ("No-shop: present", json!(true)),
        ("the no shop clause is missing", json!(false)),
        ("no clause is present", Value::Null),
        ("no no-shop clause is present", Value::Null),
    ];
    check(ClausePresenceDisagreement, "No-shop", &words);
}

#[test]
fn a_value_without_a_unit_is_in_that_of_what_was_held() {
    let dollars = [("ann", of(85.0, "USD"), 0.5), ("ben", of(95.0, "USD"), 0.5)];
    let several = [("ann", of(85.0, "USD"), 0.5), ("ben", of(9.0, "EUR"), 0.5)];
    let bare = [("ann", json!(85), 0.5), ("ben", json!(95), 0.5)];
    for (kind, held, value, advice) in [
        (EstimateDisagreement, &dollars, json!(90), None),
        (ChallengeOf, &dollars, json!(90), None),
        (ChallengeOf, &dollars, json!("90"), None),
        (
            EstimateDisagreement,
            &dollars,
            of(90.0, "EUR"),
            Some("such as 85 or \"85 USD\"."),
        ),
        (
            EstimateDisagreement,
            &several,
            json!(90),
            Some("with its unit, such as \"85 USD\"."),
        ),
        (
            EstimateDisagreement,
            &bare,
            json!("90 days"),
            Some("a number, such as 85."),
        ),
    ] {
        let conflict = conflict("d-1", kind, "target price", held);
        let resolution = Resolution {
            position: "between the two".into(),
            value: Some(value),
            supporters: Vec::new(),
        };
        let checked = check_resolution(&conflict, &policy(), &conflict.positions, &resolution);
        let given = checked.err().map(|fault| fault.advice);
        let is_it = match (&given, advice) {
            (Some(given), Some(advice)) => given.ends_with(advice),
            (given, advice) => given.as_deref() == advice,
        };
        assert!(is_it, "{resolution:?}: {given:?}");
    }
}

#[test]
fn two_people_say_the_same_where_words_and_values_state_the_same() {
    let bare = [("ann", json!(30), 0.5), ("ben", json!(80), 0.5)];
    let percent = [("ann", of(25.0, "%"), 0.5), ("ben", of(35.0, "%"), 0.5)];
    let scores = conflict("d-1", RiskScoreDisagreement, "risk_score", &bare);
    let margin = conflict("d-1", EstimateDisagreement, "operating margin", &percent);
    let choice = conflict("d-1", RecommendationConflict, "recommendation", &[]);
    for (conflict, (words, value), (other, of_other), same) in [
        (&scores, ("40", None), ("Risk score: 40", None), true),
        (
            &scores,
            ("40", None),
            ("as it is capped", Some(json!(40))),
            false,
        ),
        (&scores, ("40", None), ("Risk score: 41", None), false),
        (&scores, ("lower", None), ("Lower.", None), true),
        (&scores, ("lower", None), ("higher", None), false),
        (&scores, ("lower", None), ("lower", Some(json!(40))), false),
        (
            &margin,
            ("28 %", None),
            ("margin: 2800 bp", Some(json!(28))),
            true,
        ),
        (&margin, ("28 %", None), ("so", Some(json!(28))), false),
        (
            &choice,
            ("Recommendation: hold", None),
            ("hold", None),
            true,
        ),
    ] {
        let of = |words: &str, value: Option<Value>| Resolution {
            position: words.into(),
            value,
            supporters: Vec::new(),
        };
        let (one, two) = (of(words, value), of(other, of_other));
        assert_eq!(
            is_same_resolution(conflict, &policy(), &one, &two),
            same,
            "{one:?} {two:?}"
        );
    }
}
