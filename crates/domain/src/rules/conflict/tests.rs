use concord_wire::payload::ConflictType as Type;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{case_id, policy, received};
use crate::rules::vote;

mod estimates;
mod names;
mod ranking;

fn findings(found: &[(&str, f64, Value)]) -> Vec<ReceivedFinding> {
    found
        .iter()
        .map(|(name, sure, what)| received(name, &format!("m-{name}"), *sure, what.clone()))
        .collect()
}

/// All conflicts, in ranking order.
fn detect(case: &CaseId, policy: &Policy, findings: &[ReceivedFinding]) -> Vec<Conflict> {
    let found = detect_within_limit(case, policy, findings);
    assert_eq!(found.omitted, 0);
    [found.debated, found.deferred].concat()
}

fn detected(found: &[(&str, f64, Value)]) -> Vec<Conflict> {
    detect(&case_id(), &policy(), &findings(found))
}

/// The conflicts between two agents who are equally sure.
fn between(one: Value, other: Value) -> Vec<Conflict> {
    detected(&[("ann", 0.8, one), ("ben", 0.8, other)])
}

fn types(conflicts: &[Conflict]) -> Vec<Type> {
    conflicts.iter().map(|conflict| conflict.kind).collect()
}

/// Who holds what, as `agent: position`.
fn held(conflict: &Conflict) -> Vec<String> {
    conflict
        .positions
        .iter()
        .map(|held| format!("{}: {}", held.agent_id, held.position))
        .collect()
}

#[test]
fn scores_conflict_when_they_are_more_than_twenty_apart() {
    for (low, high, expected) in [
        (40.0, 60.0, 0),
        (40.0, 60.1, 1),
        (0.0, 20.0, 0),
        (0.0, 20.1, 1),
        // Twenty apart, and a little more than twenty in binary.
        (12.2, 32.2, 0),
        (14.2, 34.2, 0),
        (35.0, 80.0, 1),
    ] {
        let found = between(json!({"risk_score": high}), json!({"risk_score": low}));
        assert_eq!(
            types(&found),
            vec![Type::RiskScoreDisagreement; expected],
            "{low} and {high}"
        );
    }
    assert!(
        detected(&[("ann", 0.9, json!({"risk_score": 100}))]).is_empty(),
        "one score disagrees with nobody"
    );
    assert!(
        between(json!({"risk_score": 0}), json!({})).is_empty(),
        "no score is not a score of 0"
    );
}

#[test]
fn a_score_conflict_names_everyone_who_gave_a_score() {
    let found = detected(&[
        ("cyd", 0.7, json!({"risk_score": 80})),
        ("ann", 0.9, json!({"risk_score": 35})),
        ("ben", 0.6, json!({"risk_score": 50, "evidence": ["§ 7"]})),
        ("dan", 0.6, json!({})),
    ]);
    assert_eq!(
        held(&found[0]),
        [
            "ann: Risk score: 35",
            "ben: Risk score: 50",
            "cyd: Risk score: 80"
        ]
    );
    assert_eq!(found[0].topic, "Risk score spread: 35-80");
    assert_eq!(found[0].positions[1].evidence, ["§ 7"]);
}

/// A finding that reports these clauses as there and not there.
fn extractor(present: &[&str], absent: &[&str]) -> Value {
    let of = |names: &[&str], there: bool| {
        names
            .iter()
            .map(|name| json!({"type": name, "present": there, "text": "Its words."}))
            .collect::<Vec<_>>()
    };
    let clauses = [of(present, true), of(absent, false)].concat();
    json!({ "clauses": clauses })
}

fn relies(names: &[&str]) -> Value {
    json!({ "affected_clauses": names })
}

