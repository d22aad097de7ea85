//! What a challenge disputes: what the finding says, under the name that it has in the result.

use std::cmp::Ordering;

use concord_events::{CaseEvent, DebateEvent};
use concord_wire::payload::{Challenge, Conflict, Resolution, Severity, Status};
use serde_json::{Value, json};

use super::gates::challenges;
use crate::aggregates::case::{CaseInput, CaseMachine};
use crate::aggregates::debate::DebateMachine;
use crate::fixtures::*;
use crate::machine::Machine;
use crate::rules::conflict_type::valued;
use crate::rules::conservative::compare_about;
use crate::rules::proved::holds;

/// A case in which finance has stated a risk of 86 and a margin of 25; what it says to a challenge of strategy.
fn challenged(change: impl FnOnce(&mut Challenge)) -> Result<Conflict, String> {
    challenged_of(json!({ "value": 25 }), change)
}

/// The same, where the margin is this one.
fn challenged_of(margin: Value, change: impl FnOnce(&mut Challenge)) -> Result<Conflict, String> {
    let mut estimate = margin;
    estimate["metric"] = json!("operating margin");
    challenged_finding(json!({ "risk_score": 86, "estimates": [estimate] }), change)
}

/// The same, where finance has found this.
fn challenged_finding(
    stated: Value,
    change: impl FnOnce(&mut Challenge),
) -> Result<Conflict, String> {
    let mut story = Story::<CaseMachine>::of("c-1");
    let request = open_request(&["finance", "strategy"], policy());
    story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
    story.hears(&said("m-1", 1), &finding("finance", "m-1", stated));
    let mut input = challenges("strategy", "m-c", "finance");
    let CaseInput::Challenge(received) = &mut input else {
        panic!("a challenge");
    };
    change(&mut received.challenge);
    let heard = story.hears(&said("m-c", 2), &input);
    match &story.last().event {
        CaseEvent::Challenged(challenged) => Ok(challenged.asked.conflict.clone()),
        _ => Err(heard),
    }
}

fn values(conflict: &Conflict) -> Vec<Value> {
    let values = conflict.positions.iter().map(|one| one.value.clone());
    values.map(Option::unwrap_or_default).collect()
}

#[test]
fn nobody_says_of_a_finding_what_it_does_not_say() {
    for (quoted, expected) in [
        (None, Ok(())),
        (Some(json!(86)), Ok(())),
        (Some(json!("86")), Ok(())),
        (Some(json!(10)), Err("refused: /payload/challenged_value")),
    ] {
        let heard = challenged(|challenge| challenge.challenged_value = quoted.clone());
        let heard = heard.map(|conflict| assert_eq!(values(&conflict), [json!(86.0), json!(70)]));
        assert_eq!(heard, expected.map_err(str::to_owned), "{quoted:?}");
    }
}

#[test]
fn what_is_disputed_has_the_name_that_it_has_in_the_result() {
    for (metric, subject) in [
        ("risk_score", "risk_score"),
        ("Risk Score", "risk_score"),
        ("risk-score", "risk_score"),
        ("Severity", "severity"),
        ("operating-margin", "operating margin"),
        ("Capital_Expenditure", "Capital_Expenditure"),
    ] {
        let conflict = challenged(|challenge| {
            challenge.metric = Some(metric.into());
            challenge.value = None;
        });
        assert_eq!(conflict.unwrap().subject, subject);
    }
}

#[test]
fn an_estimate_is_challenged_however_its_metric_is_spelled() {
    for metric in ["operating margin", "Operating_Margin", "operating/margin"] {
        let quoted = |value: Value| {
            challenged(|challenge| {
                challenge.metric = Some(metric.into());
                challenge.challenged_value = Some(value);
            })
        };
        assert_eq!(values(&quoted(json!(25)).unwrap())[0], json!(25.0));
        assert_eq!(
            quoted(json!(40)).unwrap_err(),
            "refused: /payload/challenged_value",
            "{metric}"
        );
    }
}

