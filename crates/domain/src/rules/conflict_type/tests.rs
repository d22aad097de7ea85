//! Positions in words: which value each states.

use concord_wire::payload::ConflictType::{
    self, Challenge as ChallengeOf, ClausePresenceDisagreement, EstimateDisagreement,
    FactualDisagreement, RecommendationConflict, RiskScoreDisagreement, SeverityDisagreement,
};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;

mod words;

/// What these words state about a subject, each with the value.
fn check(kind: ConflictType, subject: &str, words: &[(&str, Value)]) {
    check_held(&conflict("d-1", kind, subject, &[]), words);
}

/// What these words state in this conflict, each with the value.
fn check_held(conflict: &Conflict, words: &[(&str, Value)]) {
    for (words, value) in words {
        let read = value_in_words(conflict, &policy(), words);
        let read = read.unwrap_or_default();
        assert_eq!(
            read, *value,
            "{:?} {}: {words}",
            conflict.kind, conflict.subject
        );
    }
}

#[test]
fn a_quantity_is_what_the_words_plainly_state_in_the_unit_of_what_was_held() {
    let of = |number: f64, unit: &str| json!({ "value": number, "unit": unit });
    let percent = [("ann", of(25.0, "%"), 0.5), ("ben", of(30.0, "%"), 0.5)];
    for (kind, subject) in [
        (EstimateDisagreement, "operating margin"),
        (EstimateDisagreement, "acme/operating margin"),
        (ChallengeOf, "operating_margin"),
        (FactualDisagreement, "operating/margin"),
    ] {
        let words = [
            ("30 %", of(30.0, "%")),
            ("28,5 percent.", of(28.5, "percent")),
            ("Operating margin: 28 %", of(28.0, "%")),
            ("25% operating margin", of(25.0, "%")),
            ("an estimate of 2800 bp", of(2800.0, "bp")),
            ("28", of(28.0, "%")),
            ("0.28", of(28.0, "%")),
            ("-3 %", of(-3.0, "%")),
            ("28 % more than before", Value::Null),
            ("Use 28% based on management guidance", Value::Null),
            ("28 % to 30 %", Value::Null),
            ("28 days", Value::Null),
            ("section 4", Value::Null),
            ("p1", Value::Null),
            ("much", Value::Null),
        ];
        check_held(&conflict("d-1", kind, subject, &percent), &words);
    }
    let bare = [("ann", json!(500), 0.5), ("ben", json!(700), 0.5)];
    let amounts = conflict("d-1", FactualDisagreement, "cap/amount", &bare);
    check_held(
        &amounts,
        &[("Cap amount: 600", json!(600.0)), ("$600", Value::Null)],
    );
    let days = [
        ("ann", of(30.0, "days"), 0.5),
        ("ben", of(60.0, "days"), 0.5),
    ];
    let notice = conflict("d-1", FactualDisagreement, "notice/period", &days);
    check_held(
        &notice,
        &[("4 weeks", of(4.0, "weeks")), ("45", of(45.0, "days"))],
    );
}

#[test]
fn a_score_is_what_the_words_state_as_one() {
    let words = [
        ("Risk score: 50", json!(50.0)),
        (" 45.5. ", json!(45.5)),
        ("45,5 %", json!(45.5)),
        ("50 out of 100", json!(50.0)),
        ("Score 80/100", json!(80.0)),
        ("High risk (75), uncapped", json!(75.0)),
        ("Reduce it to 60, because liability is capped", json!(60.0)),
        ("Risikowert: 60", json!(60.0)),
        ("at most 30 %", Value::Null),
        ("Very high, see section 4", Value::Null),
        ("Risk remains high given clause 12", Value::Null),
        ("High, with notice within 30 days", Value::Null),
        ("30 days of notice", Value::Null),
        ("as p1 says", Value::Null),
        ("p1", Value::Null),
        ("Section 4: high", Value::Null),
        ("reduced by 10", Value::Null),
        ("60, or 70 with a cap", Value::Null),
        ("60/80", Value::Null),
        ("between 30 and 50", Value::Null),
        ("30-50", Value::Null),
        ("-5", Value::Null),
        ("4000", Value::Null),
        ("much", Value::Null),
    ];
    check(RiskScoreDisagreement, "risk_score", &words);
    check(ChallengeOf, "risk_score", &words);
}

