//! What a finding may be.

use serde_json::json;

use super::*;

fn fault(finding: Value) -> Option<(ErrorCode, String)> {
    let finding: Finding = serde_json::from_value(finding).unwrap();
    finding
        .check()
        .err()
        .map(|fault| (fault.code, fault.pointer))
}

#[test]
fn a_summary_may_be_empty_where_something_else_is_said() {
    for (finding, is_refused) in [
        (json!({ "summary": "", "risk_score": 70 }), false),
        (
            json!({ "summary": " ", "clauses": [{ "type": "Audit Rights", "present": false }] }),
            false,
        ),
        (json!({ "summary": "", "evidence": ["Section 4"] }), true),
        (json!({ "summary": " " }), true),
    ] {
        let fault = fault(finding.clone()).map(|(_, pointer)| pointer);
        assert_eq!(
            fault,
            is_refused.then(|| "/payload/summary".to_owned()),
            "{finding}"
        );
    }
    let without = serde_json::value::to_raw_value(&json!({ "risk_score": 70 })).unwrap();
    let fault = Finding::read(&without).unwrap_err();
    assert_eq!(fault.pointer, "/payload/summary", "it may be misspelt");
}

#[test]
fn names_that_are_too_long_and_lists_of_too_many_are_refused_at_their_place() {
    let good = "é".repeat(NAME_BYTES_MAX / 2);
    let long = format!("{good}x");
    let fact = |subject: &str, attribute: &str, unit: &str| json!({"subject": subject, "attribute": attribute, "value": 1, "unit": unit});
    for (finding, pointer) in [
        (json!({"recommendation": long}), "/payload/recommendation"),
        (
            json!({"critical_findings": [{"topic": long, "severity": "low"}]}),
            "/payload/critical_findings/0/topic",
        ),
        (
            json!({"clauses": [{"type": good, "present": true}, {"type": long, "present": true}]}),
            "/payload/clauses/1/type",
        ),
        (
            json!({"affected_clauses": [long]}),
            "/payload/affected_clauses/0",
        ),
        (
            json!({"facts": [fact(&long, "a", "b")]}),
            "/payload/facts/0/subject",
        ),
        (
            json!({"facts": [fact("a", &long, "b")]}),
            "/payload/facts/0/attribute",
        ),
        (
            json!({"facts": [fact("a", "b", &long)]}),
            "/payload/facts/0/unit",
        ),
        (
            json!({"estimates": [{"metric": good, "value": 1, "unit": long}]}),
            "/payload/estimates/0/unit",
        ),
        (
            json!({"estimates": vec![json!({"metric": "m", "value": 1}); COMPARED_MAX + 1]}),
            "/payload/estimates",
        ),
        (
            json!({"affected_clauses": vec!["x"; COMPARED_MAX + 1]}),
            "/payload/affected_clauses",
        ),
        (
            json!({"facts": vec![fact("a", "b", "c"); COMPARED_MAX + 1]}),
            "/payload/facts",
        ),
    ] {
        let mut finding = finding;
        finding["summary"] = json!("Found.");
        assert_eq!(
            fault(finding),
            Some((ErrorCode::CapacityExceeded, pointer.to_owned()))
        );
    }
    let most = json!({"summary": "Found.", "recommendation": good, "affected_clauses": vec!["x"; COMPARED_MAX]});
    assert_eq!(fault(most), None);
}

#[test]
fn a_text_has_as_many_bytes_as_it_has_as_json() {
    for text in [
        "",
        "plain",
        "\"quoted\" \\",
        "\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}",
        "§ 7 – 東京 🦀",
    ] {
        assert_eq!(
            json_text_bytes(text) + 2,
            serde_json::to_string(text).unwrap().len(),
            "{text:?}"
        );
    }
}

#[test]
fn null_is_an_absent_field() {
    let found = json!({ "summary": "Found." });
    let mut nulls = found.clone();
    for field in [
        "risk_score",
        "critical_findings",
        "clauses",
        "affected_clauses",
        "facts",
    ] {
        nulls[field] = Value::Null;
    }
    for field in ["estimates", "evidence", "assumptions", "historical_context"] {
        nulls[field] = Value::Null;
    }
    let read = Finding::read(&serde_json::value::to_raw_value(&nulls).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), found);
}
