//! Rules as data: another rule file gives another reviewer, and a mistake in it gives a clear
//! error.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use contract_review_panel::protocol::answer;
use contract_review_panel::reviewer::Reviewer;
use contract_review_panel::rules::Error;
use serde_json::json;

/// Rules of an invented reviewer, for two clause types and one fact.
const RULES: &str = r#"
base_confidence = 0.5

[assessment]
base_score = 20
report_from = "low"
recommend_from = { negotiate = 30, escalate = 50, reject = 90 }

[[clauses]]
clause = "Insurance"
points = { found = -5, missing = 15 }
severity = { found = "info", missing = "medium" }
any_of = ['\binsurance\b']

[[clauses]]
clause = "Liquidated Damages"
points = { found = 20 }
severity = { found = "low" }
severity_change = { to = "high", when = { missing = "Insurance" } }
any_of = ['\bpenalty (\S+ ){0,6}{number} dollars\b']
none_of = ['\bno penalty\b']

[[facts]]
fact = "agreement/initial_term"
pick = "largest"
unit = "months"
any_of = ['\bterm\b']
"#;

const CONTRACT: [&str; 3] = [
    "The lighthouse keeper owes a penalty of forty dollars for a dark night.",
    "There is no penalty of ten dollars for fog.",
    "The term is two years, and later terms are of six (6) months.",
];

fn load(rules: &str) -> Result<Reviewer, Error> {
    Reviewer::with_rules("risk_assessor.toml", rules)
}

#[test]
fn a_rule_file_decides_what_a_reviewer_finds() {
    let reviewer = load(RULES).unwrap();
    let task =
        json!({ "type": "contract_review", "input": { "title": "T", "sentences": CONTRACT } });
    let message = json!({ "message_type": "task_assignment", "payload": { "task": task } });
    let reply = answer(&reviewer, &message.to_string());
    let finding = &reply["payload"];
    assert_eq!(finding["risk_score"], 20 + 15 + 20);
    assert_eq!(finding["recommendation"], "escalate");
    assert_eq!(finding["affected_clauses"], json!(["Liquidated Damages"]));
    let points = finding["critical_findings"].as_array().unwrap();
    let points: Vec<_> = points
        .iter()
        .map(|point| (&point["topic"], &point["severity"]))
        .collect();
    let expected = [
        (&json!("Liquidated Damages"), &json!("high")),
        (&json!("Insurance"), &json!("medium")),
    ];
    assert_eq!(points, expected);
    let term = json!([{ "subject": "agreement", "attribute": "initial_term", "value": 24, "unit": "months" }]);
    assert_eq!(finding["facts"], term);
    assert_eq!(finding["evidence"], json!([CONTRACT[0], CONTRACT[2]]));
    assert_eq!(reply["metadata"]["confidence"], 0.65);
}

#[test]
fn a_mistake_in_a_rule_file_is_named_with_its_line() {
    for (right, wrong, part) in [
        (r"'\bterm\b'", r"'\bterm\b('", "unclosed group"),
        (
            "{number}",
            "{nummer}",
            "repetition quantifier expects a valid decimal",
        ),
        (r"['\binsurance\b']", "[]", "needs at least one pattern"),
        (
            "\"Insurance\"\npoints",
            "\"Assurance\"\npoints",
            "unknown variant `Assurance`",
        ),
        ("none_of", "non_of", "unknown field `non_of`"),
        (
            "\"low\" }",
            "\"mild\" }",
            "unknown variant `mild`, expected one of `info`",
        ),
        (
            "when = { missing",
            "when = { lacking",
            "unknown variant `lacking`",
        ),
        (
            "base_score = 20",
            "base_score = \"20\"",
            "invalid type: string",
        ),
        ("reject = 90", "refuse = 90", "unknown field `refuse`"),
        ("pick = ", "pick ", "expected"),
    ] {
        let (before, _) = RULES.split_once(right).unwrap();
        let line = before.matches('\n').count() + 1;
        let error = load(&RULES.replacen(right, wrong, 1))
            .unwrap_err()
            .to_string();
        let is_clear = error.contains("rules/risk_assessor.toml is not valid")
            && error.contains(&format!("line {line},"))
            && error.contains(part);
        assert!(is_clear, "{wrong}: {error}");
    }
}

#[test]
fn thresholds_that_do_not_rise_are_refused() {
    let error = load(&RULES.replace("reject = 90", "reject = 50")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules/risk_assessor.toml: recommend_from must rise from negotiate to escalate to reject"
    );
}

#[test]
fn the_rule_in_the_readme_is_valid() {
    let (_, rest) = include_str!("../README.md")
        .split_once("```toml\n")
        .unwrap();
    let (rule, _) = rest.split_once("```").unwrap();
    load(&format!("base_confidence = 0.5\nfacts = []\n{rule}")).unwrap();
}

#[test]
fn two_rules_for_one_clause_type_are_refused() {
    let error = load(&RULES.replace("\"Liquidated Damages\"", "\"Insurance\"")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules/risk_assessor.toml has two rules for \"Insurance\"; write their patterns into one"
    );
}
