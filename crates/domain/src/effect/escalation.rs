//! The messages of an escalated debate: between challenger and challenged agent, to the mediator and to the expert.

use concord_events::{Briefed, MediatorAsked, RulingRefusal};
use concord_wire::payload::{Challenge, Clarification, ErrorReport, MEDIATE, RULE};
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId, ErrorCode, Fault, MessageId, MessageType, Timestamp};
use serde_json::json;

use super::draft::Draft;

pub(super) fn present_challenge(
    from: Service,
    to: AgentId,
    debate_id: &DebateId,
    challenge: &Challenge,
    due: Option<Timestamp>,
) -> Draft {
    Draft::new(from, to, MessageType::Challenge, challenge)
        .about(debate_id)
        .waiting_until(due)
}

pub(super) fn pass_on(
    from: Service,
    to: AgentId,
    debate_id: &DebateId,
    clarification: &Clarification,
) -> Draft {
    Draft::new(from, to, MessageType::Clarification, clarification).about(debate_id)
}

/// The request for an opinion. No answer is waited for: mediation goes on without one.
pub(super) fn ask_mediator(from: Service, debate_id: &DebateId, asked: MediatorAsked) -> Draft {
    let parameters = json!({ "debate_id": debate_id, "positions": asked.positions });
    let payload = json!({ "action": MEDIATE, "parameters": parameters, "deadline": asked.due });
    let draft = Draft::new(from, asked.mediator, MessageType::Request, &payload).about(debate_id);
    Draft {
        deadline: Some(asked.due),
        ..draft
    }
}

pub(super) fn ask_expert(from: Service, briefed: Briefed) -> Draft {
    let debate_id = briefed.brief.debate_id.clone();
    let payload = json!({
        "action": RULE,
        "parameters": { "debate_id": debate_id, "digest": briefed.digest, "brief": briefed.brief },
        "deadline": briefed.due,
    });
    Draft::new(from, briefed.expert, MessageType::Request, &payload)
        .about(&debate_id)
        .waiting_until(Some(briefed.due))
}

/// The error that says why a ruling does not count, with the brief to rule on instead where there is one.
pub(super) fn refusal(
    message_id: &MessageId,
    reason: RulingRefusal,
    explanation: String,
    changes: &[String],
    brief: Option<&Briefed>,
) -> ErrorReport {
    let (code, advice) = match reason {
        RulingRefusal::Second => (
            ErrorCode::InvalidRequest,
            "Nothing is to be done: the debate has its ruling.",
        ),
        RulingRefusal::TimedOut => (
            ErrorCode::Timeout,
            "Review the provisional decision at the gate of the case.",
        ),
        RulingRefusal::Changed => (
            ErrorCode::InvalidRequest,
            "Read the brief as it is now, and rule on its digest.",
        ),
    };
    let mut report = ErrorReport::from(&Fault::new(code, "", explanation, advice));
    let details = &mut report.details;
    details.insert("message_id".into(), json!(message_id));
    details.insert("reason".into(), json!(reason));
    if let Some(brief) = brief {
        details.insert("digest".into(), json!(brief.digest));
        details.insert("brief".into(), json!(brief.brief));
    }
    if !changes.is_empty() {
        details.insert("changes".into(), json!(changes));
    }
    report
}
