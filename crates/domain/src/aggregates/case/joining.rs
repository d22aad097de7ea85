//! An agent joins a case that is under way, and is briefed by itself.
//!
//! | phase                   | the agent is new           | it is in the case |
//! |-------------------------|----------------------------|-------------------|
//! | collecting              | joined, and asked to find  | refused           |
//! | detecting, deliberating | joined                     | refused           |
//! | decided, a gate ahead   | joined                     | refused           |
//! | over                    | refused                    | refused           |
//!
//! Only whoever opened the case and operators let agents in: an agent does not let in itself.

use concord_events::{CaseEvent, CaseOpened, Joined};
use concord_wire::payload::{BoardListing, Lease, Role};
use concord_wire::subject::whose_name;
use concord_wire::{ErrorCode, Fault};

use super::briefing::{brief, shortened};
use super::decide::{CaseDecision, repetition};
use super::opening::PARTICIPANTS_MAX;
use super::state::{CaseState, Phase};
use super::{ReceivedAddition, effects};
use crate::machine::Decision;
use crate::rules::size_budget::{FAN_OUT_BYTES_MAX, json_bytes};

/// Where the agent stands in the request.
const POINTER: &str = "/payload/parameters/agent_id";

/// What a case shares besides its messages.
#[derive(Debug, Clone, Default)]
pub struct SharedNow {
    /// The entries of the board.
    pub board: Vec<BoardListing>,
    /// The commitments that stand.
    pub leases: Vec<Lease>,
}

pub(super) fn add(
    state: &CaseState,
    opened: &CaseOpened,
    received: &ReceivedAddition,
) -> CaseDecision {
    let heard = received.request.as_ref();
    if let Some(repeated) = heard.and_then(|heard| repetition(state, opened, heard)) {
        return repeated;
    }
    if let Err(fault) = check(state, opened, received) {
        return Decision::Reject(fault);
    }
    let agent_id = &received.agent_id;
    let mut after = opened.clone();
    after.participants.push(agent_id.clone());
    after.participants.sort();
    let is_asked = state.phase == Phase::Collecting;
    let assignment = is_asked.then(|| Box::new(effects::assignment(&after)));
    let mut awaited = match state.phase {
        Phase::Collecting => state.awaited(&after, None),
        _ => Vec::new(),
    };
    awaited.sort();
    let briefing = brief(state, &after, awaited, &received.shared);
    // The assignment has the task whole, and the briefing repeats it when it is sent.
    let task = briefing.task.filter(|_| !is_asked);
    let briefing = shortened(concord_wire::payload::SessionBriefing { task, ..briefing });
    Decision::Append(CaseEvent::Joined(Box::new(Joined {
        agent_id: agent_id.clone(),
        by: received.by.clone(),
        request: received.request.clone(),
        assignment,
        briefing: Box::new(briefing),
    })))
}

/// About how many bytes are sent to whoever joins: the briefing, which repeats the task, and the assignment. None where nobody joins.
pub fn sent_bytes(state: &CaseState, received: &ReceivedAddition) -> usize {
    let decision = state
        .opened
        .as_ref()
        .map(|opened| add(state, opened, received));
    let Some(Decision::Append(CaseEvent::Joined(joined))) = decision else {
        return 0;
    };
    let assigned = joined.assignment.as_ref().map_or(0, json_bytes);
    json_bytes(&joined.briefing) + 2 * assigned
}

fn check(state: &CaseState, opened: &CaseOpened, received: &ReceivedAddition) -> Result<(), Fault> {
    let ReceivedAddition {
        by,
        agent_id,
        sender,
        ..
    } = received;
    sender.check_active(by)?;
    if opened.opened_by != *by && !sender.holds(Role::Operator) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{by} has not opened this case, and lets nobody into it."),
            format!("Ask {}, who opened it, or an operator.", opened.opened_by),
        ));
    }
    if state.is_over() {
        return Err(Fault::invalid(
            "/case_id",
            "The case is over; nobody joins it any more.",
            "Open another case.",
        ));
    }
    if let Some(whose) = whose_name(agent_id.as_str()) {
        return Err(Fault::invalid(
            POINTER,
            format!("{agent_id} is the name of {whose}: it cannot take part in a case."),
            "Name an agent.",
        ));
    }
    if opened.participants.contains(agent_id) {
        return Err(Fault::invalid(
            POINTER,
            format!("{agent_id} takes part in the case already."),
            "Nothing is to do; the verb `briefing` says again where the case is.",
        ));
    }
    check_room(opened)
}

fn check_room(opened: &CaseOpened) -> Result<(), Fault> {
    let number = opened.participants.len().saturating_add(1);
    let bytes = json_bytes(&opened.task).saturating_mul(number);
    if number <= PARTICIPANTS_MAX && bytes <= FAN_OUT_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        POINTER,
        format!(
            "The case has {} participants, and there is no room for another.",
            opened.participants.len()
        ),
        format!(
            "A case has {PARTICIPANTS_MAX} participants at most, fewer where its task is large; open another case."
        ),
    ))
}
