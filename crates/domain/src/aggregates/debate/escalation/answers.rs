//! Agreements, disagreements and revisions in a debate that is on the ladder.

use concord_events::{DebateEvent, EscalationReason};
use concord_wire::Fault;
use concord_wire::payload::{
    ChallengeTerms, Evidence, LADDER_ITEMS_MAX, Level, Position, Resolution, SetAsideReason, Status,
};

use super::evidence::{self, Support};
use super::messages::open_challenge;
use super::{OnLadder, levels};
use crate::aggregates::debate::admission;
use crate::aggregates::debate::input::AnswerMessage;
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::machine::Decision;
use crate::rules::size_budget::truncate;

/// What to do about an answer. `held` is the sender's position before it, `revised` the one after
/// it.
pub(in crate::aggregates::debate) fn answer(
    on: &OnLadder<'_>,
    message: &AnswerMessage,
    held: &Position,
    revised: &Position,
) -> Decision<DebateEvent> {
    let Some(terms) = open_challenge(on).filter(|_| !on.is_resolved()) else {
        return admission::set_aside(
            on.state,
            on.opened,
            message.reference(),
            message.answer.clone(),
            SetAsideReason::Late,
        );
    };
    if message.agent_id == terms.challenged {
        // The challenged agent moves, or keeps its position with a reason: both are evidence for
        // the challenger to weigh.
        let support = Support {
            message: message.reference(),
            evidence: as_evidence(message),
            held,
            revised,
            most: evidence::GIVEN_MAX,
        };
        return evidence::given(on, support);
    }
    if message.agrees() {
        return Decision::Append(accepted(on, terms, message, held));
    }
    if !on.ladder.evaluating {
        return Decision::Reject(Fault::invalid(
            "",
            "There is no evidence yet that could be rejected.",
            "Wait for the challenged agent's evidence, or for its time to pass; agree if you withdraw the challenge.",
        ));
    }
    levels::escalated(on, EscalationReason::Rejected, Some(message.reference()))
}

/// The challenger accepts the position of the challenged agent.
fn accepted(
    on: &OnLadder<'_>,
    terms: &ChallengeTerms,
    message: &AnswerMessage,
    held: &Position,
) -> DebateEvent {
    let conceded = on
        .state
        .positions
        .iter()
        .find(|position| position.agent_id == terms.challenged)
        .unwrap_or(held);
    let resolution = Resolution {
        position: conceded.position.clone(),
        value: conceded.value.clone(),
        supporters: vec![terms.challenged.clone(), terms.challenger.clone()],
    };
    OutcomeBuilder::new(on.opened, Status::Accepted, Level::Agents, Some(resolution))
        .message(message.reference())
        .event(on.state, on.context)
}

fn as_evidence(message: &AnswerMessage) -> Evidence {
    Evidence {
        statement: truncate::words(&message.answer.reasoning),
        evidence: message
            .answer
            .evidence
            .iter()
            .take(LADDER_ITEMS_MAX)
            .map(|item| truncate::item(item))
            .collect(),
        limitation: None,
    }
}
