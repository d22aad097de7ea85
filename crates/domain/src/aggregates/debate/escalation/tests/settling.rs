//! What settles a debate on the ladder: the parties, mediation, the policy, and caution.

use super::*;
use crate::aggregates::debate::escalation::evidence::{EVIDENCE_MAX, GIVEN_MAX};
use crate::aggregates::debate::escalation::messages::CLARIFICATIONS_MAX;
use crate::fixtures;
use crate::rules::canonical::canonical_estimate;

#[test]
fn challenger_and_challenged_settle_it_themselves() {
    let mut story = challenged();
    let clarify = |from: &str, id: &str| {
        says(
            from,
            id,
            MessageBody::Clarification {
                text: "Which year?".into(),
            },
        )
    };
    assert_eq!(
        story.hears(&said("m-1", 1), &clarify("finance", "m-1")),
        "clarified"
    );
    assert_eq!(
        story.hears(&said("m-1", 1), &clarify("finance", "m-1")),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(&said("m-x", 1), &clarify("zoe", "m-x")),
        "refused: /from_agent"
    );
    assert_eq!(
        story.hears(&said("m-2", 2), &keeps("strategy", "m-2")),
        "refused: ",
        "nothing to reject yet"
    );
    assert_eq!(
        story.hears(&said("m-3", 3), &evidence("finance", "m-3")),
        "evidence_given"
    );
    let names: Vec<_> = ladder(&story)
        .waits_for
        .iter()
        .map(|one| one.name.to_string())
        .collect();
    assert_eq!(names, ["evaluation"], "the challenger is awaited");
    assert_eq!(
        story.hears(&said("m-4", 4), &joins("strategy", "m-4", "finance")),
        "resolved"
    );
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(
        (outcome.status, outcome.level),
        (Status::Accepted, Some(Level::Agents))
    );
    assert_eq!(outcome.resolution.unwrap().value, Some(json!(25)));
    assert_eq!(
        story.hears(&said("m-5", 5), &evidence("finance", "m-5")),
        "answer_set_aside"
    );
}

#[test]
fn a_revision_is_weighed_like_evidence_and_a_rejection_climbs() {
    let mut story = challenged();
    assert_eq!(
        story.hears(&said("m-1", 1), &moves_to("finance", "m-1", json!(27))),
        "evidence_given"
    );
    assert_eq!(story.state().positions[0].value, Some(json!(27)));
    assert_eq!(
        story.hears(&said("m-2", 2), &keeps("strategy", "m-2")),
        "escalated"
    );
    assert_eq!(
        escalation(&story),
        (Level::Mediation, EscalationReason::Rejected)
    );
    let mut silent = challenged();
    silent.hears(&said("m-1", 1), &evidence("finance", "m-1"));
    assert_eq!(
        passes(&mut silent, "evaluation", after(HOUR + 1)),
        "escalated"
    );
    assert_eq!(
        escalation(&silent),
        (Level::Mediation, EscalationReason::NotEvaluated)
    );
}

#[test]
fn more_evidence_does_not_begin_the_evaluation_anew() {
    let mut story = challenged();
    story.hears(&said("m-1", 1), &evidence("finance", "m-1"));
    for (id, minutes) in [("m-2", 30), ("m-3", 59)] {
        let heard = story.hears(&said(id, minutes * MINUTE), &evidence("finance", id));
        assert_eq!(heard, "evidence_given");
    }
    assert_eq!(
        passes(&mut story, "evaluation", after(HOUR + 1)),
        "escalated"
    );
}

#[test]
fn a_party_that_says_much_takes_no_room_from_the_other() {
    let mut story = challenged();
    let mut heard = |from: &str, number: usize, answer: bool| {
        let id = format!("m-{from}-{number}");
        match answer {
            true => story.hears(&said(&id, 1), &keeps(from, &id)),
            false => story.hears(&said(&id, 1), &evidence(from, &id)),
        }
    };
    for (from, answers, most) in [
        ("strategy", false, EVIDENCE_MAX),
        ("finance", false, EVIDENCE_MAX),
        ("finance", true, GIVEN_MAX),
    ] {
        let before = if answers { EVIDENCE_MAX } else { 0 };
        for number in before..most {
            assert_eq!(heard(from, number as usize, answers), "evidence_given");
        }
        assert_eq!(heard(from, most as usize, answers), "refused: ", "{from}");
    }
    let conceded = story.hears(&said("m-end", 2), &joins("strategy", "m-end", "finance"));
    assert_eq!(conceded, "resolved");
}

#[test]
fn each_of_the_two_may_ask_so_often() {
    let mut story = challenged();
    for from in ["strategy", "finance"] {
        for number in 0..=CLARIFICATIONS_MAX {
            let (id, text) = (format!("m-{from}-{number}"), "Which year?".into());
            let asks = says(from, &id, MessageBody::Clarification { text });
            let heard = story.hears(&said(&id, 1), &asks);
            let expected = match number {
                CLARIFICATIONS_MAX => "refused: ",
                _ => "clarified",
            };
            assert_eq!(heard, expected, "{from} {number}");
        }
    }
}

