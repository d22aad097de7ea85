//! Changes of regime with which a case is flagged, as people are shown them.

use std::fmt::{Result, Write};

use concord_wire::payload::AlertFlag;

use crate::shared::output::{DOUBTFUL, STRONG, one_line, styled};

/// At most so many characters of a text are shown.
const TEXT: usize = 200;

/// One block of lines, and nothing where there is none.
pub(crate) fn write<'a>(
    out: &mut String,
    flags: impl IntoIterator<Item = &'a AlertFlag>,
) -> Result {
    let mut flags = flags.into_iter().peekable();
    if flags.peek().is_none() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}",
        styled(STRONG, "The regime has changed since it was opened")
    )?;
    for flag in flags {
        let unknown = |regime: &Option<String>| regime.clone().unwrap_or_else(|| "-".to_owned());
        let (old, new) = (unknown(&flag.old_regime), unknown(&flag.new_regime));
        let change = styled(DOUBTFUL, one_line(&format!("{old} -> {new}"), TEXT));
        writeln!(
            out,
            "  {change} at {}, alert {} by {}",
            flag.at, flag.alert, flag.raised_by
        )?;
        for part in &flag.affected {
            let line = format!(
                "concerns the {} {} ({})",
                part.kind, part.name, part.implication
            );
            writeln!(out, "    {}", one_line(&line, TEXT))?;
        }
        for (name, value) in &flag.implications {
            writeln!(
                out,
                "    implies {}",
                one_line(&format!("{name} {value}"), TEXT)
            )?;
        }
    }
    Ok(())
}
