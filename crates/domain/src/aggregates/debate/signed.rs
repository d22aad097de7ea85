//! Whether the end of a debate says what a person has signed.

use concord_events::GateReviewed;
use concord_wire::AgentId;
use concord_wire::payload::{
    ConflictOutcome, Resolution, Review, ReviewAction, RuledBy, Ruling, Signature,
};

use super::{DebateState, escalation};
use crate::rules::conflict_type::valued;
use crate::rules::size_budget::truncate;

/// The differences between the end of a debate and the signed ruling of this expert; `before` is the state of the debate before
/// its end.
pub(crate) fn ruling_differences(
    before: &DebateState,
    outcome: &ConflictOutcome,
    expert: &AgentId,
    ruling: &Ruling,
) -> Vec<String> {
    let mut differences = Vec::new();
    if ruling.debate_id != outcome.conflict_id {
        let other = &ruling.debate_id;
        differences.push(format!(
            "the signed ruling is about another debate, {other}"
        ));
    }
    if !is_ended_by(outcome, &by_ruling(expert, ruling)) {
        differences.push("who ruled, why and on which brief is not what was signed".to_owned());
    }
    let chosen = before
        .opened
        .as_ref()
        .and_then(|opened| escalation::resolution(opened, &before.positions, expert, ruling).ok());
    if !chosen.is_some_and(|chosen| is_resolved_by(before, outcome, chosen)) {
        differences.push("the resolution is not the position that was signed".to_owned());
    }
    differences
}

/// Whether a debate ended with what was signed: with its words, and the value that was signed or that the words state. Earlier versions
/// read none from the words.
fn is_resolved_by(before: &DebateState, outcome: &ConflictOutcome, signed: Resolution) -> bool {
    let (Some(stored), Some(opened)) = (&outcome.resolution, &before.opened) else {
        return false;
    };
    *stored == signed || *stored == valued(&opened.conflict, &opened.policy, signed)
}

/// The differences between the end of a debate at a gate and the signed review; `before` is the state of the debate before its end.
pub(crate) fn review_differences(
    before: &DebateState,
    outcome: &ConflictOutcome,
    reviewed: &GateReviewed,
) -> Vec<String> {
    let (reviewer, review) = (&reviewed.heard.agent_id, &reviewed.review);
    let first = reviewed.first_reviewer.as_ref();
    let with_reason = first.map(|first| (first, reviewed.first_rationale.as_deref()));
    let mut differences = Vec::new();
    // A facilitator of an earlier version passes the first of two reviewers over, or what they said.
    let known = [with_reason, first.map(|first| (first, None)), None];
    let known = known.map(|first| by_review(reviewer, first, review));
    if !known.iter().any(|one| is_ended_by(outcome, one)) {
        differences.push("who reviewed it, why and on what is not what was signed".to_owned());
    }
    let is_other = review.action == ReviewAction::Override
        && !is_resolved_by(before, outcome, escalation::overriding(reviewer, review));
    if is_other {
        differences.push("the resolution is not the position that was signed".to_owned());
    }
    differences
}

/// Who has ruled, why and on which brief, as the end of a debate says it.
pub(super) fn by_ruling(expert: &AgentId, ruling: &Ruling) -> RuledBy {
    RuledBy {
        expert: expert.clone(),
        first_reviewer: None,
        first_rationale: None,
        rationale: truncate::reason(&ruling.rationale),
        digest: Some(ruling.digest.clone()),
        key: ruling.signature.as_ref().map(Signature::fingerprint),
    }
}

/// Who has reviewed it at a gate, why and on what, as the end of a debate says it.
pub(super) fn by_review(
    reviewer: &AgentId,
    first: Option<(&AgentId, Option<&str>)>,
    review: &Review,
) -> RuledBy {
    RuledBy {
        expert: reviewer.clone(),
        first_reviewer: first.map(|(first, _)| first.clone()),
        first_rationale: first.and_then(|(_, reason)| reason.map(truncate::reason)),
        rationale: truncate::reason(&review.rationale),
        digest: review.digest.clone(),
        key: review.signature.as_ref().map(Signature::fingerprint),
    }
}

/// Whether a debate says that it was ended so. Earlier versions shortened the reason.
fn is_ended_by(outcome: &ConflictOutcome, signed: &RuledBy) -> bool {
    let shortened = RuledBy {
        rationale: truncate::words(&signed.rationale),
        ..signed.clone()
    };
    [Some(signed), Some(&shortened)].contains(&outcome.ruled_by.as_ref())
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::{ConflictType, Status};
    use serde_json::json;

    use super::*;
    use crate::aggregates::debate::DebateMachine;
    use crate::fixtures::*;

    /// Facilitators of earlier versions pass over what the first of two reviewers said, or who that was.
    #[test]
    fn what_the_first_of_two_reviewers_said_stands_beside_what_the_second_has_signed() {
        let margin = conflict("d-1", ConflictType::EstimateDisagreement, "margin", &[]);
        let reviewed: GateReviewed = serde_json::from_value(json!({
            "heard": { "agent_id": "greta", "message_id": "m-2", "digest": "" }, "debate_id": "d-1",
            "first_reviewer": "gail", "first_rationale": "g1",
            "review": { "gate": "release", "action": "confirm", "debate_id": "d-1", "rationale": "g3" },
        }))
        .unwrap();
        for (first, reason, is_so) in [
            (Some("gail"), Some("g1"), true),
            (Some("gail"), None, true),
            (None, None, true),
            (Some("gail"), Some("g3"), false),
            (Some("hal"), Some("g1"), false),
        ] {
            let first = first.map(agent);
            let first = first.as_ref().map(|first| (first, reason));
            let mut ended = outcome(&margin, Status::Confirmed, Some(json!(25)));
            ended.ruled_by = Some(by_review(&agent("greta"), first, &reviewed.review));
            let differences = review_differences(&DebateState::default(), &ended, &reviewed);
            assert_eq!(differences.is_empty(), is_so, "{first:?}: {differences:?}");
        }
    }

    /// Words of a quantity had no value before they were read as one (record 105).
    #[test]
    fn signed_words_have_the_value_that_they_state_or_none_as_before() {
        let held = [("ann", json!("25 %"), 0.5), ("ben", json!("35 %"), 0.5)];
        let kind = ConflictType::EstimateDisagreement;
        let margin = conflict("d-1", kind, "operating margin", &held);
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(&said("c-1-5-0", 0), &open_debate(margin.clone(), policy()));
        let percent = |number: f64| json!({ "value": number, "unit": "%" });
        let signed = Resolution {
            position: "28 %".into(),
            value: None,
            supporters: vec![agent("eve")],
        };
        for (stored, is_so) in [
            (None, true),
            (Some(percent(28.0)), true),
            (Some(percent(29.0)), false),
        ] {
            let mut ended = outcome(&margin, Status::Ruling, None);
            ended.resolution = Some(Resolution {
                value: stored.clone(),
                ..signed.clone()
            });
            let is_it = is_resolved_by(story.state(), &ended, signed.clone());
            assert_eq!(is_it, is_so, "{stored:?}");
        }
    }
}
