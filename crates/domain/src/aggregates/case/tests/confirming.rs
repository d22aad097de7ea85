//! Participants confirm findings of others, and write estimates into shared memory.

use concord_events::Aggregate;
use concord_wire::payload::{Confirmation, Estimate};
use concord_wire::policy::{Confirmations, EstimatePolicy};

use super::*;
use crate::aggregates::case::outcome::decision_by;
use crate::aggregates::detection::DetectionInput;
use crate::effect;

pub(super) fn confirm(by: &str, id: &str, finding: &str, confidence: f64) -> CaseInput {
    CaseInput::Confirm(Box::new(ReceivedConfirmation {
        heard: Heard {
            agent_id: agent(by),
            message_id: message(id),
            digest: format!("{finding}/{confidence}"),
        },
        confidence,
        confirmation: Confirmation {
            confirms: message(finding),
            author: None,
            reasoning: Some("Read the same page.".into()),
        },
    }))
}

/// The same with the author of the finding.
fn confirm_of(author: &str, by: &str, id: &str, finding: &str) -> CaseInput {
    let CaseInput::Confirm(mut received) = confirm(by, id, finding, 0.6) else {
        unreachable!("it is a confirmation");
    };
    received.confirmation.author = Some(agent(author));
    CaseInput::Confirm(received)
}

fn note(who: &str, topic: &str, version: u64, margin: Option<f64>) -> CaseInput {
    CaseInput::Note(Box::new(Noted {
        agent: agent(who),
        topic: token(topic),
        version,
        estimate: margin.map(|value| Estimate {
            subject: None,
            metric: "operating margin".into(),
            value,
            unit: Some("%".into()),
        }),
    }))
}

/// A case of ann, ben and cyd, with what ann has found.
fn collecting(confirmations: Confirmations) -> CaseStory {
    let policy = Policy {
        confirmations,
        estimates: EstimatePolicy {
            compared: true,
            ..EstimatePolicy::default()
        },
        ..policy()
    };
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-1", 0), &open_case(&["ann", "ben", "cyd"], policy));
    hears(&mut story, "f-1", &finding("ann", "f-1", json!({})));
    story
}

fn hears(story: &mut CaseStory, id: &str, input: &CaseInput) -> String {
    story.hears(&said(id, 5), input)
}

/// A case with every event that is about this.
pub(crate) fn story() -> CaseStory {
    let mut story = collecting(Confirmations::Shown);
    hears(&mut story, "k-1", &confirm("ben", "k-1", "f-1", 0.6));
    hears(&mut story, "e-1", &note("ann", "margin", 1, Some(25.0)));
    story
}

#[test]
fn the_table_of_confirmations() {
    let mut story = collecting(Confirmations::Count);
    let wrong = "refused: /payload/confirms";
    for (by, id, of, expected) in [
        ("ann", "k-1", "f-1", wrong),
        ("ben", "k-2", "f-9", wrong),
        ("eve", "k-3", "f-1", "refused: /from_agent"),
        ("ben", "k-4", "f-1", "confirmed"),
        ("ben", "k-4", "f-1", "ignored: repetition"),
        ("ben", "k-5", "f-1", wrong),
        ("ben", "k-4", "f-9", "refused: /message_id"),
        // The id of an answer can be foreseen, so it is its sender's own.
        ("cyd", "k-4", "f-1", "confirmed"),
        ("cyd", "k-6", "f-1", wrong),
    ] {
        let context = said(id, 5).of_sender(agent(by));
        let heard = story.hears(&context, &confirm(by, id, of, 0.6));
        assert_eq!(heard, expected, "{by} {id}");
    }
    assert!(story.has_one_id_each());
    let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
    let sent: Vec<(&str, &str)> = sent
        .iter()
        .map(|one| (one.message_type.as_str(), one.to_agent.as_str()))
        .collect();
    assert_eq!(sent, [("notification", "ann"), ("response", "cyd")]);
    let confirmed = story.state().confirmed_findings();
    // 0.2 of doubt, and 0.7 of what is left twice.
    assert_eq!(
        (confirmed[0].confidence, confirmed[0].strengthened),
        (0.8, 0.902)
    );
    assert_eq!(story.state().compared_findings()[0].confidence, 0.902);
    assert_eq!(story.state().findings[0].confidence, 0.8);
    let due = elapsed(Aggregate::Case, &story.id, CASE, after(CASE_DUE));
    assert_eq!(
        hears(&mut story, "d-1", &CaseInput::Elapsed(due)),
        "decided"
    );
    let late = confirm("cyd", "k-7", "f-1", 0.6);
    assert_eq!(hears(&mut story, "k-7", &late), "refused: ");
}

