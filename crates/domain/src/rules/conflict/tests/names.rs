//! Names that the policy's vocabulary takes for the same.

use std::collections::BTreeMap;

use concord_events::{MatchedBy, NameMatch};
use concord_wire::policy::NameKind;

use super::*;
use crate::rules::{conservative, names};

fn vocabulary() -> Policy {
    let vocabulary = json!({
        "topics": { "Governing Law": ["applicable law", "choice of law"], "ACME Corp": ["acme"] },
        "recommendations": { "reject": ["do not sign", "turn it down"], "sign": ["ready to sign"] },
        "metrics": { "operating margin": ["EBIT margin"] },
    });
    let caution = json!({ "EBIT margin": "highest" });
    let compared = json!({ "compared": true });
    let policy = json!({ "vocabulary": vocabulary, "estimates": compared, "ladder": { "caution": caution } });
    Policy::resolve(&policy, "").unwrap()
}

fn found(policy: &Policy, one: Value, other: Value) -> Conflicts {
    let findings = findings(&[("ann", 0.8, one), ("ben", 0.8, other)]);
    detect_within_limit(&case_id(), policy, &findings)
}

fn advice(words: &str) -> Value {
    json!({ "recommendation": words })
}

#[test]
fn agents_who_paraphrase_do_not_conflict_and_agents_who_differ_do() {
    for (one, other, expected) in [
        ("Do not sign.", "reject", 0),
        ("turn it down", "do_not_sign", 0),
        ("Reject", "reject", 0),
        ("ready to sign", "do not sign", 1),
        ("reject", "sign", 1),
        ("reject", "run away", 1),
    ] {
        let found = found(&vocabulary(), advice(one), advice(other));
        assert_eq!(found.debated.len(), expected, "{one} and {other}");
    }
    // Without a vocabulary every wording is another recommendation.
    assert_eq!(
        found(&policy(), advice("do not sign"), advice("reject"))
            .debated
            .len(),
        1
    );
}

#[test]
fn what_was_taken_for_what_is_said() {
    let one = json!({ "recommendation": "Turn it  down", "clauses": [{ "type": "Applicable Law", "present": true }] });
    let other = json!({ "recommendation": "sign", "affected_clauses": ["governing law", "Term"] });
    let found = found(&vocabulary(), one, other);
    let alias = |kind, name: &str, word: &str| NameMatch {
        kind,
        name: name.to_owned(),
        word: word.to_owned(),
        by: MatchedBy::Vocabulary,
        score: None,
    };
    let expected = [
        alias(NameKind::Topic, "applicable law", "Governing Law"),
        alias(NameKind::Recommendation, "turn it down", "reject"),
    ];
    assert_eq!(found.names, expected);
    assert_eq!(
        found.debated[0].topic,
        "Different recommendations: reject, sign"
    );
}

#[test]
fn statements_about_the_same_topic_in_other_words_are_compared() {
    let clause =
        |name: &str, present: bool| json!({ "clauses": [{ "type": name, "present": present }] });
    let policy = vocabulary();
    let law = found(
        &policy,
        clause("choice of law", true),
        clause("Applicable law", false),
    );
    assert_eq!(types(&law.debated), [Type::ClausePresenceDisagreement]);
    assert_eq!(law.debated[0].subject, "Governing Law");
    let fact = |subject: &str, value: u32| json!({ "facts": [{ "subject": subject, "attribute": "staff", "value": value }] });
    let staff = found(&policy, fact("Acme", 1), fact("acme corp", 2));
    assert_eq!(types(&staff.debated), [Type::FactualDisagreement]);
}

#[test]
fn metrics_in_other_words_are_compared_and_have_the_same_caution() {
    let margin = |metric: &str, value: f64| json!({ "estimates": [{ "metric": metric, "value": value, "unit": "%" }] });
    let policy = vocabulary();
    let found = found(
        &policy,
        margin("EBIT-Margin", 25.0),
        margin("operating margin", 30.0),
    );
    let conflict = &found.debated[0];
    assert_eq!(conflict.subject, "operating margin");
    let words = conservative::rule_in_words(conflict.kind, &conflict.subject, &policy, None);
    assert_eq!(
        words,
        "of operating margin the highest value is the cautious one"
    );
}

