//! The merge: findings where they agree, resolutions where they did not, caution where the dispute
//! is open.

use concord_events::{MatchedBy, NameMatch};
use concord_wire::payload::{ClauseOutcome, Outcome, Severity};
use concord_wire::policy::NameKind;
use serde_json::Value;

use super::*;
use crate::aggregates::case::outcome::decision_by;

/// How a debate ended, with what was chosen.
type Ended = (Status, Option<Value>);

/// The outcome of a case of ann and ben who found this, in which these conflicts were debated with
/// this result (none for a debate that did not end in time), and those were deferred.
fn merged(
    found: [Value; 2],
    debated: Vec<(Conflict, Option<Ended>)>,
    deferred: Vec<Conflict>,
) -> Outcome {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    let [ann, ben] = found;
    // The surer of the two answers last: nothing may depend on the order.
    story.hears(
        &said("m-ben", 1),
        &CaseInput::Finding(Box::new(received("ben", "m-ben", 0.25, ben))),
    );
    story.hears(
        &said("m-ann", 2),
        &CaseInput::Finding(Box::new(received("ann", "m-ann", 0.75, ann))),
    );
    let conflicts: Vec<Conflict> = debated
        .iter()
        .map(|(conflict, _)| conflict.clone())
        .collect();
    story.hears(&happened("e-det", 3), &detected(conflicts, deferred));
    for (conflict, ended) in debated {
        if let Some((status, chosen)) = ended {
            let outcome = crate::fixtures::outcome(&conflict, status, chosen);
            story.hears(&happened("e-r", 4), &CaseInput::Resolved(Box::new(outcome)));
        }
    }
    if story.state().phase != Phase::Decided {
        assert_eq!(
            story.hears(
                &happened("e-due", CASE_DUE),
                &case_due(CASE, after(CASE_DUE))
            ),
            "decided"
        );
    }
    story.state().decision.clone().unwrap().outcome
}

fn clause() -> Conflict {
    let held = [("ann", json!(true), 0.8), ("ben", json!(false), 0.6)];
    conflict(
        "d-clause",
        ConflictType::ClausePresenceDisagreement,
        "Governing Law",
        &held,
    )
}

fn found() -> [Value; 2] {
    [
        json!({"risk_score": 30, "recommendation": "Sign.", "severity": "low",
               "clauses": [{"type": "Governing Law", "present": true}]}),
        json!({"risk_score": 80, "recommendation": "reject", "severity": "high",
               "clauses": [{"type": "governing law", "present": false}, {"type": "Term", "present": true}]}),
    ]
}

#[test]
fn who_cannot_tell_recommends_nothing_where_another_does() {
    for (ann, ben, expected) in [
        ("cannot tell", "Reject", "reject"),
        ("sign", "unknown", "sign"),
        ("cannot tell", "cannot tell", "cannot tell"),
    ] {
        let says = |words| json!({ "recommendation": words });
        let outcome = merged([says(ann), says(ben)], vec![], vec![]);
        assert_eq!(outcome.recommendation.as_deref(), Some(expected));
    }
}

#[test]
fn what_nobody_disputes_is_the_mean_and_the_common_word() {
    let agreed = [
        json!({"risk_score": 40, "recommendation": "Negotiate ", "clauses": [{"type": "Term", "present": true}]}),
        json!({"risk_score": 60, "recommendation": "negotiate", "affected_clauses": ["term"]}),
    ];
    let outcome = merged(agreed, vec![], vec![]);
    assert_eq!(outcome.risk_score, Some(45.0), "0.75 of 40 and 0.25 of 60");
    assert_eq!(outcome.recommendation.as_deref(), Some("negotiate"));
    assert_eq!(outcome.severity, None);
    let term = ClauseOutcome {
        present: true,
        basis: "undisputed".into(),
    };
    assert_eq!(outcome.clauses, [("Term".to_owned(), term)].into());
}

#[test]
fn the_mean_of_equal_scores_is_that_score() {
    // 86 * 0.8 / 0.8 is less than 86.
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann"], policy()));
    let found = received("ann", "m-ann", 0.8, json!({"risk_score": 86}));
    let found = CaseInput::Finding(Box::new(found));
    story.hears(&said("m-ann", 1), &found);
    story.hears(&happened("e-det", 2), &detected(vec![], vec![]));
    let decision = story.state().decision.clone().unwrap();
    assert_eq!(decision.outcome.risk_score, Some(86.0));
    // By the rules of before it stays what it was when it is decided again.
    let record = story.last().clone();
    let mut earlier = story.state().clone();
    let decided = earlier.decision.as_mut().unwrap();
    decided.rules = 0;
    decided.outcome.risk_score = Some(86.0 * 0.8 / 0.8);
    assert!(decided.outcome.risk_score < Some(86.0));
    assert_eq!(
        CaseMachine::recount(&earlier, &record),
        Vec::<String>::new()
    );
}