#[test]
fn a_recommendation_is_what_the_words_say() {
    let long = "because ".repeat(40);
    let words = [
        ("Hold.", json!("hold")),
        ("sign, if capped", json!("sign, if capped")),
        (" ", Value::Null),
        (long.as_str(), Value::Null),
    ];
    check(RecommendationConflict, "recommendation", &words);
    check(ChallengeOf, "Recommendation", &words);
}

#[test]
fn clauses_and_severities_have_words_of_their_own() {
    let words = [
        ("referenced as present", json!(true)),
        ("Present", json!(true)),
        ("not found", json!(false)),
        ("perhaps", Value::Null),
    ];
    check(ClausePresenceDisagreement, "Term", &words);
    let words = [
        ("Liability: High", json!("high")),
        ("critical", json!("critical")),
        ("terrible", Value::Null),
    ];
    check(SeverityDisagreement, "liability", &words);
    check(ChallengeOf, "severity", &words);
}

#[test]
fn a_person_gives_a_value_that_the_result_can_have_or_is_told_which() {
    let of = |kind, subject: &str| conflict("d-1", kind, subject, &[]);
    let clause = [("ann", json!(true), 0.5)];
    for (conflict, good, bad, wanted) in [
        (
            of(RiskScoreDisagreement, "risk_score"),
            vec![json!(50), json!("50"), json!(0.5)],
            vec![json!("low"), json!(101), json!(true)],
            "a number from 0 to 100",
        ),
        (
            of(ChallengeOf, "risk_score"),
            vec![json!(50)],
            vec![json!("high")],
            "a number from 0 to 100",
        ),
        (
            of(ChallengeOf, "severity"),
            vec![json!("High")],
            vec![json!(3)],
            "one of info, low, medium, high and critical",
        ),
        (
            of(RecommendationConflict, "recommendation"),
            vec![json!("hold, for now")],
            vec![json!(3), json!(" ")],
            "a recommendation, as text",
        ),
        (
            conflict("d-1", ChallengeOf, "Term", &clause),
            vec![json!(false), json!("not found")],
            vec![json!("perhaps"), json!(1)],
            "true (it is there) or false (it was not found)",
        ),
        (
            of(ChallengeOf, "operating margin"),
            vec![json!("25 %"), json!(25), json!([1])],
            vec![],
            "",
        ),
    ] {
        for value in good {
            assert!(check_value(&conflict, Some(&value)).is_ok(), "{value}");
        }
        for value in bad {
            let fault = check_value(&conflict, Some(&value)).unwrap_err();
            assert_eq!(fault.pointer, "/payload/value");
            assert!(fault.to_string().contains(wanted), "{fault}");
        }
        assert!(check_value(&conflict, None).is_ok());
    }
}

#[test]
fn what_is_decided_of_a_quantity_can_be_compared_with_what_was_held() {
    let percent = |number: u8| json!({ "value": number, "unit": "%" });
    let held = [("ann", percent(25), 0.5), ("ben", percent(35), 0.5)];
    let bare = [("ann", json!(25), 0.5), ("ben", json!(30), 0.5)];
    let words = [("ann", json!("net"), 0.5), ("ben", json!(30), 0.5)];
    let estimates = conflict("d-1", EstimateDisagreement, "operating margin", &held);
    let challenge = conflict("d-1", ChallengeOf, "operating margin", &bare);
    let mixed = conflict("d-1", ChallengeOf, "operating margin", &words);
    let scores = conflict("d-1", RiskScoreDisagreement, "risk_score", &bare);
    for (conflict, position, value, refused) in [
        (&estimates, "28 %", None, None),
        (&estimates, "28 %", Some(percent(28)), None),
        (&estimates, "what it was", Some(json!("28 %")), None),
        (&estimates, "a quarter", Some(json!(0.25)), None),
        (&estimates, "about the same for both", None, None),
        (&estimates, "28 %", Some(json!("abc")), Some("value")),
        (&estimates, "28 %", Some(json!({ "x": 1 })), Some("value")),
        (&estimates, "28 %", Some(json!("28 days")), Some("value")),
        (&estimates, "28 days", None, Some("position")),
        (&challenge, "27", Some(json!(27)), None),
        (&challenge, "27", Some(json!("abc")), Some("value")),
        (&mixed, "net", Some(json!("net")), None),
        (&scores, "high", None, None),
        (&scores, "high", Some(json!("high")), Some("value")),
    ] {
        let resolution = Resolution {
            position: position.into(),
            value,
            supporters: Vec::new(),
        };
        let checked = check_resolution(conflict, &policy(), &conflict.positions, &resolution);
        let pointer = checked.err().map(|fault| fault.pointer);
        let refused = refused.map(|field| format!("/payload/{field}"));
        assert_eq!(pointer, refused, "{:?}: {resolution:?}", conflict.kind);
    }
}

