//! When an expert has let a debate lie for so long that somebody else may be given it.

use concord_events::names::{HALF, NEARLY, PERSON};

use super::*;

/// A debate at level 3 of a case that this opener opened.
fn at_level_3(opened_by: Option<&str>) -> Story<DebateMachine> {
    let terms = DebateTerms {
        opened_by: opened_by.map(agent),
        ..terms(Some("valuation review"))
    };
    let mut story = challenged_with(policy(), terms, PriorKnowledge::default());
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    passes(&mut story, "compare", after(15 * MINUTE));
    story
}

fn returns(story: &mut Story<DebateMachine>, name: &str) -> bool {
    let due = ladder(story).due(name).unwrap();
    assert_eq!(passes(story, name, due), "reminded");
    match &story.last().event {
        DebateEvent::Reminded(reminded) => reminded.returns,
        other => panic!("{other:?}"),
    }
}

fn assigned(story: &mut Story<DebateMachine>, at: u64, expert: &str) {
    let cause = format!("q-{at}");
    assert_eq!(
        story.hears(&happened(&cause, at), &assigned_to(expert)),
        "assigned"
    );
}

#[test]
fn half_of_the_time_without_a_ruling_is_too_long() {
    let mut story = at_level_3(Some("ada"));
    assigned(&mut story, 16 * MINUTE, "eve");
    assert!(returns(&mut story, HALF));
    let takes = command(Command::Unassigned {
        expert: agent("eve"),
        reason: UnassignedReason::DidNotAct,
    });
    let later = 3 * HOUR + 16 * MINUTE;
    assert_eq!(
        story.hears(&happened("q-back", later), &takes),
        "unassigned"
    );
    let DebateEvent::Unassigned(unassigned) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(unassigned.reason, UnassignedReason::DidNotAct);
    assert_eq!(unassigned.contact, contact_of("eve"));
    // Its time goes on.
    assert_eq!(
        ladder(&story).due(PERSON),
        Some(after(6 * HOUR + 15 * MINUTE))
    );
    assigned(&mut story, later + 1, "fay");
    let digest = ladder(&story).digest.clone().unwrap();
    assert_eq!(
        story.hears(&said("r-1", later + 2), &rules("eve", "r-1", &digest, "p1")),
        "refused: /from_agent"
    );
    assert!(returns(&mut story, NEARLY));
}

#[test]
fn only_at_a_reminder_is_it_taken_from_whoever_has_had_it_as_long_as_is_left() {
    let mut story = at_level_3(Some("ada"));
    assigned(&mut story, 2 * HOUR, "eve");
    assert!(!returns(&mut story, HALF));
    assert!(returns(&mut story, NEARLY));
    let mut story = at_level_3(Some("ada"));
    assert!(!returns(&mut story, HALF), "nobody has it");
    assigned(&mut story, 5 * HOUR + 30 * MINUTE, "eve");
    assert!(!returns(&mut story, NEARLY));
}

#[test]
fn a_ruling_that_does_not_count_is_an_act_all_the_same() {
    let mut story = at_level_3(Some("ada"));
    assigned(&mut story, 16 * MINUTE, "eve");
    let old = rules("eve", "r-1", "an old brief", "p1");
    assert_eq!(
        story.hears(&said("r-1", 2 * HOUR), &old),
        "ruling_set_aside"
    );
    assert!(!returns(&mut story, HALF));
}

#[test]
fn a_hold_is_nobodys_fault() {
    let mut story = at_level_3(Some("ada"));
    assigned(&mut story, 16 * MINUTE, "eve");
    let control = |control| {
        command(Command::Deadlines {
            control,
            later_ms: 0,
            by: agent("olga"),
            why: "holiday".into(),
        })
    };
    story.hears(&said("o-1", HOUR), &control(DeadlineControl::Hold));
    story.hears(&said("o-2", 40 * HOUR), &control(DeadlineControl::Resume));
    assert!(!returns(&mut story, HALF));
    assert!(returns(&mut story, NEARLY));
}

#[test]
fn debates_of_earlier_versions_keep_their_experts() {
    let mut story = at_level_3(None);
    assigned(&mut story, 16 * MINUTE, "eve");
    assert!(!returns(&mut story, HALF));
    assert!(!returns(&mut story, NEARLY));
}

#[test]
fn who_had_a_debate_that_somebody_else_is_given_is_told() {
    let mut story = at_level_3(Some("ada"));
    assigned(&mut story, 16 * MINUTE, "eve");
    assigned(&mut story, 17 * MINUTE, "fay");
    let DebateEvent::Assigned(given) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    let before = given.instead_of.as_ref().unwrap();
    assert_eq!(
        (&before.expert, &before.contact),
        (&agent("eve"), &contact_of("eve"))
    );
    let told = format!("{:?}", DebateMachine::effects(story.last()));
    assert!(
        told.contains("Reassigned") && told.contains("eve") && !told.contains("@example.org"),
        "{told}"
    );
    // That the queue had taken it back is heard too late to change anything.
    let takes = command(Command::Unassigned {
        expert: agent("eve"),
        reason: UnassignedReason::DidNotAct,
    });
    assert_eq!(
        story.hears(&happened("q-back", 18 * MINUTE), &takes),
        "ignored: already_done"
    );
    assert_eq!(ladder(&story).expert, Some(agent("fay")));
}
