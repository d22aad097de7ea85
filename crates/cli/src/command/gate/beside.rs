//! What stands in the place of a provisional decision that says something else.

use std::fmt::{Result as Written, Write};

use concord_domain::aggregates::case::Beside;

use crate::shared::debate_file::standing_text;

/// What a provisional decision says that does not stand, and what stands.
pub(super) fn write(out: &mut String, said: &str, beside: &Beside<'_>) -> Written {
    let now = now_stands(beside);
    if beside.if_confirmed {
        writeln!(out, "  would stand   {said}, if confirmed")?;
        return writeln!(out, "  now stands    {now}");
    }
    writeln!(out, "  says          {said}; to confirm it changes nothing")?;
    writeln!(out, "  stands        {now}")
}

/// What stands in the place of a provisional decision, and who has said so.
pub(super) fn now_stands(beside: &Beside<'_>) -> String {
    beside.now_stands.map_or_else(
        || "the most cautious position of the conflict about the same".to_owned(),
        standing_text,
    )
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::ConflictOutcome;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_stand_is_not_said_to_stand() {
        let ruled: ConflictOutcome = serde_json::from_value(json!({
            "conflict_id": "d-1", "status": "ruling", "rounds": [], "positions": [],
            "resolved_at": "2026-11-21T20:00:00.000Z", "ruled_by": { "expert": "eva", "rationale": "x" },
            "resolution": { "position": "60", "value": 60, "supporters": ["eva"] },
        }))
        .unwrap();
        for (now_stands, if_confirmed, lines) in [
            (
                Some(&ruled),
                true,
                [
                    "would stand   90, if confirmed",
                    "now stands    60  [60], ruled by eva",
                ],
            ),
            (
                Some(&ruled),
                false,
                [
                    "says          90; to confirm it changes nothing",
                    "stands        60  [60], ruled by eva",
                ],
            ),
            (
                None,
                true,
                [
                    "would stand   90, if confirmed",
                    "now stands    the most cautious position of the conflict about the same",
                ],
            ),
        ] {
            let mut text = String::new();
            let beside = Beside {
                now_stands,
                if_confirmed,
            };
            write(&mut text, "90", &beside).unwrap();
            let text = anstream::adapter::strip_str(&text).to_string();
            assert_eq!(text.lines().map(str::trim).collect::<Vec<_>>(), lines);
        }
    }
}
