//! Positions in words: which value each states.

use concord_wire::payload::ConflictType::{
    self, ClausePresenceDisagreement, EstimateDisagreement, FactualDisagreement,
    RecommendationConflict, RiskScoreDisagreement, SeverityDisagreement,
};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;

#[test]
fn words_state_a_value_where_they_are_of_the_type_of_the_conflict() {
    let long = "because ".repeat(40);
    let table: [(ConflictType, &str, &str, Value); 25] = [
        (
            RiskScoreDisagreement,
            "risk_score",
            "Risk score: 50",
            json!(50.0),
        ),
        (RiskScoreDisagreement, "risk_score", " 45.5. ", json!(45.5)),
        (
            RiskScoreDisagreement,
            "risk_score",
            "at most 30 %",
            json!(30.0),
        ),
        (
            RiskScoreDisagreement,
            "risk_score",
            "between 30 and 50",
            Value::Null,
        ),
        (RiskScoreDisagreement, "risk_score", "30-50", Value::Null),
        (RiskScoreDisagreement, "risk_score", "-5", Value::Null),
        (RiskScoreDisagreement, "risk_score", "4000", Value::Null),
        (RiskScoreDisagreement, "risk_score", "much", Value::Null),
        (
            RecommendationConflict,
            "recommendation",
            "Hold.",
            json!("hold"),
        ),
        (
            RecommendationConflict,
            "recommendation",
            "sign, if capped",
            json!("sign, if capped"),
        ),
        (RecommendationConflict, "recommendation", " ", Value::Null),
        (RecommendationConflict, "recommendation", &long, Value::Null),
        (
            ClausePresenceDisagreement,
            "Term",
            "referenced as present",
            json!(true),
        ),
        (ClausePresenceDisagreement, "Term", "Present", json!(true)),
        (
            ClausePresenceDisagreement,
            "Term",
            "not found",
            json!(false),
        ),
        (ClausePresenceDisagreement, "Term", "perhaps", Value::Null),
        (
            SeverityDisagreement,
            "liability",
            "Liability: High",
            json!("high"),
        ),
        (
            SeverityDisagreement,
            "liability",
            "critical",
            json!("critical"),
        ),
        (SeverityDisagreement, "liability", "terrible", Value::Null),
        (
            ConflictType::Challenge,
            "risk_score",
            "Risk score: 30",
            json!(30.0),
        ),
        (
            ConflictType::Challenge,
            "Recommendation",
            "sell",
            json!("sell"),
        ),
        (
            ConflictType::Challenge,
            "operating margin",
            "25 %",
            Value::Null,
        ),
        (ConflictType::Challenge, "finding", "sell", Value::Null),
        (FactualDisagreement, "date", "May 1", Value::Null),
        (EstimateDisagreement, "margin", "25 %", Value::Null),
    ];
    for (kind, subject, words, value) in table {
        let conflict = conflict("d-1", kind, subject, &[]);
        let read = value_in_words(&conflict, &policy(), words);
        assert_eq!(
            read.unwrap_or_default(),
            value,
            "{kind:?} {subject}: {words}"
        );
    }
}