#[test]
fn clauses_conflict_when_one_relies_on_what_another_did_not_find() {
    let term = || extractor(&["Term"], &[]);
    let fees = || extractor(&["Fees"], &[]);
    let not_term = || extractor(&[], &["TERM "]);
    let on_term = || relies(&["term"]);
    let none: &[&str] = &[];
    for (what, one, other, expected) in [
        ("found and relied on", term(), on_term(), none),
        ("looked for, not found", not_term(), on_term(), &["TERM "]),
        ("not among those reported", fees(), on_term(), &["term"]),
        ("nothing was extracted", json!({}), on_term(), none),
        ("two extractors", term(), not_term(), &["Term"]),
        ("two rely on it", on_term(), on_term(), none),
        ("silence about what nobody relies on", term(), fees(), none),
        (
            "several",
            fees(),
            relies(&["Term", "Cap"]),
            &["Cap", "Term"],
        ),
    ] {
        let found = between(one, other);
        let subjects: Vec<&str> = found
            .iter()
            .map(|conflict| conflict.subject.as_str())
            .collect();
        assert_eq!(subjects, expected, "{what}");
        assert!(
            found
                .iter()
                .all(|conflict| conflict.kind == Type::ClausePresenceDisagreement),
            "{what}"
        );
    }
}

