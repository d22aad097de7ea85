//! How the position of a party has changed, in words, for an expert who has seen it before.

use concord_wire::payload::Position;

use crate::rules::size_budget::truncate;

/// Most bytes of a text in a line about a change.
const LINE_BYTES_MAX: usize = 160;

/// Describes how the position of a party has changed, one line for each change.
pub(in crate::aggregates::debate) fn position_changes(
    before: &Position,
    after: &Position,
) -> Vec<String> {
    let agent = &after.agent_id;
    let mut lines = Vec::new();
    if (&before.position, &before.value) != (&after.position, &after.value) {
        let words = |one: &Position| match &one.value {
            Some(value) => format!(
                "{} ({})",
                quoted(&one.position),
                shortened(&value.to_string())
            ),
            None => quoted(&one.position),
        };
        lines.push(format!(
            "{agent}: position {} instead of {}",
            words(after),
            words(before)
        ));
    }
    let new = after
        .evidence
        .iter()
        .filter(|item| !before.evidence.contains(item));
    lines.extend(new.map(|item| format!("{agent}: new evidence {}", quoted(item))));
    let gone = before
        .evidence
        .iter()
        .filter(|item| !after.evidence.contains(item))
        .count();
    if gone > 0 {
        lines.push(format!(
            "{agent}: {gone} earlier items of evidence are no longer shown"
        ));
    }
    if before.reasoning != after.reasoning {
        let reasoning = after
            .reasoning
            .as_deref()
            .map_or_else(|| "none".to_owned(), quoted);
        lines.push(format!("{agent}: reasoning {reasoning}"));
    }
    lines
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

fn shortened(text: &str) -> String {
    truncate::line(text, LINE_BYTES_MAX)
}
