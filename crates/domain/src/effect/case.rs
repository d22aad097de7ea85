//! The messages of a case and of the discussion in its debates.

use concord_wire::fault::with_article;
use concord_wire::payload::{
    Answer, Conflict, DebateTerms, ErrorReport, OPEN_DEBATE, OpenDebate, Question, SessionBriefing,
    SetAsideReason, TaskAssignment,
};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId, ErrorCode, Fault, MessageId, MessageType};
use serde_json::json;

use super::draft::Draft;
use super::exchange;

pub(super) fn confirm(
    from: Service,
    to: AgentId,
    request_id: MessageId,
    case: Option<&CaseId>,
) -> Draft {
    exchange::respond(from, to, request_id, json!({ "case_id": case }))
}

pub(super) fn brief(from: Service, to: AgentId, briefing: &SessionBriefing) -> Draft {
    Draft::new(from, to, MessageType::SessionBriefing, briefing)
}

pub(super) fn assign_task(from: Service, to: AgentId, assignment: &TaskAssignment) -> Draft {
    let draft = Draft::new(from, to, MessageType::TaskAssignment, assignment)
        .waiting_until(Some(assignment.deadline));
    match &assignment.work {
        Some(work) => draft.about(&work.task_id),
        None => draft,
    }
}

pub(super) fn report_set_aside(
    from: Service,
    to: AgentId,
    message_id: MessageId,
    reason: SetAsideReason,
    what: &str,
) -> Draft {
    let report = set_aside_report(reason, what, &message_id);
    Draft::new(from, to, MessageType::Error, &report).answering(message_id)
}

fn set_aside_report(reason: SetAsideReason, what: &str, message_id: &MessageId) -> ErrorReport {
    let fault = match reason {
        SetAsideReason::Late => Fault::new(
            ErrorCode::Timeout,
            "",
            format!("The {what} came after its phase had closed; it is recorded and not used."),
            "Answer before the deadline that stands in the message you were sent.",
        ),
        SetAsideReason::Repeated => Fault::invalid(
            "",
            format!(
                "You had already given {}; this one is recorded and not used.",
                with_article(what)
            ),
            "Give one answer to each assignment and each question.",
        ),
    };
    let mut report = ErrorReport::from(&fault);
    report
        .details
        .insert("message_id".into(), json!(message_id));
    report
}

pub(super) fn open_debate(
    from: Service,
    case: Option<&CaseId>,
    conflict: Conflict,
    policy: Policy,
    terms: DebateTerms,
) -> Draft {
    debug_assert!(case.is_some(), "a debate is opened outside of any case");
    let debate_id = conflict.conflict_id.clone();
    let parameters = case.map(|case| OpenDebate {
        case_id: case.clone(),
        conflict,
        policy,
        terms,
    });
    let payload = json!({ "action": OPEN_DEBATE, "parameters": parameters });
    let to = Service::DebateFacilitator.agent_id();
    Draft::new(from, to, MessageType::Request, &payload).about(&debate_id)
}

pub(super) fn ask_party(from: Service, to: AgentId, question: &Question) -> Draft {
    let draft = Draft::new(from, to, MessageType::Question, question)
        .about(&question.debate_id)
        .waiting_until(Some(question.deadline));
    Draft {
        round: Some(question.round),
        ..draft
    }
}

/// Told is not asked: it has no deadline, answers nothing the party has sent, and waits for no answer.
pub(super) fn tell_answer(
    from: Service,
    to: AgentId,
    debate_id: &DebateId,
    round: u32,
    agrees: bool,
    answer: &Answer,
) -> Draft {
    let message_type = if agrees {
        MessageType::Agreement
    } else {
        MessageType::Disagreement
    };
    Draft {
        round: Some(round),
        ..Draft::new(from, to, message_type, answer).about(debate_id)
    }
}
