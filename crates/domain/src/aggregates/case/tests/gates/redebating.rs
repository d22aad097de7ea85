//! A reviewer has a provisional decision debated again.

use super::*;

#[test]
fn a_debate_can_be_had_again_as_often_as_the_policy_says() {
    let mut rules = policy();
    rules.ladder.redebates_max = 1;
    let (mut story, first) = at_gate(rules);
    let again = reviews(
        "gail",
        "g-1",
        "valuation",
        ReviewAction::Redebate,
        Some(&first),
    );
    assert_eq!(story.hears(&said("g-1", 60), &again), "gate_reviewed");
    let second = story.state().debated[1].conflict_id.clone();
    let asked = story.state().asked[&second].clone();
    assert_eq!(
        (
            asked.terms.refers_to.as_ref(),
            asked.terms.added_context.as_deref()
        ),
        (Some(&first), Some("The new filing."))
    );
    let pass = reviews("gail", "g-2", "valuation", ReviewAction::Pass, None);
    assert_eq!(
        story.hears(&said("g-2", 61), &pass),
        "refused: /payload/action",
        "the new debate is under way"
    );
    assert_eq!(
        ends(&mut story, "e-2", &first, Status::Redebated),
        "decision_changed"
    );
    assert_eq!(
        ends(&mut story, "e-3", &second, Status::Provisional),
        "decision_changed"
    );
    let third = reviews(
        "gail",
        "g-3",
        "valuation",
        ReviewAction::Redebate,
        Some(&second),
    );
    assert_eq!(
        story.hears(&said("g-3", 62), &third),
        "refused: /payload/action"
    );
}

#[test]
fn a_detected_conflict_is_debated_again_in_the_circumstances_of_its_case() {
    let mut story = Story::<CaseMachine>::of("c-1");
    let mut request = open_request(&["finance", "strategy"], policy());
    request.request.gates = gate_names(&["valuation"]);
    request.request.circumstances.regime = Some("BEAR".into());
    story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
    for from in ["finance", "strategy"] {
        story.hears(&said(from, 1), &finding(from, from, json!({})));
    }
    let held = [("finance", json!(20), 0.8), ("strategy", json!(70), 0.7)];
    let kind = ConflictType::RiskScoreDisagreement;
    let found = conflict("d-9", kind, "risk_score", &held);
    let first = found.conflict_id.clone();
    story.hears(&happened("e-d", 4), &detected(vec![found], vec![]));
    ends(&mut story, "e-1", &first, Status::Provisional);
    let redebate = ReviewAction::Redebate;
    let again = reviews("gail", "g-1", "valuation", redebate, Some(&first));
    assert_eq!(story.hears(&said("g-1", 60), &again), "gate_reviewed");
    let second = &story.state().debated[1].conflict_id;
    let again = &story.state().asked[second];
    assert_eq!(again.terms.circumstances.regime.as_deref(), Some("BEAR"));
}