#[test]
fn the_timer_of_a_challenger_stays_within_the_times_of_the_policy() {
    for (seconds, evidence_ms) in [
        (1, 15 * MINUTE),
        (30 * 60, 30 * MINUTE),
        (3_600, HOUR),
        (2_592_000, HOUR),
    ] {
        let mut terms = terms(None);
        let challenge = terms.challenge.as_mut().unwrap();
        challenge.escalation_timer = Some(seconds);
        let story = challenged_with(policy(), terms, PriorKnowledge::default());
        let due = ["acknowledge", "evidence"].map(|name| ladder(&story).due(name));
        let expected = [15 * MINUTE, evidence_ms].map(|ms| Some(after(ms)));
        assert_eq!(due, expected, "{seconds}");
    }
}

#[test]
fn mediation_settles_by_track_record_only_where_enough_is_known_and_the_gap_is_wide() {
    for (points, finance, strategy, expected) in [
        (15.0, 0.9, 0.6, Some(25)),
        (15.0, 0.6, 0.9, Some(30)),
        (14.9, 0.9, 0.6, None),
        (100.0, 0.9, 0.66, None),
        (100.0, 0.85, 0.6, None),
    ] {
        let mut story = challenged_with(policy(), terms(None), known(points, finance, strategy));
        passes(&mut story, "acknowledge", after(15 * MINUTE));
        let fact = passes(&mut story, "compare", after(15 * MINUTE));
        let outcome = story.state().outcome.clone();
        assert_eq!(
            fact,
            if expected.is_some() {
                "resolved"
            } else {
                "escalated"
            },
            "{points} {finance} {strategy}"
        );
        let value = outcome
            .clone()
            .and_then(|outcome| outcome.resolution?.value);
        assert_eq!(value, expected.map(|value| json!(value)));
        if let Some(outcome) = outcome {
            assert_eq!(outcome.status, Status::Mediation);
            assert!(
                outcome
                    .mediation
                    .unwrap()
                    .reasoning
                    .contains("leads with credibility 0.900")
            );
        }
        assert_eq!(
            crate::assurance::replay::recount::<DebateMachine>(&story.records),
            vec![]
        );
    }
}

#[test]
fn a_mediators_opinion_is_recorded_and_never_replaces_the_rule() {
    let mut rules = policy();
    rules.ladder.mediator = Some(agent("mia"));
    let mut story = challenged_with(rules, terms(None), PriorKnowledge::default());
    assert_eq!(
        story.hears(&said("m-0", 1), &evidence("mia", "m-0")),
        "refused: /from_agent",
        "not yet asked"
    );
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    assert_eq!(ladder(&story).due("compare"), Some(after(25 * MINUTE)));
    assert_eq!(
        story.hears(&said("m-1", 16 * MINUTE), &evidence("mia", "m-1")),
        "opinion_given"
    );
    assert_eq!(
        passes(&mut story, "compare", after(16 * MINUTE)),
        "escalated"
    );
    assert_eq!(escalation(&story).0, Level::Person);
    assert!(
        ladder(&story)
            .mediation
            .as_ref()
            .unwrap()
            .opinion
            .as_ref()
            .unwrap()
            .contains("ROI table")
    );
}

#[test]
fn a_discussion_climbs_as_its_policy_says() {
    let held = [("ann", json!(30), 0.9), ("ben", json!(60), 0.8)];
    for (handling, margin, expected) in [
        (ConflictHandling::Vote, 0.5, "resolved"),
        (ConflictHandling::Ladder, 0.0, "escalated"),
        (ConflictHandling::VoteThenLadder, 0.05, "resolved"),
        (ConflictHandling::VoteThenLadder, 0.5, "escalated"),
    ] {
        let mut rules = Policy {
            rounds_max: 1,
            conflict_handling: handling,
            ..policy()
        };
        rules.ladder.vote_margin_min = margin;
        let conflict = conflict(
            "d-1",
            ConflictType::RiskScoreDisagreement,
            "risk_score",
            &held,
        );
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(&said("m-open", 0), &open_debate(conflict, rules));
        story.hears(&said("m-1", 1), &keeps("ann", "m-1"));
        assert_eq!(
            story.hears(&said("m-2", 2), &keeps("ben", "m-2")),
            expected,
            "{handling:?} {margin}"
        );
        if expected == "escalated" {
            assert_eq!(escalation(&story).0, Level::Mediation);
            assert_eq!(story.state().rounds.len(), 1);
            passes(&mut story, "compare", after(2));
            passes(&mut story, "person", after(2 + 6 * HOUR));
            let DebateEvent::FellBack(fell) = &story.last().event else {
                panic!()
            };
            let outcome = fell.outcome.clone();
            assert_eq!(
                outcome.resolution.unwrap().value,
                Some(json!(60)),
                "the higher risk is cautious"
            );
            assert_eq!(
                outcome.tally.is_some(),
                handling == ConflictHandling::VoteThenLadder
            );
        }
    }
}

