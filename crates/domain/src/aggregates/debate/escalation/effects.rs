//! The effects of the events of the ladder.

use concord_events::{DebateEvent, DebateOpened, Escalated};
use concord_wire::payload::{Challenge, Clarification};
use concord_wire::{AgentId, DebateId};
use serde_json::json;

use crate::effect::Effect;

/// The effects of an event of the ladder. Other events have none here.
pub(in crate::aggregates::debate) fn effects(
    debate_id: &DebateId,
    event: &DebateEvent,
) -> Vec<Effect> {
    match event {
        DebateEvent::Opened(opened) => challenge(opened),
        DebateEvent::Acknowledged(acknowledged) => {
            let (by, until) = (&acknowledged.heard.agent_id, acknowledged.commit_by);
            let data = json!({ "debate_id": debate_id, "by": by, "commit_by": until });
            vec![Effect::tell(
                acknowledged.challenger.clone(),
                "challenge_acknowledged",
                data,
            )]
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
        DebateEvent::Assigned(assigned) => vec![Effect::AskExpert {
            briefed: Box::new(assigned.briefed.clone()),
        }],
        DebateEvent::Unassigned(unassigned) => {
            let data = json!({ "debate_id": debate_id, "topic": unassigned.topic });
            vec![Effect::tell(
                unassigned.expert.clone(),
                "debate_unassigned",
                data,
            )]
        }
        DebateEvent::Reminded(reminded) => {
            let (topic, percent, due) = (&reminded.topic, reminded.percent, reminded.due);
            let data =
                json!({ "debate_id": debate_id, "topic": topic, "percent": percent, "due": due });
            let tell = |expert: &AgentId| Effect::tell(expert.clone(), "ruling_due", data.clone());
            reminded.expert.iter().map(tell).collect()
        }
        DebateEvent::RulingSetAside(aside) => vec![Effect::RefuseRuling {
            to: aside.heard.agent_id.clone(),
            message_id: aside.heard.message_id.clone(),
            reason: aside.reason,
            explanation: aside.explanation.clone(),
            changes: aside.changes.clone(),
            brief: aside.brief.clone().map(Box::new),
        }],
        DebateEvent::FellBack(fell) => vec![Effect::tell_all(
            "debate_provisional",
            json!({ "debate_id": debate_id, "topic": fell.topic, "outcome": fell.outcome }),
        )],
        DebateEvent::AwaitsGate(awaits) => {
            let data = json!({ "debate_id": debate_id, "gate": awaits.gate });
            vec![Effect::tell_all("debate_awaits_gate", data)]
        }
        DebateEvent::OutcomeKnown(known) => {
            let data = json!({
                "debate_id": debate_id, "topic": known.topic, "position": known.position, "value": known.value,
                "by": known.heard.agent_id, "explanation": known.explanation, "parties": known.parties,
            });
            vec![Effect::tell_all("outcome_known", data)]
        }
        DebateEvent::Answered(_)
        | DebateEvent::AnswerSetAside(_)
        | DebateEvent::RoundClosed(_)
        | DebateEvent::Resolved(_)
        | DebateEvent::OpinionGiven(_)
        | DebateEvent::DeadlinesMoved(_) => Vec::new(),
    }
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
        provisional_resolution: None,
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
    let data = json!({
        "debate_id": debate_id, "topic": escalated.topic, "from": escalated.from, "to": escalated.to, "reason": escalated.reason,
        "waits_for": escalated.waits_for, "mediation": escalated.mediation,
    });
    let tell = Effect::tell_all("debate_escalated", data);
    let ask = escalated
        .mediator
        .as_ref()
        .map(|asked| Effect::AskMediator {
            debate_id: debate_id.clone(),
            asked: Box::new(asked.clone()),
        });
    std::iter::once(tell).chain(ask).collect()
}
