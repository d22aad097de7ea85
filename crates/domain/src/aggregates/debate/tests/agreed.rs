//! A disagreement that nobody has any more goes to no person.

use concord_wire::policy::{ConflictHandling, VoteRule};

use super::*;
use crate::assurance::replay::recount;

/// A debate of two parties about a score, under this handling, in which ann takes over what ben holds and ben says nothing.
fn conceded(handling: ConflictHandling, confidence: f64) -> DebateStory {
    let held = [
        ("ann", json!(30), confidence),
        ("ben", json!(60), confidence),
    ];
    let kind = ConflictType::RiskScoreDisagreement;
    let rules = Policy {
        conflict_handling: handling,
        vote_rule: VoteRule::Confidence,
        ..policy()
    };
    let mut story = opened(conflict("d-1", kind, "risk_score", &held), rules);
    story.hears(&said("m-1", 1), &joins("ann", "m-1", "ben"));
    let due = round_due(&story.id, 1, after(ROUND));
    assert_eq!(story.hears(&happened("e-1", ROUND), &due), "round_closed");
    story
}

#[test]
fn what_all_hold_in_the_end_stands_also_where_one_was_silent() {
    use ConflictHandling::{Ladder, Vote, VoteThenLadder};
    for (handling, confidence, status) in [
        (Ladder, 0.7, Status::Discussion),
        (VoteThenLadder, 0.7, Status::Vote),
        // Nobody's vote has a weight, so it has no margin.
        (VoteThenLadder, 0.0, Status::Discussion),
        (Vote, 0.0, Status::Vote),
    ] {
        let mut story = conceded(handling, confidence);
        let due = round_due(&story.id, 2, after(2 * ROUND));
        let heard = story.hears(&happened("e-2", 2 * ROUND), &due);
        assert_eq!(heard, "resolved", "{handling:?} {confidence}");
        let outcome = story.state().outcome.clone().unwrap();
        assert_eq!(outcome.status, status, "{handling:?} {confidence}");
        let resolution = outcome.resolution.unwrap();
        assert_eq!(resolution.value, Some(json!(60)));
        assert_eq!(resolution.supporters, [agent("ann"), agent("ben")]);
        assert_eq!(recount::<DebateMachine>(&story.records), vec![]);
    }
}

/// A reviewer has ordered the debate anew because what all hold is not right.
#[test]
fn what_all_held_from_the_beginning_is_settled_by_no_silence() {
    let held = [("ann", json!(60), 0.7), ("ben", json!(60), 0.7)];
    let rules = Policy {
        rounds_max: 1,
        conflict_handling: ConflictHandling::Ladder,
        ..policy()
    };
    let kind = ConflictType::RiskScoreDisagreement;
    let mut story = opened(conflict("d-1", kind, "risk_score", &held), rules);
    let due = round_due(&story.id, 1, after(ROUND));
    assert_eq!(story.hears(&happened("e-1", ROUND), &due), "escalated");
}
