//! Reports of what proved right, sent after the debate by somebody who was no party to it.

use concord_events::{DebateEvent, DebateOpened, Heard, OutcomeKnown, ProvedParty};
use concord_wire::payload::{OutcomeReport, Position};
use concord_wire::{AgentId, ErrorCode, Fault};
use serde_json::Value;

use super::decide::of_other_case;
use super::input::OutcomeMessage;
use super::state::DebateState;
use super::verdicts::{domain_of, holds};
use super::{admission, escalation};
use crate::aggregates::person::Act;
use crate::machine::{Context, Decision};
use crate::rules::canonical::Canonical;
use crate::rules::conflict_type::{check_value, rule_of, value_in_words};
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

/// Checks that the sender may report outcomes, and that the debate is over. A party would judge
/// itself.
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
            "Have it said by a source of outcomes or a reviewer; `concord person list` shows who is.",
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
        let right = Right {
            value: report.value.as_ref().map(truncate::value).or_else(in_words),
            position,
        };
        return comparable(state, opened, right);
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

/// What proved right, unless the positions are numbers and it is none that could be compared with any of them: by that all parties would
/// have been wrong, for ever.
fn comparable(state: &DebateState, opened: &DebateOpened, right: Right) -> Result<Right, Fault> {
    let rule = rule_of(opened.conflict.kind);
    // A number without a unit is not one with `%`, though both are without a dimension.
    let form = |position: &Position| match rule.comparable(&opened.policy, position) {
        Canonical::Number { dimension, .. } => Some((dimension, is_bare(position))),
        Canonical::Date(_) | Canonical::Boolean(_) | Canonical::Text(_) => None,
    };
    let Some(first) = state.positions.first() else {
        return Ok(right);
    };
    let proved = form(&Position {
        position: right.position.clone(),
        value: right.value.clone(),
        ..first.clone()
    });
    let held: Vec<_> = state.positions.iter().map(form).collect();
    let fits = |(dimension, bare): &(String, bool)| {
        let mut known = held.iter().flatten();
        known.any(|(other, is_bare)| other == dimension && (*is_bare || !bare))
    };
    if !rule.is_of_numbers() || held.contains(&None) || proved.as_ref().is_some_and(fits) {
        return Ok(right);
    }
    let pointer = right
        .value
        .as_ref()
        .map_or("/payload/position", |_| "/payload/value");
    let said = right
        .value
        .map_or(right.position, |value| value.to_string());
    let positions = state.positions.iter();
    let held: Vec<&str> = positions.map(|held| held.position.as_str()).collect();
    Err(Fault::invalid(
        pointer,
        format!(
            "{said} cannot be compared with what was held: {}.",
            held.join(", ")
        ),
        "Give what proved right as a value in the same unit, such as 27 or \"27 %\", or name the party that held it.",
    ))
}

/// Whether it is stated as a number and nothing else.
fn is_bare(position: &Position) -> bool {
    match &position.value {
        Some(Value::String(text)) => text.trim().parse::<f64>().is_ok(),
        Some(value) => value.is_number(),
        None => position.position.trim().parse::<f64>().is_ok(),
    }
}
