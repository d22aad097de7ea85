//! Levels 3 to 5: who rules, on what, until when; what nobody rules on, and what a gate makes of
//! it.

use concord_events::{CaseEvent, RulingRefusal};

use super::*;
use crate::aggregates::case::{CaseInput, CaseMachine};
use crate::fixtures::{detected, finding, open_case};

/// As much as a person may write is what the debate, and so the decision and its log, says of the reason.
#[test]
fn the_reason_of_a_person_is_kept_whole() {
    let reason = "Half of it, \"as is\".\n".repeat(186);
    let (mut story, digest) = with_eve();
    let DebateInput::Message(mut message) = rules("eve", "r-1", &digest, "p1") else {
        panic!()
    };
    let MessageBody::Ruling(ruling) = &mut message.body else {
        panic!()
    };
    ruling.rationale.clone_from(&reason);
    let heard = story.hears(&said("r-1", 20), &DebateInput::Message(message));
    assert_eq!(heard, "resolved");
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(outcome.ruled_by.unwrap().rationale, reason);
}

#[test]
fn only_the_expert_rules_and_only_on_what_the_debate_is_now() {
    let (mut story, digest) = with_eve();
    assert_eq!(
        story.hears(&said("r-0", 20), &rules("zoe", "r-0", &digest, "p1")),
        "refused: /from_agent"
    );
    assert_eq!(
        story.hears(&said("r-1", 20), &rules("eve", "r-1", &digest, "p9")),
        "refused: /payload/position_id"
    );
    assert_eq!(
        story.hears(&said("m-9", 21), &evidence("finance", "m-9")),
        "evidence_given"
    );
    assert_eq!(
        story.hears(&said("r-2", 22), &rules("eve", "r-2", &digest, "p1")),
        "ruling_set_aside"
    );
    let DebateEvent::RulingSetAside(aside) = &story.last().event else {
        panic!()
    };
    assert_eq!(aside.reason, RulingRefusal::Changed);
    let begins = "The debate has changed since the brief with that digest";
    assert!(aside.explanation.starts_with(begins), "{aside:?}");
    let lines = [
        "finance: new evidence \"10-K page m-9\"",
        "finance: reasoning \"See the ROI table.\"",
    ];
    assert_eq!(aside.changes, lines);
    let now = aside.brief.clone().unwrap().digest;
    assert_eq!(Some(&now), ladder(&story).digest.as_ref());
    assert_eq!(
        story.hears(&said("r-3", 23), &rules("eve", "r-3", &now, "p2")),
        "resolved"
    );
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(
        (outcome.status, outcome.level),
        (Status::Ruling, Some(Level::Person))
    );
    assert_eq!(outcome.resolution.unwrap().value, Some(json!(30)));
    assert_eq!(
        story.hears(&said("r-3", 23), &rules("eve", "r-3", &now, "p2")),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&said("r-4", 24), &rules("eve", "r-4", &now, "p1")),
        "ruling_set_aside"
    );
    let DebateEvent::RulingSetAside(aside) = &story.last().event else {
        panic!()
    };
    assert_eq!(aside.reason, RulingRefusal::Second);
}

#[test]
fn the_log_of_the_case_says_what_rests_on_what_was_settled() {
    let held = [("ann", json!(30), 0.9), ("ben", json!(60), 0.8)];
    let kind = ConflictType::RiskScoreDisagreement;
    let disputed = conflict("d-1", kind, "risk_score", &held);
    for handling in [ConflictHandling::Vote, ConflictHandling::Ladder] {
        let policy = Policy {
            rounds_max: 1,
            conflict_handling: handling,
            ..policy()
        };
        let DebateInput::Open(mut opening) = open_debate(disputed.clone(), policy.clone()) else {
            panic!("a request to open a debate")
        };
        opening.prior_knowledge.dependants = vec!["dcf".into()];
        let mut debate = Story::<DebateMachine>::of("d-1");
        debate.hears(&happened("e-det", 0), &DebateInput::Open(opening));
        debate.hears(&said("m-1", 1), &keeps("ann", "m-1"));
        debate.hears(&said("m-2", 2), &keeps("ben", "m-2"));
        if handling == ConflictHandling::Ladder {
            passes(&mut debate, "compare", after(2));
            debate.hears(&happened("q-1", 3), &assigned_to("eve"));
            let digest = ladder(&debate).digest.clone().unwrap();
            debate.hears(&said("r-1", 4), &rules("eve", "r-1", &digest, "p2"));
        }
        let outcome = debate.state().outcome.clone().unwrap();
        let mut case = Story::<CaseMachine>::of("c-1");
        case.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy));
        for (name, score) in [("ann", 30), ("ben", 60)] {
            let found = finding(name, name, json!({ "risk_score": score }));
            case.hears(&said(name, 1), &found);
        }
        case.hears(
            &happened("e-det", 2),
            &detected(vec![disputed.clone()], vec![]),
        );
        let ended = CaseInput::Resolved(Box::new(outcome));
        assert_eq!(case.hears(&happened("e-end", 5), &ended), "decided");
        let CaseEvent::Decided(decided) = &case.last().event else {
            panic!("{:?}", case.last().event)
        };
        let entry = decided.entry.as_ref().unwrap();
        assert_eq!(entry.impact, ["dcf"], "{:?}", entry.method);
    }
}

