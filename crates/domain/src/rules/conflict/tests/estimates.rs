//! Estimates of different agents.

use concord_wire::policy::Policy;

use super::*;
use crate::rules::conservative;

fn estimate(metric: &str, value: f64, unit: &str) -> Value {
    match unit {
        "" => json!({ "metric": metric, "value": value }),
        unit => json!({ "metric": metric, "value": value, "unit": unit }),
    }
}

fn finding(estimates: &[Value]) -> Value {
    json!({ "estimates": estimates })
}

/// A policy with these tolerances.
fn tolerating(estimates: Value) -> Policy {
    let asked = json!({ "preset": "investment", "estimates": estimates });
    Policy::resolve(&asked, "").unwrap()
}

/// A policy that compares them.
fn policy() -> Policy {
    tolerating(json!({}))
}

fn found(policy: &Policy, estimates: &[Value]) -> Conflicts {
    let names = ["ann", "ben", "cay", "dan"].into_iter();
    let findings: Vec<_> = names
        .zip(estimates)
        .map(|(name, one)| (name, 0.8, finding(std::slice::from_ref(one))))
        .collect();
    detect_within_limit(&case_id(), policy, &super::findings(&findings))
}

#[test]
fn the_margins_of_the_specification_are_a_conflict_and_the_lower_one_is_cautious() {
    let estimates = [
        estimate("operating_margin", 25.0, "%"),
        estimate("Operating  Margin", 30.0, "%"),
    ];
    let found = found(&Policy::investment(), &estimates).debated;
    assert_eq!(types(&found), [Type::EstimateDisagreement]);
    let conflict = &found[0];
    assert_eq!(
        conflict.topic,
        "Estimates of operating margin: 25 % to 30 %"
    );
    assert_eq!(conflict.subject, "operating margin");
    assert_eq!(held(conflict), ["ann: 25 %", "ben: 30 %"]);
    let about = |policy: &Policy| {
        let value = |place: usize| conflict.positions[place].value.as_ref();
        conservative::compare_about(conflict.kind, &conflict.subject, policy, value(0), value(1))
    };
    assert_eq!(about(&Policy::investment()), Ordering::Greater);
    let policy = json!({ "ladder": { "caution": { "operating margin": "highest" } } });
    assert_eq!(
        about(&Policy::resolve(&policy, "").unwrap()),
        Ordering::Less
    );
    // A tie of the vote falls to the cautious one.
    let policy = Policy::investment();
    let about = vote::About::conflict(conflict, &policy);
    let tally = vote::tally(about, &conflict.positions, &Default::default());
    assert_eq!(tally.tie_broken_by.as_deref(), Some("caution"));
    assert_eq!(tally.winner.as_deref(), Some("p1"));
}

#[test]
fn estimates_conflict_when_they_are_further_apart_than_the_policy_allows() {
    let usual = json!({});
    let exact = json!({ "tolerance": { "relative": 0 } });
    let points = json!({ "by_metric": { "Margin": { "absolute": 5, "unit": "%" } } });
    let dollars = json!({ "by_metric": { "margin": { "absolute": 5, "unit": "USD" } } });
    for (tolerance, one, other, expected) in [
        (&usual, (25.0, "%"), (30.0, "%"), 1),
        (&usual, (27.0, "%"), (30.0, "%"), 0),
        (&usual, (26.9, "%"), (30.0, "%"), 1),
        (&usual, (27.0, "%"), (0.3, ""), 0),
        (&usual, (25.0, "percent"), (0.25, "fraction"), 0),
        (&usual, (25.0, "%"), (0.3, ""), 1),
        (&usual, (2.0, "million"), (2_100.0, "thousand"), 0),
        (&usual, (2.0, "USD million"), (1_000.0, "k USD"), 1),
        (&usual, (0.0, ""), (0.0, ""), 0),
        (&usual, (0.0, ""), (1.0, ""), 1),
        (&usual, (-1.0, ""), (1.0, ""), 1),
        (&usual, (f64::MAX, ""), (f64::MIN, ""), 1),
        (&usual, (25.0, "USD"), (30.0, "EUR"), 0),
        (&exact, (25.0, "%"), (25.0, "%"), 0),
        (&exact, (25.0, "%"), (25.1, "%"), 1),
        (&points, (25.0, "%"), (30.0, "%"), 0),
        (&points, (24.9, "%"), (30.0, "%"), 1),
        (&dollars, (25.0, "%"), (30.0, "%"), 1),
        (&json!({ "compared": false }), (25.0, "%"), (30.0, "%"), 0),
    ] {
        let pair = [one, other].map(|(value, unit)| estimate("margin", value, unit));
        let found = found(&tolerating(tolerance.clone()), &pair);
        assert_eq!(
            found.debated.len(),
            expected,
            "{tolerance} {one:?} {other:?}"
        );
        assert!(found.debated.iter().all(|one| one.weight.is_finite()));
    }
}

