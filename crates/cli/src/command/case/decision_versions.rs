//! The versions of a decision as text: what is open or provisional, and how each version came to be.

use std::collections::BTreeMap;
use std::fmt::{Result, Write};

use concord_domain::aggregates::case::{PassedGate, Phase, VersionNote};
use concord_wire::payload::{Decision, Figure, RecordedFigures};
use concord_wire::{DebateId, Token};

use crate::shared::case_file::{CaseFile, FiguresVersion};
use crate::shared::debate_file::{both, pass_reasons};
use crate::shared::output::{DOUBTFUL, FAINT, NAMED, STRONG, one_line, styled};

/// At most so many characters of a sentence are shown.
const SENTENCE: usize = 80;
/// At most so many characters of a reason: all of it.
const REASON: usize = 4_096;
/// At most so many characters of the figures of an analysis.
const FIGURES: usize = 400;

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
pub(super) fn write(out: &mut String, decision: &Decision, file: &CaseFile) -> Result {
    let (state, changes, figures) = (&file.state, &file.package.changes, &file.figures_recorded);
    write_debates(out, "provisional", &decision.provisional)?;
    write_debates(out, "still open ", &decision.open)?;
    // The decision names the gates that were ahead when it was made; to pass one makes no new version.
    let ahead = state.gate().filter(|_| state.phase != Phase::Cancelled);
    if let Some(gate) = ahead {
        writeln!(out, "  gate ahead      {}", one_line(gate, SENTENCE))?;
    }
    write_figures(out, &decision.figures, decision.figures_omitted)?;
    write_versions(out, changes, figures)
}

/// The gates that the case has passed: when, by whom, and why.
pub(super) fn write_passed(out: &mut String, gates: &[PassedGate]) -> Result {
    if gates.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "Gates passed"))?;
    for passed in gates {
        let gate = one_line(&passed.gate, SENTENCE);
        let by = both(passed.first_reviewer.as_ref(), &passed.by);
        let at = styled(FAINT, passed.at);
        writeln!(out, "  {}  {at}  by {by}", styled(NAMED, gate))?;
        for reason in pass_reasons(passed, REASON) {
            writeln!(out, "     {reason}")?;
        }
    }
    Ok(())
}

fn write_figures(
    out: &mut String,
    figures: &BTreeMap<Token, RecordedFigures>,
    omitted: u32,
) -> Result {
    for (analysis, recorded) in figures {
        let figures = recorded.figures.iter().map(|(metric, value)| match value {
            Figure::Number(number) => format!("{metric} {number}"),
            Figure::Text(text) => format!("{metric} {text}"),
        });
        let figures = one_line(&figures.collect::<Vec<_>>().join(", "), FIGURES);
        let version = recorded.version;
        writeln!(
            out,
            "  figures         {analysis}, version {version}: {figures}"
        )?;
    }
    match omitted {
        0 => Ok(()),
        number => writeln!(
            out,
            "                  and {number} more, for which it has no room"
        ),
    }
}

fn write_versions(out: &mut String, changes: &[VersionNote], figures: &[FiguresVersion]) -> Result {
    if changes.is_empty() && figures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "Versions of the decision"))?;
    let mut figures = figures.iter().peekable();
    for note in changes {
        while let Some(before) = figures.next_if(|one| one.version < note.change.version) {
            write_figures_version(out, before)?;
        }
        write_change(out, note)?;
    }
    figures.try_for_each(|one| write_figures_version(out, one))
}

fn write_figures_version(out: &mut String, one: &FiguresVersion) -> Result {
    let analyses: Vec<&str> = one.analyses.iter().map(Token::as_str).collect();
    writeln!(
        out,
        "  {}  {}  figures of run {}: {}",
        styled(NAMED, one.version),
        styled(FAINT, one.at),
        one.run,
        one_line(&analyses.join(", "), FIGURES)
    )
}

fn write_change(out: &mut String, note: &VersionNote) -> Result {
    let change = &note.change;
    let first = change.first_reviewer.as_ref();
    let by = change.by.as_ref();
    let by = by.map(|by| format!(" by {}", both(first, by)));
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

#[cfg(test)]
mod tests {
    use concord_wire::{AgentId, Timestamp};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_with_new_figures_is_between_those_before_and_after_it() {
        let note = |version: u32| VersionNote {
            at: Timestamp::from_unix_millis(0),
            change: serde_json::from_value(json!({
                "version": version, "replaces": version - 1, "debate_id": "d-1", "topic": "Price",
                "status": "overridden", "level": 5, "by": "gail",
            }))
            .unwrap(),
        };
        let figures = FiguresVersion {
            version: 3,
            at: Timestamp::from_unix_millis(0),
            run: 1,
            analyses: vec![Token::new("dcf").unwrap()],
        };
        let mut out = String::new();
        write_versions(&mut out, &[note(2), note(4)], &[figures]).unwrap();
        let text = anstream::adapter::strip_str(&out).to_string();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let at = "1970-01-01T00:00:00.000Z";
        assert_eq!(
            lines,
            [
                format!("  2  {at}  overridden by gail: Price"),
                format!("  3  {at}  figures of run 1: dcf"),
                format!("  4  {at}  overridden by gail: Price"),
            ]
        );
    }

    #[test]
    fn the_figures_that_a_decision_has_are_shown() {
        let figures = json!({
            "dcf": { "version": 2, "figures": { "rating": "hold", "target_price": 110.5 } },
        });
        let mut out = String::new();
        write_figures(&mut out, &serde_json::from_value(figures).unwrap(), 1).unwrap();
        assert_eq!(
            out,
            "  figures         dcf, version 2: rating hold, target_price 110.5\n                  \
             and 1 more, for which it has no room\n"
        );
    }

    #[test]
    fn a_gate_that_was_passed_is_shown_with_the_reason_of_each_reviewer() {
        let passed = PassedGate {
            gate: "valuation".into(),
            at: Timestamp::from_unix_millis(0),
            by: AgentId::fixed("rita"),
            rationale: "seen".into(),
            first_reviewer: Some(AgentId::fixed("gail")),
            first_rationale: Some("the model holds".into()),
            unreviewed: Vec::new(),
        };
        let mut out = String::new();
        write_passed(&mut out, &[passed]).unwrap();
        let text = anstream::adapter::strip_str(&out).to_string();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "  valuation  1970-01-01T00:00:00.000Z  by gail and rita",
                "     gail: the model holds",
                "     rita: seen",
            ]
        );
    }
}