#[test]
fn a_digest_that_no_brief_has_had_is_called_that() {
    let (mut story, _) = with_eve();
    let wrong = rules("eve", "r-1", "made-up", "p1");
    assert_eq!(story.hears(&said("r-1", 20), &wrong), "ruling_set_aside");
    let DebateEvent::RulingSetAside(aside) = &story.last().event else {
        panic!()
    };
    assert_eq!(
        aside.explanation,
        "No brief of this debate has had that digest. Read the brief given here and rule on its digest."
    );
}

#[test]
fn a_value_that_cannot_be_compared_with_the_positions_is_no_ruling() {
    let (mut story, digest) = with_eve();
    for (id, value, heard) in [
        ("r-1", json!("abc"), "refused: /payload/value"),
        ("r-2", json!("28 days"), "refused: /payload/value"),
        ("r-3", json!(28), "resolved"),
    ] {
        let DebateInput::Message(mut said_by_eve) = rules("eve", id, &digest, "p1") else {
            panic!("a ruling")
        };
        let MessageBody::Ruling(ruling) = &mut said_by_eve.body else {
            panic!("a ruling")
        };
        ruling.position_id = None;
        (ruling.position, ruling.value) = (Some("28 %".into()), Some(value));
        let heard_now = story.hears(&said(id, 20), &DebateInput::Message(said_by_eve));
        assert_eq!(heard_now, heard, "{id}");
    }
}

#[test]
fn a_ruling_that_says_two_things_is_refused() {
    let (mut story, digest) = with_eve();
    let state = story.state();
    let briefed = brief::briefed_positions(state.opened.as_ref().unwrap(), &state.positions);
    let held = briefed[0].value.clone();
    let of_brief = |value: Option<Value>| (Some("p1".to_owned()), None, value);
    let own = |words: &str| (None, Some(words.to_owned()), None);
    for (id, (position_id, position, value), heard) in [
        ("r-1", of_brief(Some(json!(99))), "refused: /payload/value"),
        ("r-2", own(" p1 "), "refused: /payload/position"),
        ("r-3", of_brief(held), "resolved"),
    ] {
        let DebateInput::Message(mut said_by_eve) = rules("eve", id, &digest, "p1") else {
            panic!("a ruling")
        };
        let MessageBody::Ruling(ruling) = &mut said_by_eve.body else {
            panic!("a ruling")
        };
        (ruling.position_id, ruling.position, ruling.value) = (position_id, position, value);
        let heard_now = story.hears(&said(id, 20), &DebateInput::Message(said_by_eve));
        assert_eq!(heard_now, heard, "{id}");
    }
}

#[test]
fn a_ruling_after_the_time_is_recorded_and_refused() {
    let (mut story, digest) = with_eve();
    passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
    assert_eq!(
        story.hears(&said("r-1", 7 * HOUR), &rules("eve", "r-1", &digest, "p1")),
        "ruling_set_aside"
    );
    let DebateEvent::RulingSetAside(aside) = &story.last().event else {
        panic!()
    };
    assert_eq!(aside.reason, RulingRefusal::TimedOut);
    assert!(
        aside.explanation.contains("provisionally this stands: 25"),
        "{}",
        aside.explanation
    );
}

#[test]
fn an_expert_who_disappears_stops_nothing_and_another_can_be_given_the_debate() {
    let (mut story, digest) = with_eve();
    assert_eq!(
        story.hears(&happened("q-2", 20), &assigned_to("eve")),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&happened("q-3", 21), &assigned_to("fay")),
        "assigned"
    );
    assert_eq!(
        story.hears(&said("r-1", 22), &rules("eve", "r-1", &digest, "p1")),
        "refused: /from_agent"
    );
    let leaves = |expert: &str| {
        command(Command::Unassigned {
            expert: agent(expert),
            reason: UnassignedReason::Left,
        })
    };
    assert_eq!(
        story.hears(&happened("q-4", 23), &leaves("eve")),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&happened("q-5", 23), &leaves("fay")),
        "unassigned"
    );
    assert_eq!(
        story.hears(&said("r-2", 24), &rules("fay", "r-2", &digest, "p1")),
        "refused: /from_agent"
    );
    assert_eq!(
        story.hears(&happened("q-6", 25), &assigned_to("fay")),
        "assigned"
    );
    // What is delivered again undoes nothing that came after it.
    assert_eq!(
        story.hears(&happened("q-1", 26), &assigned_to("eve")),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&happened("q-5", 27), &leaves("fay")),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&said("r-3", 26), &rules("fay", "r-3", &digest, "p1")),
        "resolved"
    );
}