#[test]
fn nobody_said_anything() {
    assert_eq!(
        merged([json!({}), json!({"recommendation": " "})], vec![], vec![]),
        Outcome::default()
    );
}

#[test]
fn an_empty_recommendation_is_none() {
    let outcome = merged(
        [
            json!({"recommendation": ""}),
            json!({"recommendation": "sign"}),
        ],
        vec![],
        vec![],
    );
    assert_eq!(outcome.recommendation.as_deref(), Some("sign"));
}

/// The result of a case whose debates about score, recommendation and clause have chosen these;
/// `None` for no outcome.
fn chosen(status: Option<Status>, values: [Value; 3]) -> Outcome {
    let of = |value: &Value| {
        Some((
            status?,
            Some(value.clone()).filter(|value| !value.is_null()),
        ))
    };
    let [score, advised, presence] = &values;
    let debated = vec![
        (risk(), of(score)),
        (advice(), of(advised)),
        (clause(), of(presence)),
    ];
    merged(found(), debated, vec![])
}

#[test]
fn a_resolution_is_used_as_it_is_meant_and_the_most_cautious_position_where_there_is_none() {
    let voted = Some(Status::Vote);
    let nothing = || [Value::Null, Value::Null, Value::Null];
    let usual = [json!(45), json!("sign"), json!(true)];
    let as_texts = [json!("45.5"), json!(" SIGN."), json!("yes")];
    let unusable = [json!("much"), json!(7), json!("Not found")];
    let impossible = [json!(4000), json!(""), json!("who knows")];
    for (status, values, score, recommendation, present, basis) in [
        (voted, usual, 45.0, "sign", true, "vote"),
        (voted, as_texts, 45.5, "sign", true, "vote"),
        (voted, unusable, 80.0, "reject", false, "vote"),
        (voted, impossible, 80.0, "reject", false, "cautious"),
        (
            Some(Status::Unresolved),
            nothing(),
            80.0,
            "reject",
            false,
            "unresolved",
        ),
        (None, nothing(), 80.0, "reject", false, "unresolved"),
    ] {
        let outcome = chosen(status, values);
        assert_eq!(outcome.risk_score, Some(score));
        assert_eq!(outcome.recommendation.as_deref(), Some(recommendation));
        assert_eq!(outcome.severity, Some(Severity::High), "the highest stated");
        let clause = |present, basis: &str| ClauseOutcome {
            present,
            basis: basis.into(),
        };
        assert_eq!(outcome.clauses["Governing Law"], clause(present, basis));
        assert_eq!(outcome.clauses["Term"], clause(true, "undisputed"));
        assert_eq!(
            outcome.clauses.len(),
            2,
            "one entry a clause, however it is spelled: {:?}",
            outcome.clauses
        );
    }
}

#[test]
fn what_was_settled_by_talk_says_so() {
    let outcome = merged(
        found(),
        vec![(clause(), Some((Status::Discussion, Some(json!(true)))))],
        vec![],
    );
    assert_eq!(
        outcome.clauses["Governing Law"],
        ClauseOutcome {
            present: true,
            basis: "discussion".into()
        }
    );
}

#[test]
fn what_was_deferred_ends_with_the_most_cautious_position() {
    let outcome = merged(found(), vec![], vec![risk(), advice(), clause()]);
    assert_eq!(outcome.risk_score, Some(80.0));
    assert_eq!(outcome.recommendation.as_deref(), Some("reject"));
    assert_eq!(
        outcome.clauses["Governing Law"],
        ClauseOutcome {
            present: false,
            basis: "deferred".into()
        }
    );
}

/// As where a vote is tied and where nobody rules: of equally cautious positions the one with the lower id stands, whoever holds it.
#[test]
fn of_equally_cautious_recommendations_the_one_with_the_lower_id_stands() {
    for (ann, ben) in [("amend", "defer to counsel"), ("defer to counsel", "amend")] {
        let says = |words: &str| json!({ "recommendation": words });
        let held = [("ann", json!(ann), 0.8), ("ben", json!(ben), 0.6)];
        let kind = ConflictType::RecommendationConflict;
        let disputed = || conflict("d-1", kind, "recommendation", &held);
        for (debated, deferred) in [
            (vec![], vec![disputed()]),
            (vec![(disputed(), None)], vec![]),
            (vec![(disputed(), Some((Status::Unresolved, None)))], vec![]),
        ] {
            let outcome = merged([says(ann), says(ben)], debated, deferred);
            assert_eq!(outcome.recommendation.as_deref(), Some("amend"), "{ann}");
        }
        // By the rules of before it stays what it was when it is decided again.
        let mut story = CaseStory::of("c-1");
        story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
        for (from, id, words) in [("ann", "m-ann", ann), ("ben", "m-ben", ben)] {
            story.hears(&said(id, 1), &finding(from, id, says(words)));
        }
        story.hears(&happened("e-det", 3), &detected(vec![], vec![disputed()]));
        let opened = story.state().opened.clone().unwrap();
        let before = decision_by(1, story.state(), &opened, "settled").outcome;
        assert_eq!(before.recommendation.as_deref(), Some(ben));
    }
}