#[test]
fn an_estimate_is_challenged_by_what_it_is_of() {
    let of = |number: f64| json!({ "value": number, "unit": "%" });
    let estimate = |subject: &str, number: f64| json!({ "subject": subject, "metric": "operating_margin", "value": number, "unit": "%" });
    for (metric, quoted, expected) in [
        (
            "BETA/operating margin",
            Some(10),
            Ok(("beta/operating margin", of(10.0))),
        ),
        (
            "beta operating-margin",
            Some(10),
            Ok(("beta/operating margin", of(10.0))),
        ),
        (
            "beta operating margin",
            None,
            Ok(("beta/operating margin", of(10.0))),
        ),
        (
            "ACME/operating_margin",
            Some(25),
            Ok(("acme/operating margin", of(25.0))),
        ),
        (
            "operating margin",
            Some(25),
            Ok(("operating_margin", of(25.0))),
        ),
        ("BETA/operating margin", Some(25), Err("challenged_value")),
        ("GAMMA/operating margin", Some(25), Err("metric")),
        (
            "GAMMA/operating margin",
            None,
            Ok(("GAMMA/operating margin", Value::Null)),
        ),
        ("GAMMA/revenue", Some(25), Ok(("GAMMA/revenue", json!(25)))),
    ] {
        let estimates = [estimate("ACME", 25.0), estimate("BETA", 10.0)];
        let conflict = challenged_finding(json!({ "estimates": estimates }), |challenge| {
            challenge.metric = Some(metric.into());
            challenge.challenged_value = quoted.map(|quoted| json!(quoted));
            challenge.value = None;
        });
        let heard = conflict.map(|one| (one.subject.clone(), values(&one)[0].clone()));
        let expected = expected.map(|(subject, stated)| (subject.to_owned(), stated));
        let expected = expected.map_err(|field| format!("refused: /payload/{field}"));
        assert_eq!(heard, expected, "{metric} {quoted:?}");
    }
}

#[test]
fn an_estimate_that_is_challenged_keeps_its_unit() {
    let of = |value: f64, unit: &str| json!({ "value": value, "unit": unit });
    let million = of(12.0, "USD million");
    for (stated, quoted, own, expected) in [
        (of(28.0, "%"), json!(28), json!(25), Ok(of(25.0, "%"))),
        (of(28.0, "%"), json!("28 %"), json!(0.25), Ok(of(25.0, "%"))),
        (of(0.5, "%"), json!(0.5), json!(0.4), Ok(of(0.4, "%"))),
        (
            of(0.28, "fraction"),
            json!(0.28),
            of(25.0, "%"),
            Ok(of(25.0, "%")),
        ),
        (
            million.clone(),
            Value::Null,
            json!(10),
            Ok(of(10.0, "USD million")),
        ),
        (
            million.clone(),
            of(12e6, "USD"),
            of(11e6, "USD"),
            Ok(of(11e6, "USD")),
        ),
        (million, of(11e6, "USD"), json!(10), Err("challenged_value")),
        (of(28.0, "%"), json!(30), json!(25), Err("challenged_value")),
    ] {
        let conflict = challenged_of(stated.clone(), |challenge| {
            challenge.metric = Some("operating margin".into());
            challenge.challenged_value = Some(quoted).filter(|quoted| !quoted.is_null());
            challenge.value = Some(own);
        });
        let held = conflict.map(|conflict| values(&conflict));
        let expected = expected.map(|own| vec![stated, own]);
        let expected = expected.map_err(|field| format!("refused: /payload/{field}"));
        assert_eq!(held, expected);
    }
}

