//! The decision of a case as text.

use concord_wire::AgentId;
use concord_wire::payload::{Decision, Outcome, Severity, Status};

use super::words::{seconds, wrap};
use concord_cli::shared::output::{STRONG, count, one_line, styled};

/// The decision of a case, `took_ms` after it was opened.
pub(super) fn lines(decision: &Decision, took_ms: u64) -> Vec<String> {
    let outcome = &decision.outcome;
    let mut lines = vec![format!(
        "  {} after {} ({})",
        styled(STRONG, "Decision"),
        seconds(took_ms),
        decision.reason
    )];
    let advice = outcome
        .recommendation
        .as_deref()
        .map_or_else(|| "none".into(), |advice| one_line(advice, 40));
    lines.push(format!(
        "    {:<16} {}",
        "recommendation",
        styled(STRONG, advice)
    ));
    let mut row =
        |name: &str, text: String| lines.push(format!("    {name:<16} {}", wrap(&text, 21)));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    row(
        "risk score",
        or_none(outcome.risk_score.map(|score| format!("{score:.0}"))),
    );
    row(
        "severity",
        or_none(outcome.severity.map(Severity::as_str).map(Into::into)),
    );
    row("clauses there", clauses(outcome, true));
    row("clauses missing", clauses(outcome, false));
    let by = |status: Status| {
        decision
            .outcomes
            .iter()
            .filter(|outcome| outcome.status == status)
            .count()
    };
    let mut conflicts = format!(
        "{} debated: {} settled by discussion, {} by vote, {} open",
        decision.conflicts.len(),
        by(Status::Discussion),
        by(Status::Vote),
        decision.conflicts.len() - by(Status::Discussion) - by(Status::Vote),
    );
    conflicts.push_str(&format!("; {} deferred", decision.deferred.len()));
    row("conflicts", conflicts);
    for conflict in &decision.deferred {
        row("  deferred", conflict.topic.clone());
    }
    let missing: Vec<&str> = decision.missing.iter().map(AgentId::as_str).collect();
    let missing = if missing.is_empty() {
        "none missing".to_owned()
    } else {
        format!("missing: {}", missing.join(", "))
    };
    row(
        "findings",
        format!(
            "{}, {missing}, {} not used",
            count(decision.findings.len() as u64, "finding"),
            decision.set_aside.len()
        ),
    );
    lines
}

/// The clauses that are there, or those that are missing, with the basis of that where it was disputed.
fn clauses(outcome: &Outcome, present: bool) -> String {
    let clauses = outcome
        .clauses
        .iter()
        .filter(|(_, clause)| clause.present == present);
    let named: Vec<String> = clauses
        .map(|(name, clause)| match clause.basis.as_str() {
            "undisputed" => name.clone(),
            basis => format!("{name} ({basis})"),
        })
        .collect();
    if named.is_empty() {
        "none".to_owned()
    } else {
        named.join(", ")
    }
}
