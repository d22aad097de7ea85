//! A vote that was too narrow is counted again, like one that has decided.

use concord_events::AggregateEvent;

use super::*;
use crate::aggregates::debate::counted_vote;
use crate::assurance::replay::{rebuild, recount};

/// A narrow vote whose debate falls back and is confirmed.
fn climbed() -> Story<DebateMachine> {
    let held = [("ann", json!(30), 0.9), ("ben", json!(60), 0.8)];
    let mut rules = Policy {
        rounds_max: 1,
        conflict_handling: ConflictHandling::VoteThenLadder,
        ..policy()
    };
    rules.ladder.vote_margin_min = 0.5;
    let kind = ConflictType::RiskScoreDisagreement;
    let conflict = conflict("d-1", kind, "risk_score", &held);
    let mut story = Story::<DebateMachine>::of("d-1");
    story.hears(&said("m-open", 0), &open_debate(conflict, rules));
    story.hears(&said("m-1", 1), &keeps("ann", "m-1"));
    assert_eq!(
        story.hears(&said("m-2", 2), &keeps("ben", "m-2")),
        "escalated"
    );
    passes(&mut story, "compare", after(2));
    passes(&mut story, "person", after(2 + 6 * HOUR));
    let confirmed = story.hears(&happened("g-1", 7 * HOUR), &reviews(ReviewAction::Confirm));
    assert_eq!(confirmed, "resolved");
    story
}

/// The tally that an event states, if it states one.
fn tally_of(event: &mut DebateEvent) -> Option<&mut concord_wire::payload::Tally> {
    match event {
        DebateEvent::Escalated(escalated) => escalated.discussion.as_mut()?.tally.as_mut(),
        DebateEvent::FellBack(fell) => fell.outcome.tally.as_mut(),
        DebateEvent::Resolved(resolved) => resolved.outcome.tally.as_mut(),
        _ => None,
    }
}

#[test]
fn a_tally_that_was_changed_is_found_wherever_it_is_stored() {
    let story = climbed();
    assert_eq!(recount::<DebateMachine>(&story.records), vec![]);
    let mut changed = Vec::new();
    for place in 0..story.records.len() {
        let mut records = story.records.clone();
        let record = &mut records[place];
        let Some(tally) = tally_of(&mut record.event) else {
            continue;
        };
        tally.options[0].weight += 0.25;
        changed.push(record.event.name());
        let found = recount::<DebateMachine>(&records);
        let sequence = story.records[place].sequence;
        assert!(
            found
                .iter()
                .any(|one| one.sequence == sequence && one.what.contains("tally")),
            "{changed:?}: {found:?}"
        );
    }
    assert_eq!(changed, ["escalated", "fell_back", "resolved"]);
    let mut counted = Vec::new();
    for place in 1..=story.records.len() {
        let (after, _) = rebuild::<DebateMachine>(&story.records[..place]);
        let event = &story.records[place - 1].event;
        counted.extend(counted_vote(&after.state, event).map(|_| event.name()));
    }
    assert_eq!(counted, ["escalated"], "the others repeat it");
}