#[test]
fn a_challenger_states_what_the_result_can_have_and_says_nothing_else_beside_it() {
    for (value, position, expected) in [
        (json!(101), None, Err("value")),
        (json!(true), None, Err("value")),
        (json!(30), Some("Risk score: 60"), Err("value")),
        (json!(30), Some("Risk score: 30"), Ok(())),
        (Value::Null, Some("nobody knows"), Ok(())),
    ] {
        let heard = challenged(|challenge| {
            challenge.value = Some(value).filter(|value| !value.is_null());
            challenge.position = position.map(str::to_owned);
        });
        let expected = expected.map_err(|field| format!("refused: /payload/{field}"));
        assert_eq!(heard.map(|_| ()), expected, "{position:?}");
    }
}

/// The specification's example has the finding in words: of a margin the lowest value stands when nobody rules.
#[test]
fn a_finding_in_words_states_the_quantity_that_is_disputed() {
    let percent = |number: f64| json!({ "value": number, "unit": "%" });
    let none = Value::Null;
    let margin = "operating margin";
    for (metric, summary, disputed, expected) in [
        (
            margin,
            "25% operating margin",
            "25% operating margin",
            percent(25.0),
        ),
        (
            margin,
            "The margin holds.",
            "25% operating margin",
            percent(25.0),
        ),
        (
            margin,
            "Operating margin: 25 %",
            "Too optimistic",
            percent(25.0),
        ),
        (
            margin,
            "27% operating margin",
            "25% operating margin",
            none.clone(),
        ),
        (
            margin,
            "The margin holds.",
            "25 % more than before",
            none.clone(),
        ),
        ("colour", "25% colour", "25% colour", none.clone()),
        ("risk_score", "Risk score: 50", "Risk score: 50", none),
    ] {
        let conflict = challenged_finding(json!({ "summary": summary }), |challenge| {
            challenge.metric = Some(metric.into());
            challenge.disputed_finding = disputed.into();
            challenge.position = Some("30% operating margin".into());
            challenge.value = None;
        });
        let conflict = conflict.unwrap();
        assert_eq!(
            values(&conflict)[0],
            expected,
            "{metric}: {summary} / {disputed}"
        );
        if expected.is_null() {
            continue;
        }
        assert_eq!(values(&conflict)[1], percent(30.0));
        let [cautious, other] = [0, 1].map(|place| conflict.positions[place].value.as_ref());
        let order = compare_about(conflict.kind, &conflict.subject, &policy(), cautious, other);
        assert_eq!(order, Ordering::Greater);
    }
}

#[test]
fn a_position_in_words_has_the_value_that_it_states() {
    let in_words = |challenge: &mut Challenge| {
        challenge.value = None;
        challenge.position = Some("Risk score: 30".into());
    };
    let conflict = challenged(in_words).unwrap();
    assert_eq!(values(&conflict), [json!(86.0), json!(30.0)]);
    let doubted = challenged(|challenge| challenge.value = None).unwrap();
    assert_eq!(values(&doubted), [json!(86.0), Value::Null]);
}

/// A challenge of a margin of 25 % in words, as a value or in both; and what a person puts in its place.
#[test]
fn whoever_was_right_in_a_challenge_of_a_quantity_is_so_in_words_and_as_a_value() {
    let percent = json!({ "value": 25.0, "unit": "%" });
    let bare = json!({ "value": 25.0 });
    for (stated, position, value) in [
        (&percent, Some("30 %"), None),
        (&percent, Some("30% operating margin"), None),
        (&percent, None, Some(json!(30))),
        (&percent, Some("30 %"), Some(json!(30))),
        (&bare, Some("30 %"), None),
        (&bare, None, Some(json!(30))),
    ] {
        let conflict = challenged_of(stated.clone(), |challenge| {
            challenge.metric = Some("operating margin".into());
            challenge.position = position.map(str::to_owned);
            challenge.value.clone_from(&value);
        });
        let conflict = conflict.unwrap();
        let own = json!({ "value": 30.0, "unit": "%" });
        let is_own = values(&conflict)[1] == own;
        let is_bare = stated == &bare && position.is_none();
        assert_eq!(is_own, !is_bare, "{stated} {position:?}");
        let mut story = Story::<DebateMachine>::of(conflict.conflict_id.as_str());
        story.hears(
            &said("c-1-5-0", 0),
            &open_debate(conflict.clone(), policy()),
        );
        let DebateEvent::Opened(opened) = &story.last().event else {
            panic!("it is open");
        };
        for (words, value) in [
            ("30 %", None),
            ("30", None),
            ("30 %", Some(json!(30))),
            ("as guided", Some(json!("30 %"))),
        ] {
            let ruled = Resolution {
                position: words.into(),
                value,
                supporters: Vec::new(),
            };
            let ruled = valued(&conflict, &policy(), ruled);
            let (words, value) = (ruled.position.as_str(), ruled.value.as_ref());
            let held = conflict.positions.iter();
            let right: Vec<bool> = held.map(|held| holds(opened, held, words, value)).collect();
            let what = format!("{stated} {position:?} {words} {value:?}");
            assert_eq!(right, [false, true], "{what}");
        }
    }
}

