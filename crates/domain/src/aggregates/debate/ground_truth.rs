//! Reports of what proved right, sent after the debate by somebody who was no party to it.

use concord_events::{DebateEvent, DebateOpened, Heard, OutcomeKnown, ProvedParty};
use concord_wire::payload::{OutcomeReport, Position, Status};
use concord_wire::{AgentId, ErrorCode, Fault};
use serde_json::Value;

use super::decide::of_other_case;
use super::input::OutcomeMessage;
use super::state::DebateState;
use super::verdicts::domain_of;
use super::{admission, escalation};
use crate::aggregates::person::Act;
use crate::machine::{Context, Decision};
use crate::rules::conflict_type::{check_proved, check_value, meant, value_in_words};
use crate::rules::proved::holds;
use crate::rules::size_budget::truncate;

/// What to do about a report of what proved right.
pub(super) fn report(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    message: &OutcomeMessage,
) -> Decision<DebateEvent> {
    let OutcomeMessage {
        agent_id,
        message_id,
        digest,
        ..
    } = message;
    if let Some(repeated) = admission::repetition(state, agent_id, message_id, digest) {
        return repeated;
    }
    match outcome_known(state, opened, context, message) {
        Ok(known) => Decision::Append(DebateEvent::OutcomeKnown(Box::new(known))),
        Err(fault) => Decision::Reject(fault),
    }
}

fn outcome_known(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    message: &OutcomeMessage,
) -> Result<OutcomeKnown, Fault> {
    check_sender(state, opened, message)?;
    if let Some(by) = &state.proved_by {
        return Err(Fault::invalid(
            "",
            format!("{by} has said already what proved right in this debate."),
            "The first word stands; `concord debate show` gives it.",
        ));
    }
    let report = &message.report;
    let at = report.at.unwrap_or(context.now);
    if at > context.now {
        return Err(Fault::invalid(
            "/payload/at",
            format!("{at} is in the future."),
            "Say when it became known; set the sender's clock if that was just now.",
        ));
    }
    if let Some(opened_at) = state.opened_at.filter(|opened_at| at < *opened_at) {
        return Err(Fault::invalid(
            "/payload/at",
            format!("{at} is before this debate was opened, at {opened_at}."),
            "Say when it became known what proved right, which is after the debate; leave it out for now.",
        ));
    }
    let right = proved_right(state, opened, report)?;
    let party = |held: &Position| ProvedParty {
        agent_id: held.agent_id.clone(),
        correct: holds(opened, held, &right.position, right.value.as_ref()),
    };
    Ok(OutcomeKnown {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        heard: Heard {
            agent_id: message.agent_id.clone(),
            message_id: message.message_id.clone(),
            digest: message.digest.clone(),
        },
        parties: state.positions.iter().map(party).collect(),
        position: right.position,
        value: right.value,
        explanation: truncate::words(&report.explanation),
        at,
        circumstances: report.circumstances.or(&opened.terms.circumstances),
    })
}

/// Whether somebody ruled on the debate, or overrode what stood at its gate, alone or as one of two.
fn has_decided(state: &DebateState, by: &AgentId) -> bool {
    let outcome = state.outcome.as_ref();
    let decided =
        outcome.filter(|outcome| matches!(outcome.status, Status::Ruling | Status::Overridden));
    let ruled = decided.and_then(|outcome| outcome.ruled_by.as_ref());
    ruled.is_some_and(|ruled| ruled.expert == *by || ruled.first_reviewer.as_ref() == Some(by))
}

/// Checks that the sender may report outcomes, and that the debate is over. A party would judge
/// itself, and so would whoever decided it.
fn check_sender(
    state: &DebateState,
    opened: &DebateOpened,
    message: &OutcomeMessage,
) -> Result<(), Fault> {
    let from = &message.agent_id;
    if message.case_id.as_ref() != Some(&opened.case_id) {
        return Err(of_other_case(opened));
    }
    if state.positions.iter().any(|held| held.agent_id == *from) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{from} was a party to this debate."),
            "Have it said by a source of outcomes or a reviewer; an operator knows who is one.",
        ));
    }
    if has_decided(state, from) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!(
                "{from} was the one to decide this debate, and nobody says that they were right themselves."
            ),
            "Have it said by a source of outcomes or another reviewer; an operator knows who is one.",
        ));
    }
    message.sender.allow(
        from,
        &Act::TellOutcome {
            domain: &domain_of(&opened.terms, &opened.conflict),
            opened: message.opened_case,
            sources: &opened.policy.ladder.outcome_sources,
        },
    )?;
    if state.outcome.is_none() {
        return Err(Fault::invalid(
            "",
            "The debate is not resolved yet.",
            "Give what is known as evidence while it is debated, and the outcome after its end.",
        ));
    }
    Ok(())
}

/// The position that proved right.
struct Right {
    position: String,
    value: Option<Value>,
}

fn proved_right(
    state: &DebateState,
    opened: &DebateOpened,
    report: &OutcomeReport,
) -> Result<Right, Fault> {
    let Some(named) = &report.held_by else {
        check_value(&opened.conflict, report.value.as_ref())?;
        let position = truncate::words(report.position.as_deref().unwrap_or_default());
        let in_words = || value_in_words(&opened.conflict, &opened.policy, &position);
        let as_meant = |value: &Value| meant(&truncate::value(value), &opened.conflict.positions);
        let right = Right {
            value: report.value.as_ref().map(as_meant).or_else(in_words),
            position,
        };
        let said = (right.position.as_str(), right.value.as_ref());
        check_proved(&opened.conflict, &opened.policy, &state.positions, said)?;
        return Ok(right);
    };
    let held = state
        .positions
        .iter()
        .find(|held| held.agent_id == *named)
        .ok_or_else(|| {
            let parties = escalation::parties(opened);
            let known = parties
                .iter()
                .map(AgentId::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            Fault::invalid(
                "/payload/held_by",
                format!("{named} held no position in this debate."),
                format!("Name one of {known}, or say what proved right in position."),
            )
        })?;
    Ok(Right {
        position: held.position.clone(),
        value: held.value.clone(),
    })
}
