//! What stands for the analyses of a case because a debate has ended.

use concord_wire::payload::ConflictType;

use super::*;
use crate::rules::impact::graph::Source;

#[test]
fn what_a_debate_has_decided_keeps_its_unit() {
    let mut case = case();
    let id = case.debated[0].conflict_id.clone();
    for (value, expected) in [
        (
            json!({ "value": 0.3, "unit": "fraction" }),
            json!("0.3 fraction"),
        ),
        (json!({ "value": 25.0, "unit": "%" }), json!("25 %")),
        (json!({ "value": "25", "unit": "%" }), json!("25 %")),
        (json!({ "value": "25 %", "unit": "%" }), json!("25 %")),
        (json!({ "value": 28, "unit": " " }), json!(28.0)),
        (json!({ "value": 28 }), json!(28.0)),
    ] {
        let CaseInput::Resolved(outcome) = resolved(&id, value.clone()) else {
            panic!("it is an outcome");
        };
        case.outcomes.insert(id.clone(), *outcome);
        let standings = debate_standings(&case, &id);
        let stands = &standings[&Source::Decision(id.token())];
        assert_eq!(json!(stands.values[""]), expected, "{value}");
    }
}

#[test]
fn what_a_person_decides_without_a_unit_is_in_the_unit_of_what_was_held() {
    let mut case = case();
    let id = case.debated[0].conflict_id.clone();
    let percent = |number: f64| json!({ "value": number, "unit": "%" });
    case.debated[0].positions = vec![
        position("ann", percent(25.0), 0.5),
        position("ben", percent(30.0), 0.5),
    ];
    for (value, expected) in [
        (json!(28), json!("28 %")),
        (json!(0.28), json!("28 %")),
        (json!("28 %"), json!("28 %")),
        (json!("much"), json!("much")),
    ] {
        let CaseInput::Resolved(outcome) = resolved(&id, value.clone()) else {
            panic!("it is an outcome");
        };
        case.outcomes.insert(id.clone(), *outcome);
        let standings = debate_standings(&case, &id);
        let stands = &standings[&Source::Decision(id.token())];
        assert_eq!(json!(stands.values[""]), expected, "{value}");
    }
}

#[test]
fn an_estimate_of_a_subject_decides_about_its_metric_where_it_is_the_only_one() {
    let mut case = case();
    let about = |subject: &str| {
        let mut conflict = conflict_of(&subject.replace([' ', '/'], "-"), subject);
        conflict.kind = ConflictType::EstimateDisagreement;
        conflict
    };
    let (acme, other) = (
        about("acme/operating margin"),
        about("peer/operating margin"),
    );
    let id = acme.conflict_id.clone();
    let CaseInput::Resolved(outcome) = resolved(&id, json!(28)) else {
        panic!("it is an outcome");
    };
    case.outcomes.insert(id.clone(), *outcome);
    case.debated.push(acme);
    let sources = |case: &CaseState| -> Vec<String> {
        let standings = debate_standings(case, &id);
        standings.keys().map(|one| one.name().to_owned()).collect()
    };
    let used = |case: &CaseState, name: &str| {
        let fields =
            json!({ "analysis_id": "dcf", "depends_on": [{ "kind": "assumption", "id": name }] });
        let analysis = with_decisions(case, analysis(fields)).unwrap();
        analysis.depends_on[0].value.is_some()
    };
    let (whole, metric) = ("acme operating margin", "operating margin");
    assert_eq!(sources(&case), [id.as_str(), whole, metric]);
    for name in [
        "operating_margin",
        "ACME/Operating-Margin",
        "acme operating margin",
    ] {
        assert!(used(&case, name), "{name}");
    }
    case.debated
        .push(conflict_of("c-2", other.subject.as_str()));
    assert_eq!(
        sources(&case),
        [id.as_str(), whole, metric],
        "a fact is no estimate"
    );
    case.debated.push(other);
    assert_eq!(sources(&case), [id.as_str(), whole]);
    assert!(used(&case, "ACME/operating_margin") && !used(&case, "operating_margin"));
}
