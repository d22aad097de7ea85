//! The ranking of conflicts.

use super::*;

#[test]
fn two_attributes_are_two_debates_whatever_their_names() {
    let fact = |subject: &str, attribute: &str, value: u32| json!({"subject": subject, "attribute": attribute, "value": value});
    let says = |value: u32| json!({"facts": [fact("a/b", "c", value), fact("a", "b/c", value)]});
    let found = between(says(1), says(2));
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].conflict_id, found[1].conflict_id);
}

#[test]
fn what_matters_more_and_is_held_more_firmly_is_debated_first() {
    let found = detected(&[
        (
            "ann",
            0.9,
            json!({"risk_score": 0, "recommendation": "sign", "affected_clauses": ["Term"]}),
        ),
        (
            "ben",
            0.9,
            json!({"risk_score": 100, "recommendation": "reject", "clauses": [{"type": "Term", "present": false}]}),
        ),
    ]);
    // Both at stake 1.0: equal weights are ranked by type.
    assert_eq!(
        types(&found),
        [
            Type::RecommendationConflict,
            Type::RiskScoreDisagreement,
            Type::ClausePresenceDisagreement
        ]
    );
    assert_eq!(
        found
            .iter()
            .map(|conflict| conflict.weight)
            .collect::<Vec<_>>(),
        [0.9, 0.9, 0.63]
    );
    let contested = detected(&[
        (
            "ann",
            0.9,
            json!({"risk_score": 0, "recommendation": "sign"}),
        ),
        (
            "ben",
            0.8,
            json!({"risk_score": 60, "affected_clauses": ["Term"]}),
        ),
        (
            "cyd",
            0.1,
            json!({"recommendation": "reject", "clauses": [{"type": "Fee", "present": true}]}),
        ),
    ]);
    // Hardly anybody advises against signing; the scores are held firmly on both sides.
    let ranked: Vec<(Type, f64)> = contested
        .iter()
        .map(|conflict| (conflict.kind, conflict.weight))
        .collect();
    assert_eq!(
        ranked,
        [
            (Type::RiskScoreDisagreement, 0.64),
            (Type::RecommendationConflict, 0.1),
            (Type::ClausePresenceDisagreement, 0.07)
        ]
    );
}

#[test]
fn at_most_so_many_are_debated_and_the_rest_is_deferred() {
    let topics = |severity: &str| {
        let of = |n: u32| json!({"topic": format!("topic {n}"), "severity": severity});
        json!({"critical_findings": (0..7).map(of).collect::<Vec<_>>()})
    };
    let found = findings(&[("ann", 0.8, topics("low")), ("ben", 0.8, topics("high"))]);
    let all = detect(&case_id(), &policy(), &found);
    for (limit, debated) in [(5, 5), (0, 0), (7, 7), (100, 7)] {
        let rules = Policy {
            conflicts_max: limit,
            ..policy()
        };
        let found = detect_within_limit(&case_id(), &rules, &found);
        assert_eq!(
            (found.debated.len(), found.deferred.len(), found.omitted),
            (debated, 7 - debated, 0)
        );
        assert_eq!(
            [found.debated, found.deferred].concat(),
            all,
            "in ranking order"
        );
    }
}
