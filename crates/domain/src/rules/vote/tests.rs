use concord_wire::AgentId;
use proptest::prelude::*;
use serde_json::json;

use std::collections::BTreeMap;

use super::*;

fn positions(held: &[(&str, serde_json::Value, f64)]) -> Vec<Position> {
    held.iter()
        .map(|(agent, value, confidence)| Position {
            agent_id: AgentId::new(*agent).unwrap(),
            position: value.to_string(),
            value: Some(value.clone()),
            confidence: *confidence,
            evidence: vec![],
            reasoning: None,
            evidence_omitted: 0,
        })
        .collect()
}

fn about(kind: ConflictType, policy: &Policy) -> About<'_> {
    About {
        kind,
        subject: "margin",
        policy,
    }
}

fn winner(
    rule: VoteRule,
    kind: ConflictType,
    held: &[(&str, serde_json::Value, f64)],
) -> (Option<String>, Option<String>) {
    let policy = Policy {
        vote_rule: rule,
        ..Policy::contract_review()
    };
    let tally = tally(about(kind, &policy), &positions(held), &BTreeMap::new());
    let position = tally.winner.map(|id| {
        tally
            .options
            .iter()
            .find(|o| o.position_id == id)
            .unwrap()
            .position
            .clone()
    });
    (position, tally.tie_broken_by)
}

#[test]
fn each_rule_weighs_as_it_says() {
    use ConflictType::RecommendationConflict as Kind;
    let held = [
        ("a", json!("sign"), 0.95),
        ("b", json!("reject"), 0.5),
        ("c", json!("reject"), 0.4),
    ];
    let sure = Some("\"sign\"".to_owned());
    let many = Some("\"reject\"".to_owned());
    assert_eq!(
        winner(VoteRule::Confidence, Kind, &held),
        (sure.clone(), None)
    );
    assert_eq!(winner(VoteRule::Majority, Kind, &held), (many, None));
    assert_eq!(
        winner(VoteRule::Reconcile, Kind, &held),
        (sure.clone(), None)
    );
    assert_eq!(winner(VoteRule::Unanimous, Kind, &held), (None, None));
    assert_eq!(winner(VoteRule::Unanimous, Kind, &held[..1]), (sure, None));
}

#[test]
fn reconcile_has_the_steps_of_the_paper() {
    for (confidence, expected) in [
        (1.0, 1.0),
        (0.95, 0.8),
        (0.9, 0.8),
        (0.85, 0.5),
        (0.8, 0.5),
        (0.7, 0.3),
        (0.6, 0.1),
        (0.0, 0.1),
    ] {
        assert!(
            (weight(VoteRule::Reconcile, confidence) - expected).abs() < 1e-12,
            "{confidence}"
        );
    }
}

#[test]
fn a_tie_goes_to_caution_and_then_to_the_lower_id() {
    use ConflictType as T;
    let risk = [("a", json!(30), 0.7), ("b", json!(80), 0.7)];
    assert_eq!(
        winner(VoteRule::Confidence, T::RiskScoreDisagreement, &risk),
        (Some("80".into()), Some("caution".into()))
    );
    let facts = [("a", json!("Ohio"), 0.7), ("b", json!("Iowa"), 0.7)];
    assert_eq!(
        winner(VoteRule::Confidence, T::FactualDisagreement, &facts),
        (Some("\"Iowa\"".into()), Some("position_id".into()))
    );
}

#[test]
fn nobody_elects_nothing() {
    assert_eq!(
        winner(VoteRule::Confidence, ConflictType::FactualDisagreement, &[]),
        (None, None)
    );
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_order_of_the_positions(
        held in proptest::collection::vec((0u8..4, 0.0..=1.0f64), 1..8),
        rule in prop_oneof![Just(VoteRule::Confidence), Just(VoteRule::Majority), Just(VoteRule::Reconcile), Just(VoteRule::Unanimous)],
    ) {
        let named: Vec<(String, serde_json::Value, f64)> =
            held.iter().enumerate().map(|(i, (v, c))| (format!("a{i}"), json!(v), *c)).collect();
        let list = |it: &mut dyn Iterator<Item = &(String, serde_json::Value, f64)>| {
            positions(&it.map(|(a, v, c)| (a.as_str(), v.clone(), *c)).collect::<Vec<_>>())
        };
        let policy = Policy { vote_rule: rule, ..Policy::contract_review() };
        let kind = ConflictType::RiskScoreDisagreement;
        let one = tally(about(kind, &policy), &list(&mut named.iter()), &BTreeMap::new());
        let two = tally(about(kind, &policy), &list(&mut named.iter().rev()), &BTreeMap::new());
        prop_assert_eq!(one, two);
    }
}
