//! Where an expert is notified goes with the facts that are about the expert, and with no message.

use concord_events::names::{HALF, NEARLY};

use super::*;

fn told(story: &Story<DebateMachine>) -> String {
    format!("{:?}", DebateMachine::effects(story.last()))
}

#[test]
fn the_contact_is_in_the_facts_and_in_no_message() {
    let (mut story, _) = with_eve();
    let DebateEvent::Assigned(assigned) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(assigned.contact, contact_of("eve"));
    assert!(
        told(&story).contains("AskExpert") && !told(&story).contains("@example.org"),
        "{}",
        told(&story)
    );
    for name in [HALF, NEARLY] {
        let due = ladder(&story).due(name).unwrap();
        assert_eq!(passes(&mut story, name, due), "reminded");
        let DebateEvent::Reminded(reminded) = &story.last().event else {
            panic!("{:?}", story.last())
        };
        assert_eq!(reminded.contact, contact_of("eve"));
        assert!(
            told(&story).contains("RulingDue") && !told(&story).contains("@example.org"),
            "{}",
            told(&story)
        );
    }
}

#[test]
fn nobody_is_reminded_of_a_debate_that_was_taken_back() {
    let (mut story, _) = with_eve();
    let leaves = command(Command::Unassigned {
        expert: agent("eve"),
        reason: UnassignedReason::Left,
    });
    assert_eq!(
        story.hears(&happened("q-2", 17 * MINUTE), &leaves),
        "unassigned"
    );
    let due = ladder(&story).due(HALF).unwrap();
    assert_eq!(passes(&mut story, HALF, due), "reminded");
    let DebateEvent::Reminded(reminded) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(
        (&reminded.expert, reminded.contact.is_empty()),
        (&None, true)
    );
}