/// The id of a finding can be foreseen, so another may find something under it, too.
#[test]
fn nobody_confirms_its_own_finding_by_the_id_of_anothers() {
    let mut story = collecting(Confirmations::Count);
    let said_by = |by: &str, id: &str| said(id, 5).of_sender(agent(by));
    let of_ben = finding("ben", "f-1", json!({ "risk_score": 90 }));
    assert_eq!(
        story.hears(&said_by("ben", "f-1"), &of_ben),
        "finding_recorded"
    );
    let wrong = "refused: /payload/confirms";
    for (input, by, expected) in [
        // Of the two, each can mean the other's only.
        (confirm("ben", "k-1", "f-1", 0.6), "ben", "confirmed"),
        (confirm_of("ben", "ben", "k-2", "f-1"), "ben", wrong),
        (confirm("cyd", "k-3", "f-1", 0.6), "cyd", wrong),
        (confirm_of("cyd", "cyd", "k-4", "f-1"), "cyd", wrong),
        (confirm_of("ann", "cyd", "k-5", "f-1"), "cyd", "confirmed"),
    ] {
        let CaseInput::Confirm(received) = &input else {
            unreachable!("all are confirmations");
        };
        let context = said_by(by, received.heard.message_id.as_str());
        assert_eq!(story.hears(&context, &input), expected, "{received:?}");
    }
    let confidences = |findings: &[ReceivedFinding]| -> Vec<(String, f64)> {
        let each = findings.iter();
        each.map(|one| (one.agent_id.to_string(), one.confidence))
            .collect()
    };
    let state = story.state();
    assert_eq!(
        confidences(&state.compared_findings()),
        [("ann".into(), 0.902), ("ben".into(), 0.8)]
    );
    let confirmed = state.confirmed_findings();
    assert_eq!((confirmed.len(), confirmed[0].by.len()), (1, 2));
    assert_eq!(confirmed[0].author, agent("ann"));
}

/// How sure an author is stays a secret until all findings are in.
#[test]
fn whoever_confirms_early_is_not_told_how_sure_the_author_is() {
    let mut story = collecting(Confirmations::Count);
    let answer = |story: &CaseStory| {
        let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
        let answer = sent
            .iter()
            .find(|one| one.message_type.as_str() == "response");
        answer.unwrap().payload::<serde_json::Value>().unwrap()["result"].clone()
    };
    hears(&mut story, "k-1", &confirm("ben", "k-1", "f-1", 0.6));
    let early = json!({ "finding": "f-1", "author": "ann" });
    assert_eq!(answer(&story), early);
    for (who, id) in [("ben", "f-2"), ("cyd", "f-3")] {
        let score = if who == "ben" { 90 } else { 10 };
        let found = finding(who, id, json!({ "risk_score": score }));
        hears(&mut story, id, &found);
    }
    hears(&mut story, "k-2", &confirm("cyd", "k-2", "f-1", 0.6));
    let later = json!({ "finding": "f-1", "author": "ann", "strengthened": 0.902 });
    assert_eq!(answer(&story), later);
}

/// The detector sees the case as it was when its findings closed. A debate that only the coordinator knows of would keep the case at its
/// gate for ever.
#[test]
fn who_confirms_after_the_findings_are_closed_changes_no_conflict() {
    let mut story = collecting(Confirmations::Count);
    for (who, id, score) in [("ben", "f-2", 90), ("cyd", "f-3", 10)] {
        hears(
            &mut story,
            id,
            &finding(who, id, json!({ "risk_score": score })),
        );
    }
    assert_eq!(story.state().phase, Phase::Detecting);
    let policy = &story.state().opened.as_ref().unwrap().policy;
    let findings = story.state().compared_findings();
    let detected = crate::rules::conflict::detect_within_limit(&case_id(), policy, &findings);
    let late = confirm("cyd", "k-1", "f-2", 0.6);
    assert_eq!(hears(&mut story, "k-1", &late), "confirmed");
    assert_eq!(story.state().confirmed_findings()[0].strengthened, 0.86);
    let due = elapsed(Aggregate::Case, &story.id, CASE, after(CASE_DUE));
    hears(&mut story, "d-1", &CaseInput::Elapsed(due));
    let decision = story.state().decision.as_ref().unwrap();
    assert!(!detected.debated.is_empty());
    assert_eq!(decision.conflicts, detected.debated);
}

