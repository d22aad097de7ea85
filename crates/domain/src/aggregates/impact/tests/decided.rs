//! What stands for the analyses of a case because a debate has ended.

use std::sync::Arc;

use concord_events::DebateAsked;
use concord_wire::payload::{Conflict, ConflictType, DebateTerms, Status};
use concord_wire::{DebateId, Timestamp};

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

/// A case with a conflict about the margin that stands at 25 provisionally.
fn provisional(id: &str) -> (CaseState, DebateId) {
    let mut case = case();
    let margin = conflict(id, ConflictType::FactualDisagreement, MARGIN, &[]);
    let first = margin.conflict_id.clone();
    case.debated.push(margin);
    ends(&mut case, &first, Some(25), 0);
    (case, first)
}

const MARGIN: &str = "operating margin";

/// A debate of the case ends at this minute, with this value or without a result.
fn ends(case: &mut CaseState, id: &DebateId, value: Option<u32>, minute: u32) {
    let CaseInput::Resolved(mut outcome) = resolved(id, json!(value)) else {
        panic!("it is an outcome");
    };
    outcome.resolved_at = Timestamp::parse(&format!("2026-11-21T21:{minute:02}:00Z")).unwrap();
    outcome.resolution = outcome.resolution.filter(|_| value.is_some());
    case.outcomes.insert(id.clone(), *outcome);
}

/// A reviewer has the debate `first` held again, under this id.
fn debated_again(case: &mut CaseState, first: &DebateId, id: &str) -> DebateId {
    let found = |one: &&Conflict| one.conflict_id == *first;
    let again = Conflict {
        conflict_id: DebateId::new(id).unwrap(),
        ..case.debated.iter().find(found).unwrap().clone()
    };
    let second = again.conflict_id.clone();
    let outcome = case.outcomes.get_mut(first).unwrap();
    outcome.status = Status::Redebated;
    outcome.debated_again_as = Some(second.clone());
    let asked = DebateAsked {
        conflict: again.clone(),
        policy: policy(),
        terms: DebateTerms {
            refers_to: Some(first.clone()),
            ..DebateTerms::default()
        },
    };
    case.asked.insert(second.clone(), Arc::new(asked));
    case.debated.push(again);
    second
}

/// What stands of the margin for the analyses that there are, which is what a new one gets.
fn margin_of(case: &CaseState) -> String {
    let graph = Arc::clone(&published().state().graph);
    let standings = all_standings(case, &graph);
    let stands = standings[&Source::assumption(MARGIN)].values.get("");
    let used = json!([{ "kind": "assumption", "id": MARGIN }]);
    let fields = json!({ "analysis_id": "new", "depends_on": used });
    let filled_in = with_decisions(case, analysis(fields)).unwrap();
    assert_eq!(filled_in.depends_on[0].value.as_ref(), stands);
    stands.map(ToString::to_string).unwrap_or_default()
}

#[test]
fn the_latest_result_about_an_assumption_stands_whatever_the_ids_of_its_debates() {
    for (first, second) in [("d-b", "d-a"), ("d-a", "d-b")] {
        let (mut case, first) = provisional(first);
        let again = debated_again(&mut case, &first, second);
        assert_eq!(margin_of(&case), "25", "the new debate is under way");
        ends(&mut case, &again, Some(28), 9);
        assert_eq!(margin_of(&case), "28");
        // Its review was handled late.
        case.outcomes.get_mut(&first).unwrap().resolved_at =
            Timestamp::parse("2026-11-21T22:00:00Z").unwrap();
        assert_eq!(margin_of(&case), "28");
        let challenge = conflict("d-0", ConflictType::Challenge, MARGIN, &[]);
        let challenged = challenge.conflict_id.clone();
        case.debated.insert(0, challenge);
        ends(&mut case, &challenged, None, 20);
        assert_eq!(margin_of(&case), "28", "a challenge without a result");
        ends(&mut case, &challenged, Some(30), 20);
        assert_eq!(margin_of(&case), "30", "a later challenge");
        ends(&mut case, &challenged, Some(30), 8);
        assert_eq!(margin_of(&case), "28", "an earlier challenge");
    }
}

#[test]
fn a_debate_without_a_result_leaves_an_assumption_at_the_latest_one() {
    let (mut case, _) = provisional("d-b");
    let challenge = conflict("d-0", ConflictType::Challenge, MARGIN, &[]);
    let cancelled = challenge.conflict_id.clone();
    case.debated.push(challenge);
    ends(&mut case, &cancelled, None, 20);
    case.outcomes.get_mut(&cancelled).unwrap().status = Status::Cancelled;
    let standings = debate_standings(&case, &cancelled);
    let of = |source: &Source| standings[source].values.get("").map(ToString::to_string);
    assert_eq!(margin_of(&case), "25");
    assert_eq!(of(&Source::assumption(MARGIN)), Some("25".to_owned()));
    assert_eq!(of(&Source::Decision(cancelled.token())), None);
}

#[test]
fn a_new_debate_decides_about_what_rests_on_the_one_that_it_takes_up() {
    let (mut case, first) = provisional("d-b");
    let again = debated_again(&mut case, &first, "d-a");
    let used = |case: &CaseState, id: &DebateId| {
        let used = json!([{ "kind": "decision", "id": id }]);
        let fields = json!({ "analysis_id": "new", "depends_on": used });
        let filled_in = with_decisions(case, analysis(fields)).unwrap();
        let value = filled_in.depends_on[0].value.as_ref();
        value.map(ToString::to_string)
    };
    let value = |text: &str| Some(text.to_owned());
    assert_eq!(used(&case, &first), value("25"));
    assert_eq!(used(&case, &again), None, "it has not ended");
    ends(&mut case, &again, None, 9);
    assert_eq!(
        used(&case, &first),
        value("25"),
        "it ended without a result"
    );
    ends(&mut case, &again, Some(28), 9);
    let standings = debate_standings(&case, &again);
    let sources: Vec<&str> = standings.keys().map(Source::name).collect();
    assert_eq!(sources, [again.as_str(), first.as_str(), MARGIN]);
    let mut stands = standings.values().map(|one| json!(one.values[""]));
    assert!(stands.all(|one| one == json!(28.0)));
    assert_eq!(debate_standings(&case, &first), standings);
    assert_eq!(used(&case, &first), value("28"));
}

#[test]
fn a_new_debate_about_an_estimate_decides_about_its_metric_too() {
    let mut case = case();
    let kind = ConflictType::EstimateDisagreement;
    let acme = conflict("d-b", kind, "acme/operating margin", &[]);
    let first = acme.conflict_id.clone();
    case.debated.push(acme);
    ends(&mut case, &first, Some(25), 0);
    let again = debated_again(&mut case, &first, "d-a");
    ends(&mut case, &again, Some(28), 9);
    let standings = debate_standings(&case, &again);
    let sources: Vec<&str> = standings.keys().map(Source::name).collect();
    let whole = "acme operating margin";
    assert_eq!(sources, [again.as_str(), first.as_str(), whole, MARGIN]);
}