#[test]
fn a_debate_takes_an_alias_for_its_word() {
    let policy = vocabulary();
    let about = vote::About {
        kind: Type::RecommendationConflict,
        subject: "recommendation",
        policy: &policy,
    };
    let held = findings(&[("ann", 0.5, advice("sign")), ("ben", 0.5, advice("reject"))]);
    let conflict = &detect_within_limit(&case_id(), &policy, &held).debated[0];
    let mut positions = conflict.positions.clone();
    assert_eq!(vote::option_count(about, &positions), 2);
    // Ann gives in, in her own words.
    positions[0].position = "We should turn it down".into();
    positions[0].value = Some(json!("Do not sign"));
    assert_eq!(vote::option_count(about, &positions), 1);
    positions[0].value = Some(json!("ready to sign"));
    let tally = vote::tally(about, &positions, &BTreeMap::new());
    assert_eq!(tally.tie_broken_by.as_deref(), Some("caution"));
    let winner = tally
        .options
        .iter()
        .find(|option| Some(&option.position_id) == tally.winner.as_ref());
    assert_eq!(winner.unwrap().position, "reject");
}

#[test]
fn more_matches_than_there_is_room_for_are_counted() {
    let names: Vec<String> = (0..400)
        .map(|n| format!("alias {n} {}", "x".repeat(20)))
        .collect();
    let policy = json!({ "vocabulary": { "topics": { "w".repeat(200): names } } });
    let policy = Policy::resolve(&policy, "").unwrap();
    let found = found(&policy, json!({ "affected_clauses": names }), json!({}));
    assert_eq!(found.names.len() + found.names_omitted as usize, 400);
    assert!(found.names_omitted > 0);
}

/// A model that knows what three texts mean.
fn model(text: &str) -> Option<Vec<f32>> {
    Some(match text {
        "reject" => vec![1.0, 0.0, 0.0],
        "sign" => vec![0.0, 1.0, 0.0],
        "better walk away" => vec![0.8, 0.0, 0.6],
        "lunch" => vec![0.0, 0.0, 1.0],
        "operating margin" | "gross margin" => vec![1.0, 0.0, 0.0],
        _ => return None,
    })
}

fn asking(similarity_min: f64) -> Policy {
    let vocabulary = json!({
        "recommendations": { "reject": ["do not sign"], "sign": [] },
        "metrics": { "operating margin": [] },
        "similarity_min": similarity_min,
    });
    Policy::resolve(&json!({ "vocabulary": vocabulary }), "").unwrap()
}

fn scored(policy: &Policy, findings: &[ReceivedFinding]) -> Vec<NameMatch> {
    let unknown = names::unknown(&policy.vocabulary, findings);
    names::scored(&policy.vocabulary, &unknown, model)
}

#[test]
fn the_model_matches_what_the_vocabulary_does_not_know_above_the_policys_threshold() {
    for (similarity_min, words, expected) in [
        (0.7, "Better walk away.", Some(("reject", 0.8))),
        (0.8, "better_walk_away", Some(("reject", 0.8))),
        (0.81, "better walk away", None),
        (0.1, "do not sign", None),
        (0.1, "nobody knows", None),
    ] {
        let policy = asking(similarity_min);
        let findings = findings(&[("ann", 0.8, advice(words)), ("ben", 0.8, advice("reject"))]);
        let scored = scored(&policy, &findings);
        let found = scored
            .first()
            .map(|one| (one.word.as_str(), one.score.unwrap()));
        assert_eq!(found, expected, "{words} above {similarity_min}");
        assert_eq!(names::problem(&policy.vocabulary, &scored), None);
        let detected = detect_scored(&case_id(), &policy, &scored, &findings);
        let is_same = expected.is_some() || words == "do not sign";
        assert_eq!(detected.debated.is_empty(), is_same, "{words}");
        assert_eq!(
            names::scored_in(&detected.names),
            scored,
            "the score is kept"
        );
    }
}

#[test]
fn metrics_are_never_matched_by_their_meaning() {
    let estimate = json!({ "estimates": [{ "metric": "gross margin", "value": 1.0 }] });
    let findings = findings(&[("ann", 0.8, estimate)]);
    assert!(names::unknown(&asking(0.1).vocabulary, &findings).is_empty());
}

#[test]
fn a_match_that_the_policy_does_not_allow_is_found_when_it_is_read_again() {
    let policy = asking(0.7);
    let findings = findings(&[("ann", 0.8, advice("better walk away"))]);
    let scored = scored(&policy, &findings);
    let problem = |change: &dyn Fn(&mut NameMatch)| {
        let mut changed = scored.clone();
        change(&mut changed[0]);
        names::problem(&policy.vocabulary, &changed)
    };
    assert_eq!(problem(&|_| {}), None);
    assert!(problem(&|one| one.score = Some(0.69)).is_some());
    assert!(problem(&|one| one.score = None).is_some());
    assert!(problem(&|one| one.word = "run".into()).is_some());
    assert!(problem(&|one| one.name = "Do not sign".into()).is_some());
    assert!(
        names::problem(&vocabulary().vocabulary, &scored).is_some(),
        "no model was asked for"
    );
}
