//! What proved right is said after the debate, by somebody who had no part in it.

use concord_events::{DebateEvent, DebateOpened, Heard, OutcomeKnown, ProvedParty};
use concord_wire::payload::{OutcomeReport, Position};
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId};

use super::state::DebateState;
use super::verdicts::holds;
use crate::aggregates::case::{CaseState, reused_message_id};
use crate::aggregates::review_queue::QueueState;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::truncate;

/// What makes somebody's word count besides the policy's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whether the sender opened the case.
    pub opened_case: bool,
    /// Whether the sender is a registered expert.
    pub is_expert: bool,
}

impl Standing {
    /// That of an agent, from the case that its message belongs to and the queue of people.
    pub fn of(agent: &AgentId, case: Option<&CaseState>, queue: &QueueState) -> Self {
        let opened = case.and_then(|case| case.opened.as_ref());
        Self {
            opened_case: opened.is_some_and(|opened| opened.opened_by == *agent),
            is_expert: queue.desks.contains_key(agent),
        }
    }
}

/// What proved right, as it came in.
#[derive(Debug, Clone)]
pub struct ToldOutcome {
    /// Who says it.
    pub agent_id: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The case that the message belongs to.
    pub case_id: Option<CaseId>,
    /// What.
    pub report: OutcomeReport,
    /// What makes the sender's word count.
    pub standing: Standing,
}

/// Somebody says what proved right.
pub(super) fn told(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    told: &ToldOutcome,
) -> Decision<DebateEvent> {
    if let Some((agent_id, digest)) = state.seen.get(&told.message_id) {
        let same = (agent_id, digest) == (&told.agent_id, &told.digest);
        return if same {
            Decision::Ignore(Ignored::Repetition)
        } else {
            Decision::Reject(reused_message_id())
        };
    }
    match known(state, opened, context, told) {
        Ok(known) => Decision::Append(DebateEvent::OutcomeKnown(Box::new(known))),
        Err(fault) => Decision::Reject(fault),
    }
}

fn known(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    told: &ToldOutcome,
) -> Result<OutcomeKnown, Fault> {
    may_say(state, opened, told)?;
    if let Some(by) = &state.proved_by {
        return Err(Fault::invalid(
            "",
            format!("{by} has said already what proved right in this debate."),
            "The first word stands; `concord debate show` gives it.",
        ));
    }
    let report = &told.report;
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
            agent_id: told.agent_id.clone(),
            message_id: told.message_id.clone(),
            digest: told.digest.clone(),
        },
        parties: state.positions.iter().map(party).collect(),
        position: right.position,
        value: right.value,
        explanation: truncate::words(&report.explanation),
        at,
        circumstances: report.circumstances.or(&opened.terms.circumstances),
    })
}

/// Whether the sender's word counts, and now. A party would judge itself.
fn may_say(state: &DebateState, opened: &DebateOpened, told: &ToldOutcome) -> Result<(), Fault> {
    let from = &told.agent_id;
    if told.case_id.as_ref() != Some(&opened.case_id) {
        return Err(Fault::invalid(
            "/case_id",
            format!("The debate belongs to the case {}.", opened.case_id),
            "Send the outcome in that case.",
        ));
    }
    let unauthorized = |message: String, advice: &str| {
        Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            message,
            advice,
        ))
    };
    if state.positions.iter().any(|held| held.agent_id == *from) {
        let advice = "Have it said by whoever opened the case, by an expert, or by an agent of the policy's outcome_sources.";
        return unauthorized(format!("{from} was a party to this debate."), advice);
    }
    let Standing {
        opened_case,
        is_expert,
    } = told.standing;
    if !(opened_case || is_expert || opened.policy.ladder.outcome_sources.contains(from)) {
        let advice = "Register as an expert, or be named in the policy's ladder.outcome_sources when a case is opened.";
        return unauthorized(
            format!("{from} neither opened the case nor is an expert or a source of outcomes."),
            advice,
        );
    }
    if state.outcome.is_none() {
        return Err(Fault::invalid(
            "",
            "The debate is not resolved yet.",
            "Give what is known as evidence while it is debated, and the outcome after its end.",
        ));
    }
    Ok(())
}

/// What proved right, in words and as a value.
struct Right {
    position: String,
    value: Option<serde_json::Value>,
}

fn proved_right(
    state: &DebateState,
    opened: &DebateOpened,
    report: &OutcomeReport,
) -> Result<Right, Fault> {
    let Some(named) = &report.held_by else {
        let position = truncate::words(report.position.as_deref().unwrap_or_default());
        return Ok(Right {
            position,
            value: report.value.as_ref().map(truncate::value),
        });
    };
    let held = state
        .positions
        .iter()
        .find(|held| held.agent_id == *named)
        .ok_or_else(|| {
            let parties = crate::aggregates::escalation::parties(opened);
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