#[test]
fn confirmations_change_nothing_where_the_policy_only_shows_them() {
    let story = story();
    assert_eq!(story.state().compared_findings()[0].confidence, 0.8);
    assert_eq!(story.state().confirmed_findings()[0].strengthened, 0.86);
}

/// A result without a conflict, and the debates that follow, are made of the same confidence as conflicts are.
#[test]
fn confirmations_that_count_weigh_in_the_risk_score_and_go_with_the_debates() {
    for (confirmations, expected, share) in [
        (Confirmations::Shown, 42.0, None),
        (Confirmations::Count, 40.0 + 4.0 * 0.8 / 1.7, Some(0.5)),
    ] {
        let mut story = collecting(confirmations);
        let score = |who, id, score| finding(who, id, json!({ "risk_score": score }));
        hears(&mut story, "f-2", &score("ben", "f-2", 40));
        hears(&mut story, "k-1", &confirm("cyd", "k-1", "f-2", 1.0));
        hears(&mut story, "f-3", &score("cyd", "f-3", 44));
        let state = story.state();
        let opened = state.opened.as_ref().unwrap();
        let by = |rules| {
            decision_by(rules, state, opened, "settled")
                .outcome
                .risk_score
        };
        assert_eq!((by(1), by(2)), (Some(42.0), Some(expected)));
        let detection = DetectionInput::of_case(&case_id(), state).unwrap();
        assert_eq!(detection.confirmed.get(&agent("ben")).copied(), share);
        let package = package(&case_id(), state).unwrap();
        assert_eq!(package.counted, detection.confirmed);
    }
}

#[test]
fn an_estimate_in_shared_memory_is_compared_like_one_of_the_finding() {
    let mut story = collecting(Confirmations::Shown);
    for (input, expected) in [
        (note("ann", "margin", 1, None), "ignored: already_done"),
        (note("ann", "margin", 2, Some(25.0)), "estimate_noted"),
        (note("ann", "margin", 1, Some(9.0)), "ignored: already_done"),
        (note("eve", "margin", 1, Some(9.0)), "ignored: already_done"),
        (note("ben", "margin", 1, Some(30.0)), "estimate_noted"),
        (note("cyd", "margin", 1, Some(31.0)), "estimate_noted"),
        (note("cyd", "margin", 2, None), "estimate_noted"),
    ] {
        assert_eq!(hears(&mut story, "e-1", &input), expected, "{input:?}");
    }
    let stated =
        json!({ "estimates": [{ "metric": "Operating Margin", "value": 29, "unit": "%" }] });
    hears(&mut story, "f-2", &finding("ben", "f-2", stated));
    hears(&mut story, "f-3", &finding("cyd", "f-3", json!({})));
    let findings = story.state().compared_findings();
    let estimates: Vec<Vec<f64>> = findings
        .iter()
        .map(|one| one.finding.estimates.iter().map(|one| one.value).collect())
        .collect();
    assert_eq!(estimates, [vec![25.0], vec![29.0], vec![]]);
    let policy = &story.state().opened.as_ref().unwrap().policy;
    let found = crate::rules::conflict::detect_within_limit(&case_id(), policy, &findings);
    assert_eq!(found.debated.len(), 1, "25 % and 29 % are a conflict");
    assert_eq!(found.debated[0].kind, ConflictType::EstimateDisagreement);
    let late = note("ann", "margin", 3, Some(29.0));
    assert_eq!(hears(&mut story, "e-9", &late), "ignored: already_done");
}

proptest! {
    /// However many confirm, the confidence never falls, and is at most 1; nobody who is unsure adds to it.
    #[test]
    fn confirmations_only_strengthen(
        confidence in 0.0..=1.0f64, by in prop::collection::vec(0.0..=1.0f64, 0..70),
    ) {
        let with = strengthened(confidence, by.iter().copied());
        prop_assert!(with >= confidence - 1e-6 && with <= 1.0, "{}", with);
        let more = strengthened(confidence, by.iter().copied().chain([0.0]));
        prop_assert_eq!(with, more);
    }
}

#[test]
fn whoever_confirms_too_late_is_told_how_the_case_has_ended() {
    let mut story = collecting(Confirmations::Shown);
    let cancel = CaseInput::Cancel {
        by: agent("olga"),
        why: "off".into(),
    };
    assert_eq!(story.hears(&said("o-1", 6), &cancel), "cancelled");
    let late = confirm("ben", "k-1", "f-1", 0.5);
    let decided = CaseMachine::decide(story.state(), &said("k-1", 7), &late);
    let Decision::Reject(fault) = decided else {
        panic!("{decided:?}");
    };
    assert!(fault.message.contains("is cancelled"), "{fault}");
}
