//! What a finding says about one subject, for a person who reads it beside what others say.

use concord_wire::payload::Finding;

use super::{estimate, factual};
use crate::rules::conservative::words;

/// The statements of a finding about the subject of a conflict, or about the metric of a challenge: one line each.
pub(crate) fn lines(finding: &Finding, subject: &str) -> Vec<String> {
    let asked = words(subject);
    let is_it = |name: &str| words(name) == asked;
    let critical = finding
        .critical_findings
        .iter()
        .filter(|critical| is_it(&critical.topic))
        .map(|critical| {
            let severity = critical.severity.as_str();
            joined(&critical.topic, severity, &critical.detail)
        });
    let clauses = finding
        .clauses
        .iter()
        .filter(|clause| is_it(&clause.kind))
        .map(|clause| {
            let found = if clause.present {
                "present"
            } else {
                "not found"
            };
            joined(&clause.kind, found, clause.text.as_deref().unwrap_or(""))
        });
    let relied = finding
        .affected_clauses
        .iter()
        .filter(|name| is_it(name))
        .map(|name| joined(name, "relied on", ""));
    let facts = finding
        .facts
        .iter()
        .filter(|fact| factual::subject_of(fact) == subject || is_it(&fact.attribute))
        .map(|fact| {
            let name = format!("{} of {}", fact.attribute, fact.subject);
            joined(&name, &factual::text(fact), "")
        });
    let estimates = finding
        .estimates
        .iter()
        .filter(|estimate| is_it(&estimate.metric) || estimate::is_about(estimate, subject))
        .map(|estimate| {
            let unit = estimate.unit.as_deref().unwrap_or_default();
            let value = format!("{} {unit}", estimate.value);
            joined(&estimate::name(estimate), value.trim_end(), "")
        });
    let lines = critical.chain(clauses).chain(relied);
    lines.chain(facts).chain(estimates).collect()
}

fn joined(name: &str, what: &str, detail: &str) -> String {
    match detail {
        "" => format!("{name}: {what}"),
        detail => format!("{name}: {what}: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_statement_about_the_subject_is_a_line_and_no_other() {
        let finding: Finding = serde_json::from_value(json!({
            "summary": "Seen.",
            "critical_findings": [
                { "topic": "Liability  Cap", "severity": "high", "detail": "None." },
                { "topic": "Other", "severity": "low" },
            ],
            "clauses": [{ "type": "liability cap", "present": false }],
            "affected_clauses": ["LIABILITY_CAP", "Other"],
            "facts": [
                { "subject": "Annex/1", "attribute": "Fee", "value": 3, "unit": "USD" },
                { "subject": "Other", "attribute": "Due", "value": 3 },
            ],
            "estimates": [{ "metric": "eps", "value": 2.5, "unit": "USD" }],
        }))
        .unwrap();
        for (subject, expected) in [
            (
                "liability cap",
                vec![
                    "Liability  Cap: high: None.",
                    "liability cap: not found",
                    "LIABILITY_CAP: relied on",
                ],
            ),
            ("annex~11/fee", vec!["Fee of Annex/1: 3 USD"]),
            ("EPS", vec!["eps: 2.5 USD"]),
            ("risk_score", vec![]),
        ] {
            assert_eq!(lines(&finding, subject), expected, "{subject}");
        }
    }
}
