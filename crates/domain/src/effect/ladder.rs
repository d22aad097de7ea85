//! The messages of the ladder.

use concord_events::{Briefed, RulingRefusal};
use concord_wire::payload::{ErrorReport, Notification, NotificationSeverity};
use concord_wire::subject::Service;
use concord_wire::{ErrorCode, Fault, MessageId, MessageType};
use serde_json::json;

use super::{Draft, Effect, MEDIATE, RULE};

/// The message of an effect of the ladder; others have drafts of their own.
pub(super) fn draft(effect: Effect, owner: Service) -> Draft {
    match effect {
        Effect::PresentChallenge {
            to,
            debate_id,
            challenge,
            due,
        } => Draft {
            correlation_id: Some(debate_id.to_string()),
            deadline: due,
            requires_response: true,
            ..Draft::new(owner, to, MessageType::Challenge, &challenge)
        },
        Effect::PassOn {
            to,
            debate_id,
            clarification,
        } => Draft {
            correlation_id: Some(debate_id.to_string()),
            ..Draft::new(owner, to, MessageType::Clarification, &clarification)
        },
        Effect::AskMediator { debate_id, asked } => {
            let parameters = json!({ "debate_id": debate_id, "positions": asked.positions });
            let payload =
                json!({ "action": MEDIATE, "parameters": parameters, "deadline": asked.due });
            Draft {
                correlation_id: Some(debate_id.to_string()),
                deadline: Some(asked.due),
                ..Draft::new(owner, asked.mediator, MessageType::Request, &payload)
            }
        }
        Effect::AskExpert { briefed } => ask_expert(*briefed, owner),
        Effect::RefuseRuling {
            to,
            message_id,
            reason,
            explanation,
            changes,
            brief,
        } => {
            let mut report = refusal(&message_id, reason, explanation, brief.as_deref());
            if !changes.is_empty() {
                report.details.insert("changes".into(), json!(changes));
            }
            Draft {
                correlation_id: Some(message_id.to_string()),
                reply_to: Some(message_id),
                ..Draft::new(owner, to, MessageType::Error, &report)
            }
        }
        Effect::Notify { to, event, data } => {
            let about = data.get("debate_id").or_else(|| data.get("thread"));
            let correlation_id = about.and_then(|id| id.as_str()).map(str::to_owned);
            let payload = Notification {
                event: event.into(),
                data,
                severity: NotificationSeverity::Info,
            };
            Draft {
                correlation_id,
                ..Draft::new(owner, to, MessageType::Notification, &payload)
            }
        }
        other => {
            // The caller drafts all others; said aloud rather than dropped, should that change.
            let data = json!({ "effect": format!("{other:?}") });
            let payload = Notification {
                event: "internal".into(),
                data,
                severity: NotificationSeverity::Error,
            };
            Draft::new(owner, owner.agent_id(), MessageType::Notification, &payload)
        }
    }
}

fn ask_expert(briefed: Briefed, owner: Service) -> Draft {
    let debate_id = briefed.brief.debate_id.to_string();
    let payload = json!({
        "action": RULE,
        "parameters": { "debate_id": debate_id, "digest": briefed.digest, "brief": briefed.brief },
        "deadline": briefed.due,
    });
    Draft {
        correlation_id: Some(debate_id),
        deadline: Some(briefed.due),
        requires_response: true,
        ..Draft::new(owner, briefed.expert, MessageType::Request, &payload)
    }
}

fn refusal(
    message_id: &MessageId,
    reason: RulingRefusal,
    explanation: String,
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
    report
        .details
        .insert("message_id".into(), json!(message_id));
    report.details.insert("reason".into(), json!(reason));
    if let Some(brief) = brief {
        report.details.insert("digest".into(), json!(brief.digest));
        report.details.insert("brief".into(), json!(brief.brief));
    }
    report
}
