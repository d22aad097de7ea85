//! Passing a gate.

use super::*;

fn pass(id: &str, gate: &str) -> CaseInput {
    reviews("gail", id, gate, ReviewAction::Pass, None)
}

/// A review at the gate `valuation`.
fn at_valuation(from: &str, id: &str, action: ReviewAction, debate: &DebateId) -> CaseInput {
    reviews(from, id, "valuation", action, Some(debate))
}

#[test]
fn a_gate_is_not_passed_before_everything_is_reviewed() {
    use ReviewAction::{Confirm, Override};
    let (mut story, debate) = at_gate(policy());
    let unknown = DebateId::new("d-none").unwrap();
    let action = "refused: /payload/action";
    let gate = "refused: /payload/gate";
    let reviewed = "refused: /payload/debate_id";
    for (id, input, expected) in [
        ("g-1", pass("g-1", "valuation"), action),
        ("g-2", pass("g-2", "release"), gate),
        (
            "g-3",
            at_valuation("finance", "g-3", Confirm, &debate),
            "refused: /from_agent",
        ),
        (
            "g-4",
            at_valuation("gail", "g-4", Confirm, &unknown),
            reviewed,
        ),
        (
            "g-5",
            at_valuation("gail", "g-5", Confirm, &debate),
            "gate_reviewed",
        ),
        (
            "g-5",
            at_valuation("gail", "g-5", Confirm, &debate),
            "ignored: repetition",
        ),
        (
            "g-6",
            at_valuation("gail", "g-6", Override, &debate),
            reviewed,
        ),
    ] {
        assert_eq!(story.hears(&said(id, 60), &input), expected, "{id}");
    }
    assert_eq!(
        ends(&mut story, "e-2", &debate, Status::Confirmed),
        "decision_changed"
    );
    assert_eq!(
        ends(&mut story, "e-3", &debate, Status::Overridden),
        "ignored: already_done"
    );
    for (id, name, expected) in [
        ("g-7", "valuation", "gate_passed"),
        ("g-8", "release", "gate_passed"),
        ("g-9", "release", gate),
    ] {
        assert_eq!(
            story.hears(&said(id, 70), &pass(id, name)),
            expected,
            "{id}"
        );
    }
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

/// Nobody is advised to pass a gate that they would not pass.
#[test]
fn what_is_in_the_way_is_said_and_no_more() {
    let (mut story, debate) = at_gate(policy());
    let open = refusal(&story, &pass("g-1", "valuation"));
    assert!(
        open.contains("1 provisional decision requires review at the gate"),
        "{open}"
    );
    let again = at_valuation("gail", "g-2", ReviewAction::Redebate, &debate);
    assert_eq!(story.hears(&said("g-2", 60), &again), "gate_reviewed");
    ends(&mut story, "e-2", &debate, Status::Redebated);
    let open = refusal(&story, &pass("g-3", "valuation"));
    assert!(open.contains(": 1 debate is under way."), "{open}");
    let confirm = at_valuation("gail", "g-4", ReviewAction::Confirm, &debate);
    let nothing = refusal(&story, &confirm);
    assert!(
        nothing.contains("1 debate is under way") && !nothing.contains("pass it"),
        "{nothing}"
    );
    let second = story.state().debated[1].conflict_id.clone();
    ends(&mut story, "e-3", &second, Status::Accepted);
    let nothing = refusal(&story, &confirm);
    assert!(nothing.contains("pass it"), "{nothing}");

    let collecting = opened(&["valuation"], policy());
    let early = refusal(&collecting, &pass("g-5", "valuation"));
    assert!(early.contains(": it is not decided yet."), "{early}");
    let nothing = refusal(&collecting, &confirm);
    assert!(!nothing.contains("pass it"), "{nothing}");
}
