//! What a case has decided, and how its debates ended, as text.

use std::fmt::{Result, Write};

use concord_wire::AgentId;
use concord_wire::payload::{ConflictOutcome, Decision, RuledBy, Status};

use super::decision_versions;
use crate::shared::debate_file::{reasons, signed_text};
use crate::shared::output::{BAD, DOUBTFUL, FAINT, GOOD, STRONG, one_line, styled};

/// At most so many characters of a sentence are shown.
const SENTENCE: usize = 100;
/// At most so many characters of a reason: as many as it may have, for who lets it pass must be able to read all of it.
const REASON: usize = 4_096;

/// The result of a decision.
pub(crate) fn write_decision(out: &mut String, decision: &Decision) -> Result {
    writeln!(
        out,
        "\n{}",
        styled(STRONG, decision_versions::heading(decision))
    )?;
    let outcome = &decision.outcome;
    if let Some(recommendation) = &outcome.recommendation {
        writeln!(
            out,
            "  recommendation  {}",
            styled(STRONG, one_line(recommendation, SENTENCE))
        )?;
    }
    if let Some(score) = outcome.risk_score {
        writeln!(out, "  risk score      {}", number(score))?;
    }
    if let Some(severity) = outcome.severity {
        writeln!(out, "  severity        {}", severity.as_str())?;
    }
    for (present, label) in [(true, "present"), (false, "absent ")] {
        let of_kind = outcome
            .clauses
            .iter()
            .filter(|(_, clause)| clause.present == present);
        let clauses: Vec<String> = of_kind
            .map(|(kind, clause)| match clause.basis.as_str() {
                "undisputed" => kind.clone(),
                basis => format!("{kind} ({basis})"),
            })
            .collect();
        if !clauses.is_empty() {
            writeln!(
                out,
                "  clauses {label} {}",
                one_line(&clauses.join(", "), usize::MAX)
            )?;
        }
    }
    Ok(())
}

/// How a debate ended, and with what.
pub(crate) fn write_ended(out: &mut String, outcome: &ConflictOutcome) -> Result {
    let how = match outcome.status {
        Status::Discussion => styled(GOOD, "settled by discussion"),
        Status::Vote => styled(GOOD, "settled by vote"),
        Status::Unresolved => styled(BAD, "unresolved: the rule of the vote chose nothing"),
        Status::Accepted => styled(GOOD, "settled between challenger and challenged"),
        Status::Mediation => styled(GOOD, "settled by track record"),
        Status::Ruling => styled(GOOD, "ruled by a person"),
        Status::Provisional => styled(
            DOUBTFUL,
            "provisional: the cautious position, until a gate has reviewed it",
        ),
        Status::Fallback => styled(DOUBTFUL, "the cautious position; nobody ruled"),
        Status::Confirmed => styled(GOOD, "the cautious position, confirmed at a gate"),
        Status::Overridden => styled(GOOD, "overridden at a gate"),
        Status::Redebated => styled(DOUBTFUL, "debated again"),
        Status::Cancelled => styled(BAD, "cancelled"),
    };
    match &outcome.resolution {
        Some(chosen) => {
            let (position, supporters) = (
                one_line(&chosen.position, SENTENCE),
                names(&chosen.supporters),
            );
            writeln!(
                out,
                "     {how}: {} ({supporters}){}",
                styled(STRONG, position),
                outcome
                    .ruled_by
                    .as_ref()
                    .map_or_else(String::new, signed_text)
            )?;
        }
        None => writeln!(out, "     {how}")?,
    }
    match &outcome.ruled_by {
        Some(ruled) => write_reasons(out, "     ", ruled),
        None => Ok(()),
    }
}

/// Who ruled or reviewed, and why, in a line each.
pub(crate) fn write_reasons(out: &mut String, indent: &str, ruled: &RuledBy) -> Result {
    let mut reasons = reasons(ruled, REASON).into_iter();
    reasons.try_for_each(|reason| writeln!(out, "{indent}{}", styled(FAINT, reason)))
}

pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub(super) fn names(agents: &[AgentId]) -> String {
    agents
        .iter()
        .map(AgentId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