#[test]
fn where_nobody_looked_for_conflicts_in_time_the_dispute_is_open_all_the_same() {
    for closed in [false, true] {
        let mut story = CaseStory::of("c-1");
        let participants: &[&str] = if closed {
            &["ann", "ben"]
        } else {
            &["ann", "ben", "cyd"]
        };
        story.hears(&said("m-open", 0), &open_case(participants, policy()));
        for (name, found) in ["ann", "ben"].into_iter().zip(found()) {
            let id = format!("m-{name}");
            story.hears(&said(&id, 1), &finding(name, &id, found));
        }
        assert_eq!(
            story.hears(
                &happened("e-due", CASE_DUE),
                &case_due(CASE, after(CASE_DUE))
            ),
            "decided"
        );
        let decision = story.state().decision.clone().unwrap();
        assert_eq!(decision.reason, "timeout");
        assert_eq!(decision.outcome.risk_score, Some(80.0));
        assert_eq!(decision.outcome.recommendation.as_deref(), Some("reject"));
        assert_eq!(decision.conflicts.len(), 3, "{:?}", decision.conflicts);
        assert_eq!(decision.outcomes, []);
    }
}

#[test]
fn the_decision_names_findings_by_agent_and_deferred_conflicts() {
    let mut story = story(Phase::Detecting);
    let last = happened("e-det", 30);
    assert_eq!(
        story.hears(&last, &detected(vec![], vec![clause()])),
        "decided"
    );
    let decision = story.state().decision.clone().unwrap();
    let named: Vec<&str> = decision
        .findings
        .iter()
        .map(|finding| finding.message_id.as_str())
        .collect();
    assert_eq!(named, ["m-ann", "m-ben"]);
    assert_eq!(decision.deferred, [clause()]);
    assert_eq!(decision.policy_digest, policy().digest());
}

#[test]
fn aliases_of_the_policy_are_one_clause_and_one_recommendation() {
    let policy = json!({ "vocabulary": {
        "topics": { "Governing Law": ["applicable law"] },
        "recommendations": { "reject": ["do not sign"] },
    } });
    let policy = Policy::resolve(&policy, "").unwrap();
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy));
    for (agent, clause, advice) in [
        ("ann", "Applicable Law", "Do not sign"),
        ("ben", "governing law", "reject"),
    ] {
        let found = json!({ "recommendation": advice, "affected_clauses": [clause] });
        let id = format!("m-{agent}");
        let received = received(agent, &id, 0.5, found);
        story.hears(&said(&id, 1), &CaseInput::Finding(Box::new(received)));
    }
    story.hears(&happened("e-det", 3), &detected(vec![], vec![]));
    let outcome = story.state().decision.clone().unwrap().outcome;
    assert_eq!(outcome.recommendation.as_deref(), Some("reject"));
    let names: Vec<&String> = outcome.clauses.keys().collect();
    assert_eq!(names, ["Governing Law"]);
}

#[test]
fn what_the_sentence_model_took_for_a_clause_is_that_clause_in_the_decision() {
    let policy =
        json!({ "vocabulary": { "topics": { "Cap On Liability": [] }, "similarity_min": 0.7 } });
    let policy = Policy::resolve(&policy, "").unwrap();
    let name = NameMatch {
        kind: NameKind::Topic,
        name: "upper limit of liability".into(),
        word: "Cap On Liability".into(),
        by: MatchedBy::Model,
        score: Some(0.74),
    };
    // Without a conflict the case is decided by the detection itself; with one, later.
    for debated in [vec![], vec![clause()]] {
        let mut story = CaseStory::of("c-1");
        story.hears(
            &said("m-open", 0),
            &open_case(&["ann", "ben"], policy.clone()),
        );
        for (agent, clause) in [
            ("ann", "Upper limit of liability"),
            ("ben", "cap on liability"),
        ] {
            let id = format!("m-{agent}");
            let received = received(agent, &id, 0.5, json!({ "affected_clauses": [clause] }));
            story.hears(&said(&id, 1), &CaseInput::Finding(Box::new(received)));
        }
        let mut found = detected(debated, vec![]);
        if let CaseInput::Detected(found) = &mut found {
            found.names = vec![name.clone()];
        }
        story.hears(&happened("e-det", 3), &found);
        if story.state().phase != Phase::Decided {
            story.hears(
                &happened("e-due", CASE_DUE),
                &case_due(CASE, after(CASE_DUE)),
            );
        }
        let outcome = story.state().decision.clone().unwrap().outcome;
        let names: Vec<&String> = outcome.clauses.keys().collect();
        assert_eq!(names, ["Cap On Liability"]);
        assert_eq!(story.state().scored, std::slice::from_ref(&name), "once");
    }
}
