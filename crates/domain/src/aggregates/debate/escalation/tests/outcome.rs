//! What proved right, and what changed between two briefs.

use concord_events::DebateEvent;
use concord_wire::payload::track_record::{Context as Judged, Source};
use concord_wire::payload::{Circumstances, ConflictType, OutcomeReport, Position};
use serde_json::{Value, json};

use super::*;
use crate::aggregates::answerable;
use crate::aggregates::debate::state::position_changes;
use crate::aggregates::debate::{OutcomeMessage, verdicts};
use crate::fixtures::round_due;

/// The role of a sender, and whether it has opened the case.
type Standing = (&'static [Role], bool);

const OPENER: Standing = (&[Role::Opener], true);
const REVIEWER: Standing = (&[Role::Reviewer], false);
const SOURCE: Standing = (&[Role::OutcomeSource], false);
/// Whoever may open cases, of a case that somebody else has opened; and one who rules.
const OTHERS: Standing = (&[Role::Opener, Role::Arbiter, Role::Auditor], false);

fn tells(from: &str, id: &str, standing: Standing, more: serde_json::Value) -> DebateInput {
    let mut whole = json!({ "debate_id": "d-1", "explanation": "the annual report" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let report: OutcomeReport = serde_json::from_value(whole).unwrap();
    let (case_id, digest) = (Some(case_id()), format!("{report:?}"));
    let told = OutcomeMessage {
        agent_id: agent(from),
        message_id: message(id),
        digest,
        case_id,
        report,
        sender: authority(from, standing.0),
        opened_case: standing.1,
    };
    DebateInput::Outcome(Box::new(told))
}

/// Whoever opened the case says whose position proved right.
pub(super) fn tells_right(from: &str, held_by: &str) -> DebateInput {
    tells(
        from,
        &format!("o-{held_by}"),
        OPENER,
        json!({ "held_by": held_by }),
    )
}

/// A debate that a person has settled, under a policy that names a source of outcomes.
fn settled() -> Story<DebateMachine> {
    let mut rules_of_case = policy();
    rules_of_case.ladder.outcome_sources = vec![agent("archive")];
    let circumstances = Circumstances {
        regime: Some("recession".into()),
        context: Judged {
            sector: Some("software".into()),
            ..Judged::default()
        },
    };
    let terms = DebateTerms {
        circumstances,
        ..terms(None)
    };
    let mut story = challenged_with(rules_of_case, terms, PriorKnowledge::default());
    passes(&mut story, "acknowledge", after(15 * MINUTE));
    passes(&mut story, "compare", after(15 * MINUTE));
    assert_eq!(
        story.hears(&happened("q-1", 16 * MINUTE), &assigned_to("eve")),
        "assigned"
    );
    let digest = ladder(&story).digest.clone().unwrap();
    let early = tells("olga", "o-0", OPENER, json!({ "held_by": "finance" }));
    assert_eq!(
        story.hears(&said("o-0", 17 * MINUTE), &early),
        "refused: ",
        "not resolved yet"
    );
    assert_eq!(
        story.hears(
            &said("r-1", 18 * MINUTE),
            &rules("eve", "r-1", &digest, "p2")
        ),
        "resolved"
    );
    story
}

#[test]
fn only_somebody_without_a_part_in_it_says_what_proved_right_and_once() {
    let right = || json!({ "held_by": "finance" });
    for (from, standing, more, expected) in [
        ("finance", OPENER, right(), "refused: /from_agent"),
        ("strategy", SOURCE, right(), "refused: /from_agent"),
        ("nosy", OTHERS, right(), "refused: /from_agent"),
        // She ruled on it.
        ("eve", REVIEWER, right(), "refused: /from_agent"),
        ("eve", OPENER, right(), "refused: /from_agent"),
        // The policy names one source, and this is another.
        ("nosy", SOURCE, right(), "refused: /from_agent"),
        // It opened the case, and no operator has registered it.
        ("coder", (&[], true), right(), "refused: /from_agent"),
        (
            "olga",
            OPENER,
            json!({ "held_by": "nosy" }),
            "refused: /payload/held_by",
        ),
        (
            "olga",
            OPENER,
            json!({ "held_by": "finance", "at": after(HOUR) }),
            "refused: /payload/at",
        ),
        (
            "olga",
            OPENER,
            json!({ "held_by": "finance", "at": "1970-01-01T00:00:00Z" }),
            "refused: /payload/at",
        ),
        ("olga", OPENER, right(), "outcome_known"),
        ("gail", REVIEWER, right(), "outcome_known"),
        ("archive", SOURCE, right(), "outcome_known"),
    ] {
        let mut story = settled();
        let told = tells(from, "o-1", standing, more);
        assert_eq!(
            story.hears(&said("o-1", 20 * MINUTE), &told),
            expected,
            "{from}"
        );
        if expected == "outcome_known" {
            assert_eq!(
                story.hears(&said("o-1", 21 * MINUTE), &told),
                "ignored: repetition"
            );
            let other = tells(from, "o-1", standing, json!({ "position": "another" }));
            assert_eq!(
                story.hears(&said("o-1", 21 * MINUTE), &other),
                "refused: /message_id"
            );
            let second = tells("olga", "o-2", OPENER, json!({ "position": "another" }));
            assert_eq!(story.hears(&said("o-2", 22 * MINUTE), &second), "refused: ");
        }
    }
    let mut story = settled();
    let mut elsewhere = tells("olga", "o-1", OPENER, right());
    let DebateInput::Outcome(told) = &mut elsewhere else {
        panic!()
    };
    told.case_id = Some(concord_wire::CaseId::new("c-other").unwrap());
    assert_eq!(
        story.hears(&said("o-1", 20 * MINUTE), &elsewhere),
        "refused: /case_id"
    );
}

/// A policy can want two reviewers, and both have decided then.
#[test]
fn neither_of_two_reviewers_says_that_their_override_proved_right() {
    let mut story = challenged();
    for name in ["acknowledge", "compare"] {
        passes(&mut story, name, after(15 * MINUTE));
    }
    passes(&mut story, "person", after(6 * HOUR + 15 * MINUTE));
    let DebateInput::Command(mut input) = super::reviews(ReviewAction::Override) else {
        panic!("it is reviewed");
    };
    if let Command::Reviewed { by, first, .. } = &mut *input {
        (*by, *first) = (agent("greta"), Some(agent("gail")));
    }
    let overridden = story.hears(&happened("g-1", 7 * HOUR), &DebateInput::Command(input));
    assert_eq!(overridden, "resolved");
    let mine = json!({ "position": "28", "value": 28 });
    for (from, expected) in [
        ("greta", "refused: /from_agent"),
        ("gail", "refused: /from_agent"),
        ("hal", "outcome_known"),
    ] {
        let told = tells(from, &format!("o-{from}"), REVIEWER, mine.clone());
        assert_eq!(
            story.hears(&said(&format!("o-{from}"), 8 * HOUR), &told),
            expected,
            "{from}"
        );
    }
}

#[test]
fn what_proved_right_is_weighed_for_every_party_in_its_circumstances() {
    let recession = || Some("recession".to_owned());
    for (more, correct, regime) in [
        (json!({ "held_by": "finance" }), [true, false], recession()),
        (
            json!({ "position": "in words", "value": 30 }),
            [false, true],
            recession(),
        ),
        (
            json!({ "position": "neither", "value": 27 }),
            [false, false],
            recession(),
        ),
        (
            json!({ "held_by": "strategy", "circumstances": { "regime": "boom" } }),
            [false, true],
            Some("boom".into()),
        ),
    ] {
        let mut story = settled();
        assert_eq!(
            story.hears(
                &said("o-1", 20 * MINUTE),
                &tells("olga", "o-1", OPENER, more.clone())
            ),
            "outcome_known"
        );
        let DebateEvent::OutcomeKnown(known) = &story.last().event else {
            panic!()
        };
        let opened = story.state().opened.clone().unwrap();
        let verdicts = verdicts::of_outcome(&opened, known);
        let seen: Vec<bool> = verdicts
            .iter()
            .map(|(_, observe)| observe.observation.correct)
            .collect();
        assert_eq!(seen, correct, "{more}");
        let (who, observe) = &verdicts[0];
        let observation = &observe.observation;
        assert_eq!(
            (who, &observe.by, observation.source),
            (&agent("finance"), &agent("olga"), Source::Outcome)
        );
        assert_eq!(
            (&observation.regime, observation.overridden),
            (&regime, false)
        );
        assert_eq!(
            observation.context.sector.as_deref(),
            Some("software"),
            "what the outcome leaves open, the case says"
        );
        assert_eq!(
            observation.context.metric.as_deref(),
            Some(opened.conflict.subject.as_str())
        );
    }
}

/// Nobody knows whether words that state no value were right, so whoever has ruled so is not told that they were wrong.
#[test]
fn a_ruling_whose_words_state_no_value_does_not_prove_wrong() {
    for (words, value, is_wrong) in [
        ("somewhat lower", None, false),
        ("28", Some(json!(28)), true),
        ("25", Some(json!(25)), false),
    ] {
        let (mut story, digest) = with_eve();
        let mut input = rules("eve", "r-1", &digest, "p1");
        if let DebateInput::Message(said) = &mut input
            && let MessageBody::Ruling(ruling) = &mut said.body
        {
            (ruling.position_id, ruling.position) = (None, Some(words.to_owned()));
            ruling.value = value;
        }
        let ruled = story.hears(&said("r-1", 18 * MINUTE), &input);
        assert_eq!(ruled, "resolved", "{words}");
        let debate = story.state().clone();
        let right = json!({ "position": "25", "value": 25 });
        let told = tells("olga", "o-1", OPENER, right);
        let heard = story.hears(&said("o-1", 20 * MINUTE), &told);
        assert_eq!(heard, "outcome_known");
        let DebateEvent::OutcomeKnown(known) = &story.last().event else {
            panic!()
        };
        let eve = agent("eve");
        let expected: Vec<&AgentId> = is_wrong.then_some(&eve).into_iter().collect();
        assert_eq!(answerable::of_outcome(&debate, known), expected, "{words}");
    }
}

#[test]
fn both_of_two_reviewers_are_told_that_something_else_proved_right() {
    let mut story = settled();
    let told = tells("olga", "o-1", OPENER, json!({ "held_by": "finance" }));
    assert_eq!(
        story.hears(&said("o-1", 20 * MINUTE), &told),
        "outcome_known"
    );
    let DebateEvent::OutcomeKnown(known) = &story.last().event else {
        panic!()
    };
    let mut debate = story.state().clone();
    assert_eq!(answerable::of_outcome(&debate, known), [&agent("eve")]);
    let outcome = debate.outcome.as_mut().unwrap();
    outcome.ruled_by.as_mut().unwrap().first_reviewer = Some(agent("gail"));
    let both = [agent("gail"), agent("eve")];
    assert_eq!(
        answerable::of_outcome(&debate, known),
        both.iter().collect::<Vec<_>>()
    );
}

#[test]
fn a_change_between_two_briefs_is_one_line() {
    let before = Position {
        agent_id: agent("ann"),
        position: "20 %".into(),
        value: Some(json!(20)),
        confidence: 0.5,
        evidence: vec!["page 3".into(), "page 4".into()],
        reasoning: None,
        evidence_omitted: 0,
    };
    let changes = |after: &Position| position_changes(&before, after);
    assert!(changes(&before).is_empty());
    let moved = Position {
        position: "25 %".into(),
        value: Some(json!(25)),
        ..before.clone()
    };
    assert_eq!(
        changes(&moved),
        ["ann: position \"25 %\" (25) instead of \"20 %\" (20)"]
    );
    let long = format!("a\nb {}", "x".repeat(500));
    let more = Position {
        evidence: vec![long, "page 3".into()],
        ..before.clone()
    };
    let lines = changes(&more);
    assert!(
        lines[0].starts_with("ann: new evidence \"a b xxx") && lines[0].len() < 200,
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        ["ann: 1 earlier items of evidence are no longer shown"]
    );
}

/// The parties of a debate over two values that are right, once somebody has said what proved right; or what is refused.
fn right(kind: ConflictType, held: [Value; 2], told: Value) -> Result<Vec<&'static str>, String> {
    let names = ["ann", "ben"];
    let [first, second] = held;
    let held = [("ann", first, 0.5), ("ben", second, 0.5)];
    let mut rules_of_case = policy();
    rules_of_case.rounds_max = 1;
    let mut story = Story::<DebateMachine>::of("d-1");
    let asked = open_debate(conflict("d-1", kind, "risk_score", &held), rules_of_case);
    assert_eq!(story.hears(&said("c-1-5-0", 0), &asked), "opened");
    let due = round_due(&story.id, 1, after(10_000));
    assert_eq!(story.hears(&happened("e-due", 10_000), &due), "resolved");
    let told = tells("olga", "o-1", OPENER, told);
    let heard = story.hears(&said("o-1", HOUR), &told);
    let DebateEvent::OutcomeKnown(known) = &story.last().event else {
        return Err(heard);
    };
    let right = known.parties.iter().filter(|party| party.correct);
    let is_right = |name: &&str| right.clone().any(|party| party.agent_id.as_str() == *name);
    Ok(names.into_iter().filter(is_right).collect())
}

#[test]
fn what_proved_right_is_read_as_a_position_is_and_must_be_comparable_with_one() {
    use ConflictType::{
        EstimateDisagreement as Estimate, RecommendationConflict as Advice,
        RiskScoreDisagreement as Score,
    };
    let held = |kind| match kind {
        Score => [json!(20), json!(90)],
        Estimate => [json!("25 %"), json!("35 %")],
        _ => [json!("accept"), json!("reject")],
    };
    let words = |position: &str| json!({ "position": position });
    let valued = |value: Value| json!({ "position": "what it was", "value": value });
    let refused = |pointer: &str| Err(format!("refused: /payload/{pointer}"));
    for (kind, told, expected) in [
        (Score, words("Risk score: 90"), Ok(vec!["ben"])),
        (Score, words("20"), Ok(vec!["ann"])),
        (Score, words("high"), refused("position")),
        (Score, valued(json!(50)), Ok(vec![])),
        (Score, valued(json!(101)), refused("value")),
        (Estimate, words("25 %"), Ok(vec!["ann"])),
        (Estimate, words("a margin of 25 %"), refused("position")),
        (Estimate, valued(json!("50 %")), Ok(vec![])),
        (Estimate, valued(json!("35 %")), Ok(vec!["ben"])),
        // Without a unit it is in that of what was held.
        (Estimate, valued(json!(25)), Ok(vec!["ann"])),
        (Estimate, words("35"), Ok(vec!["ben"])),
        (Estimate, valued(json!("25 days")), refused("value")),
        (Advice, words("Reject"), Ok(vec!["ben"])),
        (Advice, words("neither"), Ok(vec![])),
        (Advice, valued(json!({ "a": 1 })), refused("value")),
    ] {
        let what = format!("{kind:?}: {told}");
        assert_eq!(right(kind, held(kind), told), expected, "{what}");
    }
}
