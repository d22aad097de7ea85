//! What was compared with what, beside the conflicts that came of it.

use std::fmt::{Result, Write};

use concord_events::{EstimatesInUnit, IncomparableEstimates, MatchedBy, NameMatch};
use concord_wire::AgentId;

use crate::shared::case_file::CaseFile;
use crate::shared::output::{DOUBTFUL, FAINT, one_line, styled};

/// At most so many characters of a name are shown.
const NAME: usize = 60;

/// Writes which estimates could not be compared, and which names were taken for others.
pub(super) fn write_compared(out: &mut String, file: &CaseFile) -> Result {
    for estimates in &file.incomparable {
        write_incomparable(out, estimates)?;
    }
    for name in &file.names {
        write_name(out, name)?;
    }
    if file.model_absent {
        let note = "the conflict detector has no sentence model, which the policy asks for: names were compared by their aliases alone";
        writeln!(out, "  {}", styled(DOUBTFUL, note))?;
    }
    Ok(())
}

fn write_incomparable(out: &mut String, estimates: &IncomparableEstimates) -> Result {
    let in_unit = |one: &EstimatesInUnit| {
        let unit = one.unit.as_deref().unwrap_or("a plain number");
        let agents: Vec<&str> = one.agents.iter().map(AgentId::as_str).collect();
        format!("{} ({})", one_line(unit, NAME), agents.join(", "))
    };
    let units: Vec<String> = estimates.units.iter().map(in_unit).collect();
    writeln!(
        out,
        "  {} estimates of {} in units that cannot be converted: {}",
        styled(FAINT, "not compared:"),
        one_line(&estimates.subject, NAME),
        units.join("; ")
    )
}

fn write_name(out: &mut String, name: &NameMatch) -> Result {
    let by = match (name.by, name.score) {
        (MatchedBy::Model, Some(score)) => format!("by the sentence model, {score:.2}"),
        (MatchedBy::Model, None) => "by the sentence model".to_owned(),
        (MatchedBy::Vocabulary, _) => "an alias in the policy".to_owned(),
    };
    writeln!(
        out,
        "  {} {:?} is {:?} {}",
        styled(FAINT, "taken as the same:"),
        one_line(&name.name, NAME),
        one_line(&name.word, NAME),
        styled(FAINT, format!("({by})"))
    )
}
