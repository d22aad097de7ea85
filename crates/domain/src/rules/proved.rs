//! What proved right: whether an outcome agrees with a position. Track records, precedents, briefs and packages all ask here, so none of them
//! contradicts another.

use concord_events::{DebateOpened, OutcomeKnown};
use concord_wire::payload::{ConflictOutcome, Position};
use serde_json::Value;

use super::conflict_type::{is_valueless, meant};
use super::vote;

/// Whether `held` is the same as the position with these words and this value, as the vote compares
/// positions.
pub(crate) fn holds(
    opened: &DebateOpened,
    held: &Position,
    position: &str,
    value: Option<&Value>,
) -> bool {
    let other = Position {
        position: position.to_owned(),
        value: value.cloned(),
        ..held.clone()
    };
    let both = [held.clone(), other];
    // Who says 28 where 25 % was held means 28 %, and so does who has held 28 where 28 % is said.
    let as_meant = |one: &Position| Position {
        value: (one.value.as_ref())
            .map(|value| meant(value, opened.conflict.positions.iter().chain(&both))),
        ..one.clone()
    };
    let about = vote::About::conflict(&opened.conflict, &opened.policy);
    vote::option_count(about, &both.each_ref().map(as_meant)) == 1
}

/// Whether the position that a debate ended with is what proved right; `None` where it ended without one, or with words that state no value where
/// numbers or clauses are compared.
pub(crate) fn was_right(
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
    known: &OutcomeKnown,
) -> Option<bool> {
    let chosen = outcome.resolution.as_ref()?;
    let held = Position {
        agent_id: known.heard.agent_id.clone(),
        position: chosen.position.clone(),
        value: chosen.value.clone(),
        confidence: 0.0,
        evidence: Vec::new(),
        reasoning: None,
        evidence_omitted: 0,
    };
    let is_right = holds(opened, &held, &known.position, known.value.as_ref());
    let is_known = is_right || !is_valueless(&opened.conflict, &opened.policy, chosen);
    is_known.then_some(is_right)
}

#[cfg(test)]
mod tests {
    use concord_events::DebateEvent;
    use concord_wire::payload::ConflictType;
    use serde_json::json;

    use super::*;
    use crate::aggregates::debate::DebateMachine;
    use crate::fixtures::*;

    #[test]
    fn who_held_what_is_said_without_its_unit_was_right() {
        let percent = |number: u8| json!({ "value": number, "unit": "%" });
        let held = [("ann", percent(25), 0.5), ("ben", percent(35), 0.5)];
        let kind = ConflictType::EstimateDisagreement;
        let margin = conflict("d-1", kind, "operating margin", &held);
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(&said("c-1-5-0", 0), &open_debate(margin, policy()));
        let DebateEvent::Opened(opened) = &story.last().event else {
            panic!("it is open");
        };
        let mut parties = opened.conflict.positions.iter();
        let right = parties.all(|held| {
            let is_anns = held.agent_id == agent("ann");
            holds(opened, held, "25 %", Some(&json!(25))) == is_anns
        });
        assert!(right);
    }
}
