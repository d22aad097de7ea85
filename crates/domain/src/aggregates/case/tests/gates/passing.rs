//! Passing a gate.

use super::*;

#[test]
fn a_gate_is_not_passed_before_everything_is_reviewed() {
    let (mut story, debate) = at_gate(policy());
    let pass = |id: &str, gate: &str| reviews("gail", id, gate, ReviewAction::Pass, None);
    assert_eq!(
        story.hears(&said("g-1", 60), &pass("g-1", "valuation")),
        "refused: /payload/action"
    );
    assert_eq!(
        story.hears(&said("g-2", 60), &pass("g-2", "release")),
        "refused: /payload/gate"
    );
    let by_party = reviews(
        "finance",
        "g-3",
        "valuation",
        ReviewAction::Confirm,
        Some(&debate),
    );
    assert_eq!(
        story.hears(&said("g-3", 60), &by_party),
        "refused: /from_agent"
    );
    let unknown = DebateId::new("d-none").unwrap();
    let other = reviews(
        "gail",
        "g-4",
        "valuation",
        ReviewAction::Confirm,
        Some(&unknown),
    );
    assert_eq!(
        story.hears(&said("g-4", 60), &other),
        "refused: /payload/debate_id"
    );
    let confirm = reviews(
        "gail",
        "g-5",
        "valuation",
        ReviewAction::Confirm,
        Some(&debate),
    );
    assert_eq!(story.hears(&said("g-5", 61), &confirm), "gate_reviewed");
    assert_eq!(
        story.hears(&said("g-5", 61), &confirm),
        "ignored: repetition"
    );
    let again = reviews(
        "gail",
        "g-6",
        "valuation",
        ReviewAction::Override,
        Some(&debate),
    );
    assert_eq!(
        story.hears(&said("g-6", 62), &again),
        "refused: /payload/debate_id",
        "reviewed already"
    );
    assert_eq!(
        ends(&mut story, "e-2", &debate, Status::Confirmed),
        "debate_settled"
    );
    assert_eq!(
        ends(&mut story, "e-3", &debate, Status::Overridden),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&said("g-7", 70), &pass("g-7", "valuation")),
        "gate_passed"
    );
    assert_eq!(story.state().gate(), Some("release"));
    assert_eq!(
        story.hears(&said("g-8", 71), &pass("g-8", "release")),
        "gate_passed"
    );
    assert_eq!(
        story.hears(&said("g-9", 72), &pass("g-9", "release")),
        "refused: /payload/gate"
    );
}

#[test]
fn a_policy_may_let_a_case_pass_with_what_nobody_has_reviewed_and_it_is_recorded() {
    let mut rules = policy();
    rules.ladder.pass_unreviewed = true;
    let (mut story, debate) = at_gate(rules);
    let pass = reviews("gail", "g-1", "valuation", ReviewAction::Pass, None);
    assert_eq!(story.hears(&said("g-1", 60), &pass), "gate_passed");
    let CaseEvent::GatePassed(passed) = &story.last().event else {
        panic!()
    };
    assert_eq!(passed.unreviewed, [debate]);
}
