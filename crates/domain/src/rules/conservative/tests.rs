use super::*;
use ConflictType as T;
use serde_json::json;

#[test]
fn the_more_cautious_position_is_known_by_type() {
    let policy = Policy::contract_review();
    for (kind, cautious, other) in [
        (T::RiskScoreDisagreement, json!(80), json!(35)),
        (T::SeverityDisagreement, json!("critical"), json!("low")),
        (T::SeverityDisagreement, json!("info"), json!("nonsense")),
        (T::RecommendationConflict, json!("reject"), json!("sign")),
        (
            T::RecommendationConflict,
            json!("sign"),
            json!("something else"),
        ),
        (T::ClausePresenceDisagreement, json!(false), json!(true)),
    ] {
        assert_eq!(
            compare(kind, "", &policy, Some(&cautious), Some(&other)),
            Ordering::Greater,
            "{kind:?}"
        );
        assert_eq!(
            compare(kind, "", &policy, Some(&other), Some(&cautious)),
            Ordering::Less,
            "{kind:?}"
        );
    }
    for (subject, cautious, other) in [
        ("risk_score", json!(80), json!(35)),
        ("severity", json!("critical"), json!("low")),
        ("Recommendation", json!("reject"), json!("sign")),
        ("liability cap", json!(false), json!(true)),
        ("risk_score", json!("90"), json!(86)),
        ("risk_score", json!(86), json!("a lot")),
        ("liability cap", json!("not found"), json!(true)),
        (
            "target price",
            json!({ "value": 10, "unit": "USD million" }),
            json!({ "value": 12e6, "unit": "USD" }),
        ),
        (
            "operating margin",
            json!(25),
            json!({ "value": 28, "unit": "%" }),
        ),
        (
            "operating margin",
            json!("25 %"),
            json!({ "value": 0.28, "unit": "fraction" }),
        ),
    ] {
        let (cautious, other) = (Some(&cautious), Some(&other));
        let of_challenges = |a, b| compare_about(T::Challenge, subject, &policy, a, b);
        assert_eq!(
            of_challenges(cautious, other),
            Ordering::Greater,
            "{subject}"
        );
        assert_eq!(of_challenges(other, cautious), Ordering::Less, "{subject}");
    }
    assert_eq!(
        compare(
            T::FactualDisagreement,
            "",
            &policy,
            Some(&json!(1)),
            Some(&json!(2))
        ),
        Ordering::Equal
    );
}

#[test]
fn a_rule_for_a_metric_holds_for_a_challenge_of_one_subjects_too() {
    let mut other_way = Policy::contract_review();
    let caution = &mut other_way.ladder.caution;
    caution.insert("operating_margin".to_owned(), CautionRule::Highest);
    for subject in ["operating margin", "acme/operating margin"] {
        let (a, b) = (json!(30), json!(25));
        let compared = compare_about(T::Challenge, subject, &other_way, Some(&a), Some(&b));
        assert_eq!(compared, Ordering::Greater, "{subject}");
    }
}

#[test]
fn facts_are_compared_as_the_numbers_that_they_state() {
    let policy = Policy::contract_review();
    let of = |value: f64, unit: &str| json!({ "value": value, "unit": unit });
    let [greater, less, equal] = [Ordering::Greater, Ordering::Less, Ordering::Equal];
    let cost = "acme/termination cost";
    let million = of(2.0, "USD million");
    let december = json!("December 31, 2026");
    for (subject, one, other, expected) in [
        (cost, json!("$2 million"), json!("$900,000"), greater),
        (cost, million, of(900_000.0, "USD"), greater),
        (cost, json!("28,5 %"), json!("30 %"), less),
        (cost, json!("28,5 %"), json!(30), less),
        (cost, json!("$2 million"), json!("EUR 1"), equal),
        ("acme/cost", december, json!("January 1, 2025"), equal),
        ("acme/cost", json!("see section 9"), json!("$5"), equal),
        // The name of what has the attribute says nothing that the attribute says otherwise, and something where it says nothing.
        ("risk limited/price", json!(80), json!(90), greater),
        ("cost of living plc/price", json!(80), json!(90), greater),
        ("termination cost/amount", json!(90), json!(80), greater),
    ] {
        let compared =
            |a, b| compare_about(T::FactualDisagreement, subject, &policy, Some(a), Some(b));
        assert_eq!(compared(&one, &other), expected, "{subject} {one} {other}");
        assert_eq!(
            compared(&other, &one),
            expected.reverse(),
            "{subject} {one} {other}"
        );
    }
}

#[test]
fn a_rule_for_a_fact_is_that_of_the_attribute_or_of_the_attribute_of_one_subject() {
    let (low, high) = (
        json!("$900,000"),
        json!({ "value": 2, "unit": "USD million" }),
    );
    let [lowest, highest] = [CautionRule::Lowest, CautionRule::Highest];
    for (rules, expected, words) in [
        (
            vec![],
            Ordering::Less,
            "of termination cost the highest value",
        ),
        (
            vec![("termination_cost", &lowest)],
            Ordering::Greater,
            "of termination cost the lowest value",
        ),
        (
            vec![("Acme/Termination cost", &lowest)],
            Ordering::Greater,
            "of acme/termination cost the lowest value",
        ),
        (
            vec![("beta/termination cost", &lowest)],
            Ordering::Less,
            "of termination cost the highest value",
        ),
        (
            vec![
                ("termination cost", &lowest),
                ("acme/termination cost", &highest),
            ],
            Ordering::Less,
            "of acme/termination cost the highest value",
        ),
    ] {
        let mut policy = Policy::contract_review();
        for (name, rule) in &rules {
            policy
                .ladder
                .caution
                .insert((*name).to_owned(), (*rule).clone());
        }
        let (kind, subject) = (T::FactualDisagreement, "acme/termination cost");
        let compared = compare_about(kind, subject, &policy, Some(&low), Some(&high));
        assert_eq!(compared, expected, "{rules:?}");
        let said = rule_in_words(kind, subject, &policy, Some(&low));
        assert!(said.starts_with(words), "{rules:?}: {said}");
    }
}

#[test]
fn the_last_word_of_a_metric_that_has_a_rule_says_what_it_is() {
    let (lowest, highest) = (Some(CautionRule::Lowest), Some(CautionRule::Highest));
    for (names, expected) in [
        (
            vec![
                "operating costs",
                "expected losses",
                "Discount rates",
                "price risk",
                "revenue churn",
                "cost growth",
                "growth in costs",
                "cost target",
                "cost of revenue",
                "loss of market share",
                "risk to earnings",
                "probability of default",
                "cost_to_income ratio",
                "losses",
                "price-risk",
            ],
            &highest,
        ),
        (
            vec![
                "revenues",
                "margins",
                "prices",
                "Risk-adjusted target price",
                "risk adjusted growth",
                "Cost savings",
                "price target",
                "target",
                "GDP growth",
                "cash flows",
                "market shares of ACME",
                "price-to-earnings multiples",
                "probability of success",
                "earnings",
                "target price of Risk Limited",
            ],
            &lowest,
        ),
        (
            vec![
                "headcount",
                "",
                "risk-adjusted return",
                "adjusted",
                "costly",
            ],
            &None,
        ),
    ] {
        for name in names {
            assert_eq!(usual_rule_for(name), *expected, "{name}");
        }
    }
}
