//! The effects of the events of the ladder.

use concord_events::{
    self as events, Acknowledged, DebateAssigned, DebateEvent, DebateOpened, Escalated, Reminded,
};
use concord_wire::payload::notification::{
    ChallengeAcknowledged, DebateAwaitsGate, DebateEscalated, DebateProvisional, DebateUnassigned,
    OutcomeKnown, RulingDue, UnassignedReason,
};
use concord_wire::payload::{Challenge, Clarification};
use concord_wire::{AgentId, DebateId};

use crate::effect::Effect;

/// The effects of an event of the ladder. Other events have none here.
pub(in crate::aggregates::debate) fn effects(
    debate_id: &DebateId,
    event: &DebateEvent,
) -> Vec<Effect> {
    match event {
        DebateEvent::Opened(opened) => challenge(opened),
        DebateEvent::Acknowledged(acknowledged) => {
            vec![self::acknowledged(debate_id, acknowledged)]
        }
        DebateEvent::Clarified(clarified) => vec![Effect::PassOn {
            to: clarified.to.clone(),
            debate_id: debate_id.clone(),
            clarification: Clarification {
                text: clarified.text.clone(),
            },
        }],
        DebateEvent::EvidenceGiven(given) => {
            let ask = given.question.as_ref().map(|asked| Effect::AskParty {
                to: asked.to.clone(),
                question: Box::new(asked.question.clone()),
            });
            let brief = given.brief.clone().map(|briefed| Effect::AskExpert {
                briefed: Box::new(briefed),
            });
            ask.into_iter().chain(brief).collect()
        }
        DebateEvent::Escalated(escalated) => self::escalated(debate_id, escalated),
        DebateEvent::Assigned(assigned) => self::assigned(debate_id, assigned),
        DebateEvent::Unassigned(unassigned) => {
            let data = DebateUnassigned {
                debate_id: debate_id.clone(),
                topic: unassigned.topic.clone(),
                reason: unassigned.reason,
            };
            vec![Effect::tell(unassigned.expert.clone(), data)]
        }
        DebateEvent::Reminded(reminded) => self::reminded(debate_id, reminded),
        DebateEvent::RulingSetAside(aside) => vec![Effect::RefuseRuling {
            to: aside.heard.agent_id.clone(),
            message_id: aside.heard.message_id.clone(),
            reason: aside.reason,
            explanation: aside.explanation.clone(),
            changes: aside.changes.clone(),
            brief: aside.brief.clone().map(Box::new),
        }],
        DebateEvent::FellBack(fell) => vec![Effect::tell_all(DebateProvisional {
            debate_id: debate_id.clone(),
            topic: fell.topic.clone(),
            outcome: fell.outcome.clone(),
        })],
        DebateEvent::AwaitsGate(awaits) => vec![Effect::tell_all(DebateAwaitsGate {
            debate_id: debate_id.clone(),
            gate: awaits.gate.clone(),
        })],
        DebateEvent::OutcomeKnown(known) => vec![outcome_known(debate_id, known)],
        DebateEvent::Flushed(_)
        | DebateEvent::Synced(_)
        | DebateEvent::Answered(_)
        | DebateEvent::AnswerSetAside(_)
        | DebateEvent::RoundClosed(_)
        | DebateEvent::Resolved(_)
        | DebateEvent::OpinionGiven(_)
        | DebateEvent::DeadlinesMoved(_) => Vec::new(),
    }
}

fn acknowledged(debate_id: &DebateId, acknowledged: &Acknowledged) -> Effect {
    let data = ChallengeAcknowledged {
        debate_id: debate_id.clone(),
        by: acknowledged.heard.agent_id.clone(),
        commit_by: acknowledged.commit_by,
    };
    Effect::tell(acknowledged.challenger.clone(), data)
}

/// The expert is asked, and who had the debate until now is told.
fn assigned(debate_id: &DebateId, assigned: &DebateAssigned) -> Vec<Effect> {
    let ask = Effect::AskExpert {
        briefed: Box::new(assigned.briefed.clone()),
    };
    let told = assigned.instead_of.as_ref().map(|before| {
        let data = DebateUnassigned {
            debate_id: debate_id.clone(),
            topic: assigned.briefed.brief.topic.clone(),
            reason: UnassignedReason::Reassigned,
        };
        Effect::tell(before.expert.clone(), data)
    });
    std::iter::once(ask).chain(told).collect()
}

fn reminded(debate_id: &DebateId, reminded: &Reminded) -> Vec<Effect> {
    let data = RulingDue {
        debate_id: debate_id.clone(),
        topic: reminded.topic.clone(),
        percent: reminded.percent,
        due: reminded.due,
    };
    let tell = |expert: &AgentId| Effect::tell(expert.clone(), data.clone());
    reminded.expert.iter().map(tell).collect()
}

fn outcome_known(debate_id: &DebateId, known: &events::OutcomeKnown) -> Effect {
    Effect::tell_all(OutcomeKnown {
        debate_id: debate_id.clone(),
        topic: known.topic.clone(),
        position: known.position.clone(),
        value: known.value.clone(),
        by: known.heard.agent_id.clone(),
        explanation: known.explanation.clone(),
        parties: known.parties.clone(),
    })
}

/// The challenged agent is told what it is challenged with.
fn challenge(opened: &DebateOpened) -> Vec<Effect> {
    let Some(terms) = &opened.terms.challenge else {
        return Vec::new();
    };
    let of = |agent: &AgentId| {
        opened
            .conflict
            .positions
            .iter()
            .find(|position| position.agent_id == *agent)
    };
    let (own, theirs) = (of(&terms.challenged), of(&terms.challenger));
    let challenge = Challenge {
        challenge_id: Some(terms.challenge_id.clone()),
        challenger: terms.challenger.clone(),
        challenged: terms.challenged.clone(),
        disputed_finding: opened.conflict.topic.clone(),
        challenge_basis: terms.basis.clone(),
        required_evidence: terms.required_evidence.clone(),
        escalation_timer: terms
            .escalation_timer
            .and_then(|seconds| i64::try_from(seconds).ok()),
        priority: opened.terms.priority,
        provisional_resolution: terms.provisional_resolution.clone(),
        finding_id: None,
        metric: Some(opened.conflict.subject.clone()),
        domain: opened.terms.domain.clone(),
        challenged_value: own.and_then(|position| position.value.clone()),
        position: theirs.map(|position| position.position.clone()),
        value: theirs.and_then(|position| position.value.clone()),
        evidence: theirs
            .map(|position| position.evidence.clone())
            .unwrap_or_default(),
        dependants: opened.terms.dependants.clone(),
        historical_context: terms.historical_context.clone(),
        added_context: opened.terms.added_context.clone(),
    };
    let due = opened.waits_for.iter().map(|deadline| deadline.due).min();
    vec![Effect::PresentChallenge {
        to: terms.challenged.clone(),
        debate_id: opened.conflict.conflict_id.clone(),
        challenge: Box::new(challenge),
        due,
    }]
}

fn escalated(debate_id: &DebateId, escalated: &Escalated) -> Vec<Effect> {
    let tell = Effect::tell_all(DebateEscalated {
        debate_id: debate_id.clone(),
        topic: escalated.topic.clone(),
        from: escalated.from,
        to: escalated.to,
        reason: escalated.reason,
        waits_for: escalated.waits_for.clone(),
        mediation: escalated.mediation.clone(),
    });
    let ask = escalated
        .mediator
        .as_ref()
        .map(|asked| Effect::AskMediator {
            debate_id: debate_id.clone(),
            asked: Box::new(asked.clone()),
        });
    std::iter::once(tell).chain(ask).collect()
}
