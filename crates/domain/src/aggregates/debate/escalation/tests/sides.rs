//! Who speaks for a side in mediation.

use super::*;
use crate::fixtures::round_due;

/// How mediation ends between those who hold 30 and 60, each with a score and the data points behind it; and who has spoken.
fn mediated(held: &[(&str, u8, f64, f64)]) -> (String, Vec<String>) {
    let positions: Vec<_> = held
        .iter()
        .map(|(who, value, _, _)| (*who, json!(value), 0.8))
        .collect();
    let known = held.iter().filter(|(_, _, _, points)| *points > 0.0);
    let of = |score, points| Credibility {
        score,
        data_points: points,
        ..half_width(0.05, score)
    };
    let credibility = known.map(|(who, _, score, points)| (agent(who), of(*score, *points)));
    let rules = Policy {
        rounds_max: 1,
        conflict_handling: ConflictHandling::Ladder,
        ..policy()
    };
    let kind = ConflictType::RiskScoreDisagreement;
    let DebateInput::Open(mut opening) =
        open_debate(conflict("d-1", kind, "risk_score", &positions), rules)
    else {
        panic!("it opens a debate");
    };
    opening.prior_knowledge.credibility = credibility.collect();
    let mut story = Story::<DebateMachine>::of("d-1");
    story.hears(&said("m-open", 0), &DebateInput::Open(opening));
    let due = round_due(&story.id, 1, after(10_000));
    assert_eq!(story.hears(&happened("e-1", 10_000), &due), "escalated");
    let heard = passes(&mut story, "compare", after(10_000));
    let recounted = crate::assurance::replay::recount::<DebateMachine>(&story.records);
    assert_eq!(recounted, vec![]);
    let outcome = story.state().outcome.clone();
    let mediation = match outcome {
        Some(outcome) => *outcome.mediation.unwrap(),
        None => ladder(&story).mediation.clone().unwrap(),
    };
    let sides = mediation.sides.iter();
    (heard, sides.map(|one| one.agent_id.to_string()).collect())
}

#[test]
fn a_supporter_without_a_record_takes_none_away_from_its_side() {
    for (what, joins, settled, speakers) in [
        ("nobody joins", None, "resolved", ["ann", "ben"]),
        (
            "one who was right the only time joins the stronger side",
            Some((30, 1.0, 1.0)),
            "resolved",
            ["ann", "ben"],
        ),
        (
            "the same joins the weaker side",
            Some((60, 1.0, 1.0)),
            "resolved",
            ["ann", "ben"],
        ),
        (
            "nothing is known of who joins the weaker side",
            Some((60, 0.5, 0.0)),
            "resolved",
            ["ann", "ben"],
        ),
        (
            "one with a better record joins the weaker side",
            Some((60, 0.9, 20.0)),
            "escalated",
            ["ann", "cyd"],
        ),
        (
            "one with a worse record joins the stronger side",
            Some((30, 0.7, 20.0)),
            "resolved",
            ["ann", "ben"],
        ),
    ] {
        let mut held = vec![("ann", 30, 0.95, 100.0), ("ben", 60, 0.3, 100.0)];
        held.extend(joins.map(|(value, score, points)| ("cyd", value, score, points)));
        let (heard, spoke) = mediated(&held);
        assert_eq!(
            (heard.as_str(), spoke),
            (settled, speakers.map(str::to_owned).to_vec()),
            "{what}"
        );
    }
}

#[test]
fn a_side_of_which_nobody_has_a_record_is_decided_by_a_person() {
    let held = [
        ("ann", 30, 0.95, 100.0),
        ("ben", 60, 0.5, 0.0),
        ("cyd", 60, 0.1, 1.0),
    ];
    let (heard, spoke) = mediated(&held);
    assert_eq!(
        (heard.as_str(), spoke),
        ("escalated", vec!["ann".into(), "ben".into()])
    );
}