#[test]
fn a_value_is_not_another_one_than_the_words_state() {
    let of = |number: f64, unit: &str| json!({ "value": number, "unit": unit });
    let held = [("ann", of(25.0, "%"), 0.5), ("ben", of(35.0, "%"), 0.5)];
    let bare = [("ann", json!(20), 0.5), ("ben", json!(80), 0.5)];
    let words = [("ann", json!("sign"), 0.5), ("ben", json!("hold"), 0.5)];
    let million = [("ann", of(12.0, "USD million"), 0.5)];
    let margin = conflict("d-1", EstimateDisagreement, "operating margin", &held);
    let target = conflict("d-1", ChallengeOf, "price_target", &million);
    let scores = conflict("d-1", RiskScoreDisagreement, "risk_score", &bare);
    let choice = conflict("d-1", RecommendationConflict, "recommendation", &words);
    let there = [("ann", json!(true), 0.5), ("ben", json!(false), 0.5)];
    let clause = conflict("d-1", ClausePresenceDisagreement, "Term", &there);
    let topic = conflict("d-1", SeverityDisagreement, "liability", &words);
    let fact = conflict("d-1", FactualDisagreement, "cap/amount", &bare);
    for (conflict, words, value, same) in [
        (&scores, "Risk score: 50", json!(60), false),
        (&scores, "Risk score: 50", json!("50"), true),
        (&scores, "50", json!(60), false),
        (&scores, "Both of the 3 risks are real", json!(60), true),
        (&scores, "at most 30", json!(25), true),
        (&margin, "28 %", json!(101), false),
        (&margin, "Operating margin: 28 %", json!(0.3), false),
        (&margin, "28 %", json!(28), true),
        (&margin, "28 %", json!(0.28), true),
        (&margin, "28", of(28.0, "%"), true),
        (&margin, "28", of(29.0, "%"), false),
        (&margin, "28 % more than before", json!(32), true),
        (&target, "a target of 10", of(10e6, "USD"), true),
        (&target, "10 USD million", json!(10), true),
        (&target, "10", of(11e6, "USD"), false),
        (&choice, "Hold.", json!("sign"), false),
        (&choice, "Hold.", json!("hold"), true),
        (&choice, "the cap is missing", json!("hold"), true),
        (&clause, "not found", json!(true), false),
        (&clause, "not found", json!("absent"), true),
        (&topic, "Liability: high", json!("low"), false),
        (&topic, "Liability: high", json!("High"), true),
        (&fact, "30 days", of(4.0, "weeks"), false),
        (&fact, "30 days", of(1.0, "month"), true),
    ] {
        let said = (words, Some(&value));
        let checked = said::check_words(conflict, &policy(), &conflict.positions, said);
        let pointer = checked.err().map(|fault| fault.pointer);
        let refused = (!same).then(|| "/payload/value".to_owned());
        assert_eq!(pointer, refused, "{words}: {value}");
    }
}

