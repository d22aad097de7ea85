//! What to do about an input of a case. The table is in the module above.

use concord_events::{
    CaseCancelled, CaseEvent, CaseOpened, DeadlineElapsed, FindingRecorded, FindingsClosed, Heard,
    ReceivedFinding, SetAsideFinding,
};
use concord_wire::payload::{SetAsideReason, Status};
use concord_wire::{AgentId, DebateId, ErrorCode, Fault, MessageId};

use super::membership::no_such_case;
use super::state::{CaseState, Phase};
use super::{
    CASE, CaseInput, FINDINGS, challenge, conclude, confirming, figures, flag, gate, joining,
    opening,
};
use crate::aggregates::heard_before::{key_of, repeated};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::{json_bytes, truncate};

pub(super) type CaseDecision = Decision<CaseEvent>;

pub(super) fn decide(state: &CaseState, context: &Context, input: &CaseInput) -> CaseDecision {
    if let CaseInput::Open(request) = input {
        return opening::open(state, context, request);
    }
    let (Some(opened), Some(case_id)) = (&state.opened, &state.case_id) else {
        return Decision::Reject(no_such_case());
    };
    match input {
        CaseInput::Open(_) => Decision::Ignore(Ignored::AlreadyDone),
        CaseInput::Finding(received) => finding(state, opened, received),
        CaseInput::Detected(detected) => conclude::detected(state, opened, detected),
        CaseInput::Resolved(outcome) => {
            conclude::resolved(state, context, case_id, opened, outcome)
        }
        CaseInput::Elapsed(deadline) => elapsed(state, opened, deadline),
        CaseInput::Challenge(received) => challenge::challenge(state, case_id, opened, received),
        CaseInput::Review(received) => gate::review(state, case_id, opened, received),
        CaseInput::Flag(flagged) => flag::flag(state, flagged),
        CaseInput::Add(received) => joining::add(state, opened, received),
        CaseInput::Figures { run, figures } => figures::record(state, opened, *run, figures),
        CaseInput::Confirm(received) => confirming::confirm(state, opened, received),
        CaseInput::Note(noted) => confirming::note(state, opened, noted),
        CaseInput::Cancel { by, why } => cancel(state, by, why),
    }
}

/// What to do about a message whose id its sender has used before; `None` for a new id. What others have sent under it is no matter.
pub(super) fn repetition(
    state: &CaseState,
    opened: &CaseOpened,
    heard: &Heard,
) -> Option<CaseDecision> {
    let (id, by) = (&heard.message_id, &heard.agent_id);
    if has_opened(opened, id, by) || state.received_under(id, by).is_some() {
        return Some(Decision::Reject(reused_message_id()));
    }
    let known = state.seen.get(&key_of(heard))?;
    Some(repeated(known, &heard.digest))
}

/// Whether the request that opened the case came under this id, from this sender.
fn has_opened(opened: &CaseOpened, id: &MessageId, by: &AgentId) -> bool {
    (&opened.request_id, &opened.opened_by) == (id, by)
}

fn cancel(state: &CaseState, by: &AgentId, why: &str) -> CaseDecision {
    if state.phase == Phase::Cancelled {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    if state.phase == Phase::Decided && state.gate().is_none() {
        return Decision::Reject(Fault::invalid(
            "/case_id",
            "The case has its decision.",
            "Nothing is left to cancel.",
        ));
    }
    let has_ended = |id: &DebateId| {
        state
            .outcomes
            .get(id)
            .is_some_and(|outcome| outcome.status != Status::Provisional)
    };
    let ids = state.debated.iter().map(|conflict| &conflict.conflict_id);
    let debates = ids.filter(|id| !has_ended(id)).cloned().collect();
    Decision::Append(CaseEvent::Cancelled(CaseCancelled {
        by: by.clone(),
        why: truncate::words(why),
        debates,
    }))
}

fn check_size(opened: &CaseOpened, received: &ReceivedFinding) -> Result<(), Fault> {
    let (bytes, bytes_max) = (
        json_bytes(&received.finding),
        opened.policy.finding_bytes_max,
    );
    if usize::try_from(bytes_max).is_ok_and(|bytes_max| bytes <= bytes_max) {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload",
        format!("The finding has {bytes} bytes; at most {bytes_max} are accepted in this case."),
        "Quote less, or refer to where the whole can be read, and send it again with a new message_id before the deadline.",
    ))
}

fn finding(state: &CaseState, opened: &CaseOpened, received: &ReceivedFinding) -> CaseDecision {
    // An event's id follows from its cause: under an id that its sender has used up the finding could never be
    // stored. What others have sent under it is no matter.
    let (id, by) = (&received.message_id, &received.agent_id);
    let is_seen = state.seen.contains_key(&(id.clone(), by.clone()));
    if has_opened(opened, id, by) || is_seen {
        return Decision::Reject(reused_message_id());
    }
    if let Some(earlier) = state.received_under(id, by) {
        return repeated(&earlier.digest, &received.digest);
    }
    if !opened.participants.contains(&received.agent_id) {
        return Decision::Reject(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{} takes no part in this case.", received.agent_id),
            "Only participants can give findings; whoever opened the case can let you in with add_participant.",
        ));
    }
    if let Err(fault) = check_size(opened, received) {
        return Decision::Reject(fault);
    }
    let is_repeated = state
        .findings
        .iter()
        .any(|earlier| earlier.agent_id == received.agent_id);
    if is_repeated || state.phase != Phase::Collecting {
        let reason = if is_repeated {
            SetAsideReason::Repeated
        } else {
            SetAsideReason::Late
        };
        return set_aside(state, opened, received, reason);
    }
    let awaited = state.awaited(opened, Some(&received.agent_id));
    if awaited.is_empty() {
        let last = Some(received.clone());
        return Decision::Append(CaseEvent::FindingsClosed(FindingsClosed {
            last,
            missing: awaited,
        }));
    }
    Decision::Append(CaseEvent::FindingRecorded(FindingRecorded {
        received: received.clone(),
    }))
}

/// Records a late or repeated finding, if the policy leaves room for it.
fn set_aside(
    state: &CaseState,
    opened: &CaseOpened,
    received: &ReceivedFinding,
    reason: SetAsideReason,
) -> CaseDecision {
    if state.set_aside.len() >= opened.policy.set_aside_max as usize {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            "This case has recorded as many late and repeated findings as its policy allows.",
            "Give one finding, before the deadline in the task assignment.",
        ));
    }
    Decision::Append(CaseEvent::FindingSetAside(SetAsideFinding {
        received: received.clone(),
        reason,
    }))
}

/// The fault for a message whose id was used before with other contents.
pub(crate) fn reused_message_id() -> Fault {
    Fault::invalid(
        "/message_id",
        "This message_id was used before with other contents.",
        "Give every message an id of its own, for example a UUID; repeat an id only with the same contents.",
    )
}

fn elapsed(state: &CaseState, opened: &CaseOpened, deadline: &DeadlineElapsed) -> CaseDecision {
    match deadline.name.as_str() {
        FINDINGS if state.phase == Phase::Collecting && deadline.due == opened.findings_due => {
            let missing = state.awaited(opened, None);
            Decision::Append(CaseEvent::FindingsClosed(FindingsClosed {
                last: None,
                missing,
            }))
        }
        CASE if state.phase < Phase::Decided
            && !state.waits_for_debates
            && deadline.due == opened.case_due =>
        {
            Decision::Append(conclude::timed_out(state, opened, deadline))
        }
        _ => Decision::Ignore(Ignored::DeadlineNotOpen),
    }
}