#[test]
fn the_cautious_position_by_metric() {
    let doubt: Value = json!("unclear");
    for (metric, finance, strategy, expected) in [
        ("price_target", json!(85), json!(95), json!(85)),
        (
            "target price of ACME",
            json!("$110"),
            json!("$95"),
            json!("$95"),
        ),
        ("discount rate", json!(0.08), json!(0.1), json!(0.1)),
        ("risk_score", json!(20), json!(70), json!(70)),
        (
            "management effectiveness",
            json!("good"),
            doubt.clone(),
            doubt,
        ),
    ] {
        let held = [("finance", finance, 0.8), ("strategy", strategy, 0.7)];
        let conflict = conflict("d-1", ConflictType::Challenge, metric, &held);
        let request = OpenDebate {
            case_id: case_id(),
            conflict,
            policy: policy(),
            terms: terms(None),
        };
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(
            &said("m-open", 0),
            &DebateInput::Open(Box::new(Opening::of(request))),
        );
        passes(&mut story, "acknowledge", after(15 * MINUTE));
        passes(&mut story, "compare", after(15 * MINUTE));
        passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
        let DebateEvent::FellBack(fell) = &story.last().event else {
            panic!()
        };
        assert_eq!(
            fell.outcome.resolution.as_ref().unwrap().value,
            Some(expected),
            "{metric}"
        );
    }
}

#[test]
fn a_quantity_in_words_is_compared_by_caution_as_its_value_is() {
    let percent = |number: u8| json!({ "value": number, "unit": "%" });
    let held = [("ann", percent(10), 0.9), ("ben", percent(8), 0.8)];
    for (words, expected) in [("12 %", 0.12), ("WACC: 12", 0.12), ("much more", 0.1)] {
        let rules = Policy {
            rounds_max: 1,
            conflict_handling: ConflictHandling::Ladder,
            ..policy()
        };
        let kind = ConflictType::EstimateDisagreement;
        let wacc = conflict("d-1", kind, "wacc", &held);
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(&said("m-open", 0), &open_debate(wacc, rules));
        let answer = concord_wire::payload::Answer {
            revised_position: Some(words.into()),
            ..fixtures::no_answer()
        };
        let revises = fixtures::answers(fixtures::given("ben", "m-1", "revision", answer));
        story.hears(&said("m-1", 1), &revises);
        story.hears(&said("m-2", 2), &keeps("ann", "m-2"));
        passes(&mut story, "compare", after(2));
        passes(&mut story, "person", after(2 + 6 * HOUR));
        let outcome = story.state().ladder.as_ref().unwrap();
        let stands = outcome.provisional.clone().unwrap().resolution.unwrap();
        let stands = stands.value.unwrap_or_default();
        let expected = canonical_estimate(&json!(expected), None);
        assert_eq!(canonical_estimate(&stands, None), expected, "{words}");
    }
}

#[test]
fn what_the_challenger_wants_meanwhile_stands_where_no_rule_compares() {
    let comparable = (json!(85), json!(95));
    let words = (json!("good"), json!("not good"));
    for (metric, held, wanted, expected) in [
        // A rule compares: the cautious one stands, whatever is wanted.
        ("price_target", &comparable, Some(json!(200)), json!(85)),
        // No rule: what is wanted stands, a position of the parties or another one.
        ("management", &words, None, json!("not good")),
        ("management", &words, Some(json!("Good")), json!("good")),
        (
            "management",
            &words,
            Some(json!("under watch")),
            json!("under watch"),
        ),
        (
            "management",
            &words,
            Some(json!({"watch": true})),
            json!({"watch": true}),
        ),
    ] {
        let (finance, strategy) = held.clone();
        let positions = [("finance", finance, 0.8), ("strategy", strategy, 0.7)];
        let mut terms = terms(None);
        terms
            .challenge
            .as_mut()
            .unwrap()
            .provisional_resolution
            .clone_from(&wanted);
        let request = OpenDebate {
            case_id: case_id(),
            conflict: conflict("d-1", ConflictType::Challenge, metric, &positions),
            policy: policy(),
            terms,
        };
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(
            &said("m-open", 0),
            &DebateInput::Open(Box::new(Opening::of(request))),
        );
        passes(&mut story, "acknowledge", after(15 * MINUTE));
        passes(&mut story, "compare", after(15 * MINUTE));
        passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
        let DebateEvent::FellBack(fell) = &story.last().event else {
            panic!()
        };
        let stands = fell.outcome.resolution.clone().unwrap();
        let value = stands.value.unwrap_or_else(|| json!(stands.position));
        assert_eq!(value, expected, "{metric} {wanted:?}");
    }
}
