//! Agreements, disagreements and revisions in a debate that is on the ladder.

use concord_events::{DebateEvent, EscalationReason};
use concord_wire::payload::{
    ChallengeTerms, Evidence, LADDER_ITEMS_MAX, Level, Position, Resolution, SetAsideReason, Status,
};
use concord_wire::{AgentId, Fault};

use super::evidence::{self, Support};
use super::messages::open_challenge;
use super::{OnLadder, levels};
use crate::aggregates::debate::admission;
use crate::aggregates::debate::input::AnswerMessage;
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::machine::Decision;
use crate::rules::conflict_type::value_wanted;
use crate::rules::proved;
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
    let adopts = |other: &AgentId| adopts(on, other, (held, revised), message.agrees());
    if message.agent_id == terms.challenged {
        if adopts(&terms.challenger) {
            return Decision::Append(settled(on, terms, message, &terms.challenger));
        }
        // The challenged agent moves elsewhere, or keeps its position with a reason: both are
        // evidence for the challenger to weigh.
        let support = Support {
            message: message.reference(),
            evidence: as_evidence(message),
            held,
            revised,
            most: evidence::GIVEN_MAX,
        };
        return evidence::given(on, support);
    }
    if message.agrees() || adopts(&terms.challenged) {
        return Decision::Append(settled(on, terms, message, &terms.challenged));
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

/// Whether a party has taken over what another one holds, so that nothing is left to dispute. Words that leave a value open are a person's to judge.
fn adopts(
    on: &OnLadder<'_>,
    other: &AgentId,
    (held, revised): (&Position, &Position),
    agrees: bool,
) -> bool {
    let holds = |one: &Position, other: &Position| {
        proved::holds(on.opened, one, &other.position, other.value.as_ref())
    };
    let decides = |one: &Position| {
        let said = (one.position.as_str(), one.value.as_ref());
        value_wanted(&on.opened.conflict, &on.opened.policy, said).is_none()
    };
    position_of(on, other).is_some_and(|other| {
        // Both may have said the same from the beginning, and dispute what it rests on.
        let moves = agrees || !holds(held, other);
        moves && decides(other) && holds(revised, other)
    })
}

fn position_of<'a>(on: &OnLadder<'a>, agent: &AgentId) -> Option<&'a Position> {
    let mut positions = on.state.positions.iter();
    positions.find(|position| position.agent_id == *agent)
}

/// Challenger and challenged have settled it: what one of them holds stands.
fn settled(
    on: &OnLadder<'_>,
    terms: &ChallengeTerms,
    message: &AnswerMessage,
    stands: &AgentId,
) -> DebateEvent {
    let resolution = position_of(on, stands).map(|stands| Resolution {
        position: stands.position.clone(),
        value: stands.value.clone(),
        supporters: vec![terms.challenged.clone(), terms.challenger.clone()],
    });
    OutcomeBuilder::new(on.opened, Status::Accepted, Level::Agents, resolution)
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