#[test]
fn units_that_cannot_be_converted_are_no_conflict_but_are_said() {
    let estimates = [
        estimate("revenue", 25.0, "USD"),
        estimate("revenue", 30.0, "EUR"),
        estimate("revenue", 40.0, "USD"),
    ];
    let found = found(&policy(), &estimates);
    assert_eq!(found.debated.len(), 1);
    assert_eq!(held(&found.debated[0]), ["ann: 25 USD", "cay: 40 USD"]);
    let said = serde_json::to_value(&found.incomparable).unwrap();
    let units =
        json!([{ "unit": "usd", "agents": ["ann", "cay"] }, { "unit": "eur", "agents": ["ben"] }]);
    assert_eq!(said, json!([{ "subject": "revenue", "units": units }]));
}

#[test]
fn a_quantity_in_two_groups_of_units_may_be_two_conflicts() {
    let estimates = [
        estimate("price", 25.0, "USD"),
        estimate("price", 30.0, "EUR"),
        estimate("price", 40.0, "USD"),
        estimate("price", 50.0, "EUR"),
    ];
    let found = found(
        &tolerating(json!({ "by_metric": { "price": { "relative": 0.05 } } })),
        &estimates,
    );
    let subjects: Vec<&str> = found.debated.iter().map(|one| &*one.subject).collect();
    assert_eq!(subjects, ["price", "/price/usd"]);
    for conflict in &found.debated {
        let words = conservative::rule_in_words(conflict.kind, &conflict.subject, &policy(), None);
        assert_eq!(words, "of price the lowest value is the cautious one");
    }
}

#[test]
fn estimates_of_different_subjects_and_metrics_are_not_compared() {
    let of = |subject: &str, metric: &str, value: f64| json!({ "subject": subject, "metric": metric, "value": value });
    let estimates = [
        of("ACME", "margin", 1.0),
        of("Bolt", "margin", 2.0),
        of("acme", "churn", 3.0),
    ];
    assert_eq!(found(&policy(), &estimates), Conflicts::default());
    let estimates = [of("ACME", "margin", 1.0), of("acme", "margin", 2.0)];
    let found = found(&policy(), &estimates).debated;
    assert_eq!(found[0].subject, "acme/margin");
    assert_eq!(found[0].topic, "Estimates of margin of acme: 1 to 2");
}

#[test]
fn cases_from_before_estimates_were_compared_have_no_such_conflict() {
    let mut policy = json!(Policy::investment());
    policy.as_object_mut().unwrap().remove("estimates");
    let policy: Policy = serde_json::from_value(policy).unwrap();
    let estimates = [
        estimate("margin", 25.0, "%"),
        estimate("margin", 30.0, "USD"),
    ];
    assert_eq!(found(&policy, &estimates), Conflicts::default());
}

proptest! {
    #[test]
    fn neither_the_order_of_findings_nor_what_is_within_the_tolerance_makes_a_conflict(
        values in proptest::collection::vec((1.0..100.0f64, any::<bool>()), 2..4),
        seed in any::<u64>(),
    ) {
        let policy = policy();
        let mut findings: Vec<_> = ["ann", "ben", "cay", "dan"].iter().zip(&values).map(|(name, (value, is_share))| {
            let one = if *is_share { estimate("margin", value / 100.0, "") } else { estimate("margin", *value, "%") };
            received(name, &format!("m-{name}"), 0.8, finding(&[one]))
        }).collect();
        let one = detect_within_limit(&case_id(), &policy, &findings);
        let places = findings.len();
        findings.rotate_left((seed % places as u64) as usize);
        prop_assert_eq!(&detect_within_limit(&case_id(), &policy, &findings), &one);
        let low = values.iter().map(|(value, _)| *value).fold(f64::MAX, f64::min);
        let high = values.iter().map(|(value, _)| *value).fold(0.0, f64::max);
        let apart = (high - low) / high;
        // All agents are in one conflict, or there is none.
        if apart < 0.1 - 1e-6 {
            prop_assert!(one.debated.is_empty());
        } else if apart > 0.1 + 1e-6 {
            prop_assert_eq!(one.debated.len(), 1);
            prop_assert_eq!(one.debated[0].positions.len(), values.len());
        }
    }
}