#[test]
fn what_the_queue_has_no_place_for_falls_back_at_once() {
    for handling in [Overflow::Escalate, Overflow::Defer] {
        let mut story = challenged();
        passes(&mut story, "acknowledge", after(15 * MINUTE));
        passes(&mut story, "compare", after(15 * MINUTE));
        let overflow = command(Command::Overflowed { handling });
        assert_eq!(
            story.hears(&happened("q-1", 16 * MINUTE), &overflow),
            "fell_back"
        );
        let due = if handling == Overflow::Defer {
            after(16 * MINUTE)
        } else {
            after(16 * MINUTE + 24 * HOUR)
        };
        assert_eq!(passes(&mut story, "provisional", due), "awaits_gate");
    }
}

#[test]
fn a_gate_confirms_overrides_or_has_it_debated_again() {
    for (action, status, value) in [
        (ReviewAction::Confirm, Status::Confirmed, json!(25)),
        (ReviewAction::Override, Status::Overridden, json!(28)),
        (ReviewAction::Redebate, Status::Redebated, json!(25)),
    ] {
        let (mut story, _) = with_eve();
        assert_eq!(
            story.hears(&happened("g-0", HOUR), &reviews(action)),
            "ignored: already_done",
            "not provisional"
        );
        passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
        assert_eq!(
            story.hears(&happened("g-1", 8 * HOUR), &reviews(action)),
            "resolved"
        );
        let outcome = story.state().outcome.clone().unwrap();
        assert_eq!(
            (outcome.status, outcome.resolution.unwrap().value),
            (status, Some(value))
        );
        assert_eq!(
            story.hears(&happened("g-2", 8 * HOUR), &reviews(action)),
            "ignored: already_done"
        );
    }
}

/// Rules as eve, signed with a key of this digit; `fits` for the case of the debate.
fn rules_signed(id: &str, digest: &str, digit: &str, fits: bool) -> DebateInput {
    let DebateInput::Message(mut said) = rules("eve", id, digest, "p1") else {
        panic!("a ruling")
    };
    let MessageBody::Ruling(ruling) = &mut said.body else {
        panic!("a ruling")
    };
    ruling.signature = Some(concord_wire::payload::Signature {
        key: digit.repeat(64),
        value: "0".repeat(128),
    });
    said.signed_for = fits.then(case_id);
    if let Some(eve) = &mut said.sender.person {
        eve.public_key = Some("a".repeat(64));
    }
    DebateInput::Message(said)
}

#[test]
fn where_the_policy_asks_for_it_a_ruling_counts_only_signed() {
    for is_policy_signed in [true, false] {
        let mut rules_of_case = policy();
        rules_of_case.ladder.signed = is_policy_signed;
        let mut story = challenged_with(rules_of_case, terms(None), PriorKnowledge::default());
        passes(&mut story, "acknowledge", after(15 * MINUTE));
        passes(&mut story, "compare", after(15 * MINUTE));
        story.hears(&happened("q-1", 16 * MINUTE), &assigned_to("eve"));
        let digest = ladder(&story).digest.clone().unwrap();
        let refused = "refused: /payload/signature";
        if is_policy_signed {
            let unsigned = rules("eve", "r-1", &digest, "p1");
            assert_eq!(story.hears(&said("r-1", HOUR), &unsigned), refused);
        }
        for (id, digit, fits, expected) in [
            ("r-2", "b", true, refused),
            ("r-3", "a", false, refused),
            ("r-4", "a", true, "resolved"),
        ] {
            let input = rules_signed(id, &digest, digit, fits);
            assert_eq!(story.hears(&said(id, HOUR), &input), expected, "{id}");
        }
        let DebateEvent::Resolved(resolved) = &story.last().event else {
            panic!("{:?}", story.last())
        };
        let key = resolved.outcome.ruled_by.as_ref().unwrap().key.as_deref();
        assert_eq!(key, Some("aaaaaaaaaaaaaaaa"));
        assert!(resolved.ruling.is_some(), "the event keeps what was signed");
    }
}