/// The decision of a case in which finance stated what strategy challenges, after a ruling with this value.
fn ruled(stated: Value, metric: &str, value: Value) -> Story<CaseMachine> {
    let mut story = Story::<CaseMachine>::of("c-1");
    let mut policy = policy();
    let laws = ("Governing Law".into(), vec!["applicable law".into()]);
    policy.vocabulary.topics.extend([laws]);
    let request = open_request(&["finance", "strategy"], policy);
    story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
    story.hears(&said("m-1", 1), &finding("finance", "m-1", stated));
    let mut input = challenges("strategy", "m-c", "finance");
    let CaseInput::Challenge(received) = &mut input else {
        panic!("a challenge");
    };
    received.challenge.metric = Some(metric.into());
    received.challenge.value = None;
    assert_eq!(story.hears(&said("m-c", 2), &input), "challenged");
    let challenged = story.state().debated[0].clone();
    let own = json!({ "severity": "info" });
    story.hears(&said("m-2", 3), &finding("strategy", "m-2", own));
    story.hears(&happened("e-d", 4), &detected(vec![], vec![]));
    let ended = outcome(&challenged, Status::Ruling, Some(value));
    story.hears(&happened("e-1", 5), &CaseInput::Resolved(Box::new(ended)));
    story
}

#[test]
fn what_is_ruled_of_a_severity_and_of_a_clause_is_what_the_decision_says() {
    let stated =
        json!({ "severity": "critical", "clauses": [{ "type": "Term", "present": true }] });
    let story = ruled(stated.clone(), "Severity", json!("low"));
    let decision = story.state().decision.clone().unwrap();
    assert_eq!(decision.outcome.severity, Some(Severity::Low));
    let upheld = ruled(stated.clone(), "severity", json!("critical"));
    let upheld = upheld.state().decision.clone().unwrap();
    assert_eq!(upheld.outcome.severity, Some(Severity::Critical));
    let clause = ruled(stated, "term", json!(false));
    let clause = clause.state().decision.clone().unwrap();
    assert!(!clause.outcome.clauses["Term"].present);

    for (named, metric) in [
        ("Governing Law", "governing_law"),
        ("Governing Law", "applicable law"),
        ("applicable-law", "Governing Law"),
        ("Limitation_of_Liability", "limitation of liability"),
    ] {
        let stated = json!({ "clauses": [{ "type": named, "present": true }] });
        let clause = ruled(stated, metric, json!(false));
        let clauses = clause.state().decision.clone().unwrap().outcome.clauses;
        let present: Vec<bool> = clauses.values().map(|clause| clause.present).collect();
        assert_eq!(present, [false], "{named} as {metric}");
    }

    // A decision of an earlier version is decided again by the rules of then.
    let mut earlier = story.state().clone();
    let decided = earlier.decision.as_mut().unwrap();
    (decided.rules, decided.outcome.severity) = (0, Some(Severity::Critical));
    let found = CaseMachine::recount(&earlier, story.last());
    assert_eq!(found, Vec::<String>::new());
}
