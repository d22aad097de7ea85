//! Opening a case: who may, under which policy, with whom and what.
//!
//! The policy is what stands under the name that the opener asks for. What else the opener changes must be within the bounds of
//! that version; operators are free of them.

use std::collections::BTreeSet;

use concord_events::{CaseEvent, CaseOpened};
use concord_wire::id::GateName;
use concord_wire::payload::{OpenCase, Role, Task};
use concord_wire::policy::Policy;
use concord_wire::subject::whose_name;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault};

use super::decide::{CaseDecision, reused_message_id};
use super::state::CaseState;
use super::{OpenRequest, gate};
use crate::aggregates::person::Act;
use crate::aggregates::policy::PolicyVersion;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::{FAN_OUT_BYTES_MAX, TASK_BYTES_MAX, json_bytes};

/// Most participants of a case.
pub const PARTICIPANTS_MAX: usize = 64;

pub(super) fn open(state: &CaseState, context: &Context, asked: &OpenRequest) -> CaseDecision {
    let OpenRequest {
        opened_by,
        request_id,
        request,
        ..
    } = asked;
    if let Some(opened) = &state.opened {
        if is_same(state, opened, asked) {
            return Decision::Ignore(Ignored::Repetition);
        }
        return Decision::Reject(
            request
                .case_id
                .as_ref()
                .map_or_else(reused_message_id, exists),
        );
    }
    let (policy, base) = match check(asked) {
        Ok(checked) => checked,
        Err(fault) => return Decision::Reject(fault),
    };
    let participants: BTreeSet<_> = request.participants.iter().cloned().collect();
    let gates = request.gates.iter().map(GateName::as_str);
    Decision::Append(CaseEvent::Opened(CaseOpened {
        opened_by: opened_by.clone(),
        request_id: request_id.clone(),
        policy_digest: policy.digest(),
        findings_due: context.now.plus_millis(policy.finding_timeout_ms),
        case_due: context.now.plus_millis(policy.case_timeout_ms),
        participants: participants.into_iter().collect(),
        task: request.task.clone(),
        // Nothing provisional becomes final unseen, unless the policy says so.
        final_gate: request.gates.is_empty() && !policy.ladder.pass_unreviewed,
        gates: gates.map(str::to_owned).collect(),
        circumstances: request.circumstances.clone(),
        policy,
        policy_version: Some(base.version),
        by_operator: is_free(asked),
    }))
}

/// Whether it is the request that has opened the case. A policy may have got a new version since, so it is made again of the version
/// that the case began with.
fn is_same(state: &CaseState, opened: &CaseOpened, asked: &OpenRequest) -> bool {
    let request = &asked.request;
    let participants = opened.participants.iter();
    let first = participants.filter(|agent| !state.joined.contains(*agent));
    let participants: BTreeSet<_> = request.participants.iter().collect();
    let gates = request.gates.iter().map(GateName::as_str);
    let version = opened.policy_version.unwrap_or_default();
    let resolved = asked
        .known
        .resolve(&request.policy, Some(version), asked.policy_pointer);
    (&opened.opened_by, &opened.request_id) == (&asked.opened_by, &asked.request_id)
        && resolved.is_ok_and(|(policy, _)| policy == opened.policy)
        && opened.task == request.task
        && opened.gates.iter().map(String::as_str).eq(gates)
        && opened.circumstances == request.circumstances
        && first.eq(participants)
}

/// Whether whoever opens the case is not held by the bounds of policies.
fn is_free(asked: &OpenRequest) -> bool {
    asked.sender.holds(Role::Operator)
}

/// Checks a request that opens a case: its policy, and the version that it was made from.
fn check(asked: &OpenRequest) -> Result<(Policy, PolicyVersion), Fault> {
    let (request, pointer) = (&asked.request, asked.policy_pointer);
    asked.sender.allow(&asked.opened_by, &Act::Open)?;
    let (policy, base) = asked.known.resolve(&request.policy, None, pointer)?;
    if !is_free(asked) {
        base.bounds.check(&base.policy, &policy, pointer)?;
    }
    check_participants(&request.participants)?;
    check_task(&request.task, request.participants.len())?;
    gate::check_names(&request.gates)?;
    let circumstances = &request.circumstances;
    circumstances.check("/payload/parameters/circumstances")?;
    Ok((policy, base))
}

/// The fault for opening a case that exists. If it were ignored, the sender would believe that the
/// case is theirs.
fn exists(case: &CaseId) -> Fault {
    Fault::invalid(
        "/payload/parameters/case_id",
        format!("The case {case} exists already."),
        format!(
            "Choose another case_id, or leave it out and one is made; `concord case show {case}` shows this case."
        ),
    )
}

fn check_participants(participants: &[AgentId]) -> Result<(), Fault> {
    const POINTER: &str = "/payload/parameters/participants";
    if participants.is_empty() || participants.len() > PARTICIPANTS_MAX {
        return Err(Fault::invalid(
            POINTER,
            format!(
                "A case has 1 to {PARTICIPANTS_MAX} participants, not {}.",
                participants.len()
            ),
            "Name the agents that are to give a finding.",
        ));
    }
    for (index, agent) in participants.iter().enumerate() {
        if let Some(whose) = whose_name(agent.as_str()) {
            return Err(Fault::invalid(
                format!("{POINTER}/{index}"),
                format!("{agent} is the name of {whose}: it cannot take part in a case."),
                "Name agents only.",
            ));
        }
        if participants
            .iter()
            .take(index)
            .any(|earlier| earlier == agent)
        {
            return Err(Fault::invalid(
                format!("{POINTER}/{index}"),
                format!("{agent} is named twice."),
                "Name each agent once.",
            ));
        }
    }
    Ok(())
}

/// About how many bytes are sent because of a request: the task goes to each participant. Nothing is sent because of one that
/// is too large.
pub(super) fn fan_out_bytes(request: &OpenCase) -> usize {
    let bytes = json_bytes(&request.task).saturating_mul(request.participants.len());
    if bytes <= FAN_OUT_BYTES_MAX { bytes } else { 0 }
}

/// Checks the size of the task: it is stored in one event, with the policy and the participants,
/// and sent to each of them in one message.
fn check_task(task: &Task, participants: usize) -> Result<(), Fault> {
    let bytes = json_bytes(task);
    let refused = |what: String| {
        Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/parameters/task",
            what,
            "Put large contents into an object store and give a reference to them in `input`.",
        ))
    };
    if bytes > TASK_BYTES_MAX {
        return refused(format!(
            "The task has {bytes} bytes; at most {TASK_BYTES_MAX} are accepted."
        ));
    }
    let sent = bytes.saturating_mul(participants);
    if sent > FAN_OUT_BYTES_MAX {
        return refused(format!(
            "A task of {bytes} bytes for {participants} participants has {sent} bytes in all; at most {FAN_OUT_BYTES_MAX} are sent."
        ));
    }
    Ok(())
}
