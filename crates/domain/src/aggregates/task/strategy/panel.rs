//! A case of five phases: those who fit are its participants, and its decision is the result.
//!
//! The case has the id of the task. Agents answer its assignment with a finding, as in any case.

use concord_events::TaskOutcome;
use concord_wire::payload::OpenCase;
use concord_wire::{CaseId, ErrorCode, Fault, MessageId, Token};
use serde_json::json;

use super::{Failure, Next, Progress, TaskStrategy};
use crate::aggregates::case::{CaseState, OpenRequest};
use crate::aggregates::person::Authority;
use crate::aggregates::policy::KnownPolicies;
use crate::aggregates::task::OpenedTask;

pub(super) struct Panel;

impl TaskStrategy for Panel {
    fn after(&self, _: &Progress<'_>) -> Next {
        Next::Wait
    }

    fn at_deadline(&self, _: &Progress<'_>) -> Next {
        Next::Fail(Failure {
            code: ErrorCode::Timeout,
            reason: "deadline",
            why: "The case was not decided in time, and is cancelled.".to_owned(),
            advice: "Give it more time (deadline_ms): the phases of a case last as long as its policy says.",
        })
    }

    fn opens_case(&self) -> bool {
        true
    }
}

/// The request that opens the case of a task; the stored policies must still be read. That its opener may open one is found when the task
/// is opened. The bounds of policies hold for everybody here, operators too.
pub fn request(task_id: &Token, asked: &OpenedTask, policy_pointer: &'static str) -> OpenRequest {
    let terms = &asked.terms;
    let participants = asked.candidates.iter().map(|one| one.agent.clone());
    OpenRequest {
        opened_by: asked.opened_by.clone(),
        request_id: request_id(task_id),
        request: OpenCase {
            policy: terms.policy.clone(),
            ..OpenCase::new(participants.collect(), terms.task.clone())
        },
        policy_pointer,
        known: KnownPolicies::default(),
        sender: Authority::of_opener(&asked.opened_by),
    }
}

/// The id of the request by which the case of a task is opened.
pub fn request_id(task_id: &Token) -> MessageId {
    MessageId::derived(&format!("panel/{task_id}"))
}

/// How the task ends by what has become of its case; none while it is not decided. A version that is still provisional is the result,
/// too, and says so: a review can take days, and each later version is told as those of any case.
pub fn outcome(case_id: &CaseId, case: &CaseState) -> Option<TaskOutcome> {
    if let Some(decision) = &case.decision {
        let by = decision.findings.iter();
        let result = json!({
            "case_id": case_id,
            "version": decision.version,
            "outcome": decision.outcome,
            "reason": decision.reason,
            "final": decision.is_final(),
        });
        return Some(TaskOutcome::Completed {
            result,
            by: by.map(|finding| finding.agent_id.clone()).collect(),
            partial: !decision.is_final(),
        });
    }
    case.is_over().then(|| TaskOutcome::Failed {
        code: ErrorCode::AgentUnavailable,
        reason: "case_cancelled".to_owned(),
        why: format!("The case {case_id} was cancelled before it was decided."),
        advice: format!("See why: concord case show {case_id}"),
    })
}

/// How the task ends where its case is refused after all.
pub fn refused(fault: &Fault) -> TaskOutcome {
    TaskOutcome::Failed {
        code: fault.code,
        reason: "case_refused".to_owned(),
        why: format!("The case could not be opened: {}", fault.message),
        advice: fault.advice.clone(),
    }
}
