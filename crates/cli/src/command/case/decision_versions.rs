//! The versions of a decision as text: what is open or provisional, and how each version came to be.

use std::fmt::{Result, Write};

use concord_domain::aggregates::case::{CaseState, Phase, VersionNote};
use concord_wire::DebateId;
use concord_wire::payload::Decision;

use crate::shared::output::{DOUBTFUL, FAINT, NAMED, STRONG, one_line, styled};

/// At most so many characters of a sentence are shown.
const SENTENCE: usize = 80;

/// The heading of a decision.
pub(super) fn heading(decision: &Decision) -> String {
    let standing = if !decision.provisional.is_empty() {
        ", provisional"
    } else if !decision.open.is_empty() {
        ", some debates are open"
    } else {
        ""
    };
    let version = decision.version.max(1);
    format!(
        "Decision, version {version} ({}{standing})",
        decision.reason
    )
}

/// What is open or provisional, and the history of the versions.
pub(super) fn write(
    out: &mut String,
    decision: &Decision,
    changes: &[VersionNote],
    state: &CaseState,
) -> Result {
    write_debates(out, "provisional", &decision.provisional)?;
    write_debates(out, "still open ", &decision.open)?;
    // The decision names the gates that were ahead when it was made; to pass one makes no new version.
    let ahead = state.gate().filter(|_| state.phase != Phase::Cancelled);
    if let Some(gate) = ahead {
        writeln!(out, "  gate ahead      {}", one_line(gate, SENTENCE))?;
    }
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "Versions of the decision"))?;
    for note in changes {
        let change = &note.change;
        let by = change.by.as_ref().map(|by| format!(" by {by}"));
        writeln!(
            out,
            "  {}  {}  {}{}: {}",
            styled(NAMED, change.version),
            styled(FAINT, note.at),
            change.status,
            by.unwrap_or_default(),
            one_line(&change.topic, SENTENCE)
        )?;
        for part in &change.changed {
            writeln!(
                out,
                "     {}: {} -> {}",
                one_line(&part.part, SENTENCE),
                one_line(&part.before.to_string(), SENTENCE),
                one_line(&part.after.to_string(), SENTENCE)
            )?;
        }
        if change.changed_omitted > 0 {
            writeln!(out, "     and {} more parts", change.changed_omitted)?;
        }
    }
    Ok(())
}

fn write_debates(out: &mut String, label: &str, debates: &[DebateId]) -> Result {
    if debates.is_empty() {
        return Ok(());
    }
    let debates: Vec<&str> = debates.iter().map(DebateId::as_str).collect();
    writeln!(
        out,
        "  {}     {}",
        styled(DOUBTFUL, label),
        debates.join(", ")
    )
}
