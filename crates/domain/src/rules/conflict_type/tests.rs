//! Positions in words: which value each states.

use concord_wire::payload::ConflictType::{
    self, Challenge as ChallengeOf, ClausePresenceDisagreement, EstimateDisagreement,
    FactualDisagreement, RecommendationConflict, RiskScoreDisagreement, SeverityDisagreement,
};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;

/// What these words state about a subject, each with the value.
fn check(kind: ConflictType, subject: &str, words: &[(&str, Value)]) {
    let conflict = conflict("d-1", kind, subject, &[]);
    for (words, value) in words {
        let read = value_in_words(&conflict, &policy(), words);
        let read = read.unwrap_or_default();
        assert_eq!(read, *value, "{kind:?} {subject}: {words}");
    }
}

#[test]
fn a_score_is_the_one_number_in_the_words() {
    let words = [
        ("Risk score: 50", json!(50.0)),
        (" 45.5. ", json!(45.5)),
        ("at most 30 %", json!(30.0)),
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
fn what_has_no_rule_for_words_keeps_them() {
    for (kind, subject, words) in [
        (ChallengeOf, "operating margin", "25 %"),
        (ChallengeOf, "finding", "sell"),
        (FactualDisagreement, "date", "May 1"),
        (EstimateDisagreement, "margin", "25 %"),
    ] {
        check(kind, subject, &[(words, Value::Null)]);
    }
}
