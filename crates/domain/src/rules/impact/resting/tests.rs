use concord_wire::payload::ConflictType::{
    self, Challenge, ClausePresenceDisagreement, EstimateDisagreement, FactualDisagreement,
    RecommendationConflict, RiskScoreDisagreement,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{agent, case_id, conflict, start};
use crate::rules::impact::graph::Analysis;

fn graph(rows: &[(&str, serde_json::Value)]) -> Graph {
    let mut graph = Graph::default();
    for (id, uses) in rows {
        let published = json!({ "analysis_id": id, "type": "test", "depends_on": uses });
        let published = serde_json::from_value(published).unwrap();
        graph.put(Analysis::new(published, 1, agent("ann"), start()));
    }
    graph
}

/// The price rests on the margin, the memo on the price; the others on debates and on parts of the decision.
fn known() -> Graph {
    let of_case = |metric: &str| json!([{ "kind": "decision", "id": case_id(), "metric": metric }]);
    graph(&[
        (
            "dcf",
            json!([{ "kind": "assumption", "id": "Operating_Margin" }]),
        ),
        ("memo", json!([{ "kind": "analysis", "id": "dcf" }])),
        (
            "a-digest",
            json!([{ "kind": "analysis", "id": "memo" }, { "kind": "assumption", "id": "beta" }]),
        ),
        ("limits", of_case("risk_score")),
        ("letter", of_case("recommendation")),
        ("notice", of_case("clauses/governing law")),
        ("whole", json!([{ "kind": "decision", "id": case_id() }])),
        ("follow-up", json!([{ "kind": "decision", "id": "d-1" }])),
        ("alone", json!([])),
    ])
}

#[test]
fn the_table_of_what_rests_on_a_conflict() {
    let rows: [(ConflictType, &str, &str, &[&str]); 11] = [
        (
            FactualDisagreement,
            "d-2",
            "operating margin",
            &["dcf", "memo", "a-digest"],
        ),
        (FactualDisagreement, "d-2", "beta", &["a-digest"]),
        (FactualDisagreement, "d-2", "gross margin", &[]),
        (
            RiskScoreDisagreement,
            "d-2",
            "risk score of the case",
            &["limits", "whole"],
        ),
        (
            RecommendationConflict,
            "d-2",
            "advice",
            &["letter", "whole"],
        ),
        (
            ClausePresenceDisagreement,
            "d-2",
            "Governing Law",
            &["notice", "whole"],
        ),
        (FactualDisagreement, "d-1", "term", &["follow-up"]),
        (
            Challenge,
            "d-2",
            "operating-margin",
            &["dcf", "memo", "a-digest"],
        ),
        // An estimate of a subject is about its metric, also where there are two conflicts by unit.
        (
            EstimateDisagreement,
            "d-2",
            "acme/operating margin",
            &["dcf", "memo", "a-digest"],
        ),
        (EstimateDisagreement, "d-2", "/beta/usd", &["a-digest"]),
        (Challenge, "d-2", "acme/beta", &[]),
    ];
    for (kind, id, subject, expected) in rows {
        let conflict = conflict(id, kind, subject, &[]);
        let resting = resting_on(&known(), &case_id(), &conflict, &[]);
        let resting: Vec<&str> = resting.iter().map(Token::as_str).collect();
        // What rests on the whole decision rests on whatever decides a part of it.
        assert_eq!(resting, expected, "{subject}");
    }
}

#[test]
fn what_rests_on_a_debate_rests_on_the_one_that_takes_it_up_again() {
    let again = conflict("d-3", FactualDisagreement, "term", &[]);
    let taken_up = ["d-2", "d-1"].map(|id| DebateId::new(id).unwrap());
    let resting = resting_on(&known(), &case_id(), &again, &taken_up);
    assert_eq!(named(&resting), ["follow-up"]);
}

#[test]
fn as_many_are_named_as_there_is_room_for() {
    let tokens: Vec<Token> = (0..40)
        .map(|place| Token::new(format!("a-{place}")).unwrap())
        .collect();
    assert_eq!(named(&tokens[..2]), ["a-0", "a-1"]);
    let names = named(&tokens);
    assert_eq!(
        (names.len(), names.last().unwrap().as_str()),
        (33, "and 8 more")
    );
}

proptest! {
    /// In any graph: exactly what reaches the assumption by some way, each once, and nothing indirect before what it uses.
    #[test]
    fn whatever_reaches_the_subject_rests_on_it(uses in proptest::collection::vec(proptest::collection::vec(0_usize..12, 0..3), 1..12)) {
        let name = |place: usize| format!("a-{place}");
        let rows: Vec<(String, serde_json::Value)> = uses.iter().enumerate().map(|(place, used)| {
            // 0 is the assumption; the others are earlier analyses.
            let used: Vec<_> = used.iter().filter(|one| **one <= place).map(|one| match one {
                0 => json!({ "kind": "assumption", "id": "margin" }),
                other => json!({ "kind": "analysis", "id": name(other - 1) }),
            }).collect();
            (name(place), json!(used))
        }).collect();
        let rows: Vec<(&str, serde_json::Value)> = rows.iter().map(|(id, used)| (id.as_str(), used.clone())).collect();
        let mut reaches = vec![false; uses.len()];
        for place in 0..uses.len() {
            reaches[place] = uses[place].iter().filter(|one| **one <= place).any(|one| *one == 0 || reaches[one - 1]);
        }
        let mut expected: Vec<String> = (0..uses.len()).filter(|place| reaches[*place]).map(name).collect();
        let resting = resting_on(&graph(&rows), &case_id(), &conflict("d-1", FactualDisagreement, "Margin", &[]), &[]);
        let mut found: Vec<String> = resting.iter().map(ToString::to_string).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
