//! Levels 1 to 3: messages of the parties, the mediator and the expert.

use concord_events::names::{ACKNOWLEDGE, COMPARE};
use concord_events::{Acknowledged, Clarified, DebateEvent, DebateOpened, OpinionGiven};
use concord_wire::payload::{Answer, ChallengeTerms, Evidence, Level, SetAsideReason};
use concord_wire::{ErrorCode, Fault, Timestamp};

use super::evidence::{self, Support};
use super::{OnLadder, human, named};
use crate::aggregates::debate::admission;
use crate::aggregates::debate::input::{LadderMessage, MessageBody};
use crate::aggregates::debate::state::DebateState;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::truncate;

type DebateDecision = Decision<DebateEvent>;

/// Most clarifications of each of the two passed on in one debate, so that neither takes the other one's room.
pub(super) const CLARIFICATIONS_MAX: u32 = 10;

/// What to do about a message that belongs to the ladder.
pub(in crate::aggregates::debate) fn message(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    message: &LadderMessage,
) -> DebateDecision {
    let LadderMessage {
        agent_id,
        message_id,
        digest,
        body,
        ..
    } = message;
    if let Some(repeated) = admission::repetition(state, agent_id, message_id, digest) {
        return repeated;
    }
    let Some(on) = OnLadder::new(state, opened, context) else {
        return Decision::Reject(Fault::invalid(
            "/message_type",
            "This debate is discussed in rounds; it waits for nothing of this kind.",
            "Answer its questions with agreement, disagreement or revision.",
        ));
    };
    match body {
        MessageBody::Ruling(ruling) => human::ruling(&on, message, ruling),
        MessageBody::Evidence(evidence) if is_from_mediator(&on, message) => {
            opinion(&on, message, evidence)
        }
        MessageBody::Acknowledgement { .. }
        | MessageBody::Clarification { .. }
        | MessageBody::Evidence(_) => message_of_party(&on, message),
    }
}

fn is_from_mediator(on: &OnLadder<'_>, message: &LadderMessage) -> bool {
    on.opened.policy.ladder.mediator.as_ref() == Some(&message.agent_id)
        && on.ladder.level == Level::Mediation
        && !on.is_resolved()
}

fn message_of_party(on: &OnLadder<'_>, message: &LadderMessage) -> DebateDecision {
    let held = on
        .state
        .positions
        .iter()
        .find(|position| position.agent_id == message.agent_id);
    let Some(held) = held else {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{} is no party to this debate.", message.agent_id),
            "Only challenger and challenged, or the agents whose findings conflict, can speak in it.",
        ));
    };
    if on.is_resolved() || on.ladder.level >= Level::Fallback {
        return admission::set_aside(
            on.state,
            on.opened,
            message.reference(),
            Answer::default(),
            SetAsideReason::Late,
        );
    }
    match &message.body {
        MessageBody::Acknowledgement { commit_by } => acknowledged(on, message, *commit_by),
        MessageBody::Clarification { text } => clarified(on, message, text),
        MessageBody::Evidence(evidence) => evidence::given(
            on,
            Support {
                message: message.reference(),
                evidence: evidence.clone(),
                held,
                revised: held,
                most: evidence::EVIDENCE_MAX,
            },
        ),
        MessageBody::Ruling(_) => Decision::Ignore(Ignored::AlreadyDone),
    }
}

/// The terms of the challenge, where the debate is one and is on level 1.
pub(super) fn open_challenge<'a>(on: &OnLadder<'a>) -> Option<&'a ChallengeTerms> {
    on.opened
        .terms
        .challenge
        .as_ref()
        .filter(|_| on.ladder.level == Level::Agents)
}

fn acknowledged(
    on: &OnLadder<'_>,
    message: &LadderMessage,
    commit_by: Option<Timestamp>,
) -> DebateDecision {
    let Some(terms) = open_challenge(on).filter(|terms| terms.challenged == message.agent_id)
    else {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            "Only the challenged agent acknowledges a challenge, while the agents are still at it.",
            "Give evidence, or answer what you are asked.",
        ));
    };
    if on.ladder.acknowledged {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let (waits_for, held) = on.ladder.rearranged(&[ACKNOWLEDGE], None);
    Decision::Append(DebateEvent::Acknowledged(Acknowledged {
        case_id: on.opened.case_id.clone(),
        heard: message.reference(),
        challenger: terms.challenger.clone(),
        commit_by,
        waits_for,
        held,
    }))
}

fn clarified(on: &OnLadder<'_>, message: &LadderMessage, text: &str) -> DebateDecision {
    let Some(terms) = open_challenge(on) else {
        return Decision::Reject(Fault::invalid(
            "/message_type",
            "Clarifications are passed on while challenger and challenged settle a challenge themselves.",
            "Give evidence instead; it is shown to whoever decides.",
        ));
    };
    let said = on.ladder.clarifications.get(&message.agent_id);
    if said.is_some_and(|said| *said >= CLARIFICATIONS_MAX) {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!(
                "{CLARIFICATIONS_MAX} clarifications of {} have been passed on in this debate.",
                message.agent_id
            ),
            "Give evidence, or say whether it settles the challenge.",
        ));
    }
    let to = if message.agent_id == terms.challenger {
        &terms.challenged
    } else {
        &terms.challenger
    };
    Decision::Append(DebateEvent::Clarified(Clarified {
        case_id: on.opened.case_id.clone(),
        heard: message.reference(),
        to: to.clone(),
        text: text.to_owned(),
    }))
}

fn opinion(on: &OnLadder<'_>, message: &LadderMessage, evidence: &Evidence) -> DebateDecision {
    if on.ladder.opinion.is_some() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let words = std::iter::once(&evidence.statement)
        .chain(&evidence.evidence)
        .chain(&evidence.limitation);
    let text = words
        .filter(|text| !text.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    // The track records are compared as soon as the opinion is there.
    let compare = named(COMPARE, on.context.now);
    let (waits_for, held) = on.ladder.rearranged(&[COMPARE], Some(compare));
    Decision::Append(DebateEvent::OpinionGiven(OpinionGiven {
        case_id: on.opened.case_id.clone(),
        heard: message.reference(),
        text: truncate::words(&text),
        waits_for,
        held,
    }))
}