#[test]
fn what_a_party_says_has_a_value_that_the_result_can_have_or_is_free_text() {
    let of = |number: f64, unit: &str| json!({ "value": number, "unit": unit });
    let held = [("ann", of(25.0, "%"), 0.5), ("ben", of(35.0, "%"), 0.5)];
    let bare = [("ann", json!(20), 0.5), ("ben", json!(80), 0.5)];
    let dollars = [("ann", of(12.0, "USD"), 0.5)];
    let mut doubted = conflict("d-1", ChallengeOf, "operating margin", &held);
    doubted.positions[0].position = "Margin of 27 %".into();
    let margin = conflict("d-1", EstimateDisagreement, "operating margin", &held);
    let target = conflict("d-1", ChallengeOf, "target price", &dollars);
    let scores = conflict("d-1", RiskScoreDisagreement, "risk_score", &bare);
    let fact = conflict("d-1", FactualDisagreement, "cap/amount", &bare);
    for (conflict, words, value, refused) in [
        (&scores, None, json!(150), Some("value")),
        (&scores, None, json!("150"), Some("value")),
        (&scores, None, json!({ "a": 1 }), Some("value")),
        (&scores, None, json!("something else"), None),
        (&scores, None, json!(50), None),
        (&scores, Some("Risk score: 30"), json!(60), Some("value")),
        (&scores, Some("Risk score: 30"), Value::Null, None),
        (&scores, Some("about the same"), Value::Null, None),
        (&margin, None, json!({ "a": 1 }), Some("value")),
        (&margin, None, of(28.0, "days"), Some("value")),
        (
            &margin,
            Some("28 days"),
            Value::Null,
            Some("revised_position"),
        ),
        (&margin, Some("28 %, roughly"), Value::Null, None),
        (&margin, None, json!(28), None),
        (&margin, None, json!("something else"), None),
        (&target, None, json!(10), None),
        (&target, None, of(10.0, "EUR"), Some("value")),
        (&doubted, Some("Margin of 27 %"), of(25.0, "%"), None),
        (&fact, None, json!({ "a": 1 }), None),
        (&fact, None, Value::Null, None),
    ] {
        let checked = check_party(conflict, &policy(), (words, Some(&value)));
        let pointer = checked.err().map(|fault| fault.pointer);
        let refused = refused.map(|field| format!("/payload/{field}"));
        assert_eq!(pointer, refused, "{words:?} {value}");
    }
}

#[test]
fn words_that_state_no_value_of_the_result_want_one() {
    let long = "because ".repeat(40);
    let recommendation = Some("a recommendation, as text");
    let quantity = Some("a number in a unit of what was held");
    for (kind, subject, words, value, wanted) in [
        (
            RecommendationConflict,
            "recommendation",
            long.as_str(),
            None,
            recommendation,
        ),
        (
            RecommendationConflict,
            "recommendation",
            long.as_str(),
            Some(json!("sign")),
            None,
        ),
        (RecommendationConflict, "recommendation", "hold", None, None),
        (
            ChallengeOf,
            "risk_score",
            "high",
            None,
            Some("a number from 0 to 100"),
        ),
        (FactualDisagreement, "date", "May 1", None, None),
        (EstimateDisagreement, "margin", "much", None, quantity),
        (EstimateDisagreement, "margin", "28 %", None, None),
        (ChallengeOf, "margin", "Use 28% as guided", None, quantity),
        (
            ChallengeOf,
            "margin",
            "as guided",
            Some(json!("28 %")),
            None,
        ),
    ] {
        let held = [("ann", json!("25 %"), 0.5)];
        let is_quantity = subject == "margin";
        let held = held.get(..usize::from(is_quantity)).unwrap();
        let conflict = conflict("d-1", kind, subject, held);
        let given = value_wanted(&conflict, &policy(), (words, value.as_ref()));
        assert_eq!(given, wanted, "{words}");
    }
}

#[test]
fn what_has_no_rule_for_words_keeps_them() {
    for (kind, subject, words) in [
        (ChallengeOf, "finding", "sell"),
        (ChallengeOf, "finding", "25 %"),
        (FactualDisagreement, "date", "May 1"),
        (FactualDisagreement, "date", "25 %"),
    ] {
        check(kind, subject, &[(words, Value::Null)]);
    }
}