#[test]
fn a_clause_is_debated_once_whoever_relies_on_it() {
    let found = detected(&[
        (
            "clause_extractor",
            0.9,
            json!({"clauses": [{"type": "Term", "present": false, "text": "none"}]}),
        ),
        ("ben", 0.6, json!({"affected_clauses": ["Term"]})),
        ("ann", 0.7, json!({"affected_clauses": ["term"]})),
    ]);
    assert_eq!(
        held(&found[0]),
        [
            "ann: present",
            "ben: present",
            "clause_extractor: not found"
        ]
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn severities_conflict_when_they_differ_for_the_same_topic() {
    let says = |topic: &str, severity: &str| json!({"critical_findings": [{"topic": topic, "severity": severity}]});
    assert_eq!(
        types(&between(
            says("Liability", "low"),
            says("liability ", "high")
        )),
        [Type::SeverityDisagreement]
    );
    assert!(between(says("Liability", "high"), says("Liability", "high")).is_empty());
    assert!(between(says("Liability", "low"), says("Term", "high")).is_empty());
    let twice = json!({"critical_findings": [
        {"topic": "Liability", "severity": "low"}, {"topic": "Liability", "severity": "critical", "detail": "No cap."},
    ]});
    let found = between(twice, says("Liability", "critical"));
    assert!(
        found.is_empty(),
        "of one agent's statements the most serious counts: {found:?}"
    );
}

#[test]
fn who_cannot_tell_recommends_nothing() {
    let says = |recommendation: &str| json!({ "recommendation": recommendation });
    for abstains in [
        "cannot tell",
        "Can\u{2019}t tell.",
        "Recommendation: unknown",
        "No opinion",
        "abstain",
    ] {
        let two = [("ann", 0.8, says("reject")), ("ben", 0.9, says(abstains))];
        assert_eq!(detected(&two), vec![], "{abstains}");
        // By the rules before 2 it was a recommendation, and stored conflicts are found again by theirs.
        let before = detect_by(1, &case_id(), &policy(), &[], &findings(&two));
        assert_eq!(before.debated.len(), 1, "{abstains}");
        let [ann, ben] = two;
        let found = detected(&[ann, ben, ("cyd", 0.5, says("sign"))]);
        assert_eq!(held(&found[0]), ["ann: reject", "cyd: sign"], "{abstains}");
    }
    // A policy may have such a word for a recommendation.
    let order = ["reject", "undecided", "sign"].map(str::to_owned);
    let rules = Policy {
        caution_order: order.into(),
        ..policy()
    };
    let two = [
        ("ann", 0.8, says("reject")),
        ("ben", 0.9, says("undecided")),
    ];
    assert_eq!(detect(&case_id(), &rules, &findings(&two)).len(), 1);
}

#[test]
fn recommendations_conflict_when_they_differ() {
    let says = |recommendation: &str| json!({ "recommendation": recommendation });
    assert_eq!(
        types(&between(says("sign"), says("reject"))),
        [Type::RecommendationConflict]
    );
    for (one, other) in [("sign", " Sign."), ("sign", ""), ("yes", "true")] {
        assert!(
            between(says(one), says(other)).is_empty(),
            "{one:?} and {other:?}"
        );
    }
    let found = detected(&[
        ("ann", 0.9, says("sign")),
        ("ben", 0.9, says("reject")),
        ("cyd", 0.1, says("SIGN")),
    ]);
    assert_eq!(held(&found[0]), ["ann: sign", "ben: reject", "cyd: sign"]);
    assert_eq!(found[0].topic, "Different recommendations: reject, sign");
}

#[test]
fn facts_conflict_when_their_values_do() {
    let says = |value: Value, unit: Option<&str>| json!({"facts": [{"subject": "Term", "attribute": "length", "value": value, "unit": unit}]});
    for (what, one, other, expected) in [
        (
            "other words for it",
            says(json!(30), Some("days")),
            says(json!("1 month"), None),
            0,
        ),
        (
            "within the tolerance",
            says(json!(1000), None),
            says(json!(1004), None),
            0,
        ),
        (
            "beyond it",
            says(json!(1000), None),
            says(json!(1006), None),
            1,
        ),
        (
            "another unit",
            says(json!(5), Some("USD")),
            says(json!(5), Some("EUR")),
            1,
        ),
        (
            "dates",
            says(json!("2026-11-21"), None),
            says(json!("November 21, 2026"), None),
            0,
        ),
        (
            "yes and no",
            says(json!(true), None),
            says(json!("no"), None),
            1,
        ),
    ] {
        let found = between(one, other);
        assert_eq!(
            types(&found),
            vec![Type::FactualDisagreement; expected],
            "{what}"
        );
    }
    let found = between(says(json!(1), Some("year")), says(json!(90), Some("days")));
    assert_eq!(found[0].subject, "term/length");
    assert_eq!(held(&found[0]), ["ann: 1 year", "ben: 90 days"]);
}

fn any_finding() -> impl Strategy<Value = Value> {
    let severity = || proptest::sample::select(vec!["info", "low", "medium", "high", "critical"]);
    let word = || {
        proptest::sample::select(vec![
            "Term", "term ", "a/b", "a", "", "yes", "true", "30 days", "1 month", "~",
        ])
    };
    let value = prop_oneof![
        any::<bool>().prop_map(|b| json!(b)),
        (-5i32..5).prop_map(|n| json!(n)),
        (0.0..100.0f64).prop_map(|n| json!(n)),
        word().prop_map(|w| json!(w))
    ];
    let critical = (word(), severity())
        .prop_map(|(topic, severity)| json!({"topic": topic, "severity": severity}));
    let clause = (word(), any::<bool>())
        .prop_map(|(kind, present)| json!({"type": kind, "present": present}));
    let fact = (word(), word(), value, proptest::option::of(word())).prop_map(|(subject, attribute, value, unit)| {
        json!({"subject": subject, "attribute": attribute, "value": value, "unit": unit})
    });
    (
        proptest::option::of(0.0..=100.0f64),
        proptest::option::of(word()),
        proptest::collection::vec(critical, 0..3),
        proptest::collection::vec(clause, 0..3),
        proptest::collection::vec(word(), 0..3),
        proptest::collection::vec(fact, 0..3),
    )
        .prop_map(|(score, recommendation, critical, clauses, affected, facts)| {
            json!({"risk_score": score, "recommendation": recommendation, "critical_findings": critical,
                   "clauses": clauses, "affected_clauses": affected, "facts": facts})
        })
}

proptest! {
    #[test]
    fn the_ranking_does_not_depend_on_who_answers_first_and_every_conflict_is_one(
        (found, shuffled) in proptest::collection::vec((any_finding(), 0.0..=1.0f64), 1..6).prop_flat_map(|found| {
            let named: Vec<_> = found.into_iter().enumerate()
                .map(|(n, (what, sure))| received(&format!("a{n}"), &format!("m-{n}"), sure, what)).collect();
            (Just(named.clone()), Just(named).prop_shuffle())
        }),
    ) {
        let one = detect(&case_id(), &policy(), &found);
        prop_assert_eq!(&one, &detect(&case_id(), &policy(), &shuffled));
        let ids: std::collections::BTreeSet<_> = one.iter().map(|conflict| &conflict.conflict_id).collect();
        prop_assert_eq!(ids.len(), one.len(), "every conflict is a debate of its own");
        for conflict in &one {
            prop_assert!(vote::option_count(vote::About::conflict(conflict, &policy()), &conflict.positions) > 1, "{:?}", conflict);
            let agents: Vec<_> = conflict.positions.iter().map(|held| &held.agent_id).collect();
            prop_assert!(agents.windows(2).all(|pair| pair[0] < pair[1]), "ordered, each once: {:?}", agents);
        }
        prop_assert!(one.windows(2).all(|pair| pair[0].weight >= pair[1].weight));
    }
}
