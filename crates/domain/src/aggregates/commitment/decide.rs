//! What to do about an input of commitments. The table is in the module above.

use concord_events::{CommitmentEvent, DeadlineElapsed, EndedLease, LeaseGranted, LeasesEnded};
use concord_wire::payload::{CommitmentAct, CommitmentEnd, Lease};
use concord_wire::{ErrorCode, Fault, Timestamp};

use super::{CommitmentState, LEASE, LEASES_MAX, ReceivedCommitment};
use crate::machine::{Context, Decision, Ignored};

type CommitmentDecision = Decision<CommitmentEvent>;

const RESOURCE: &str = "/payload/resource";

pub(super) fn said(
    state: &CommitmentState,
    context: &Context,
    received: &ReceivedCommitment,
) -> CommitmentDecision {
    if let Some(repeated) = state.causes.repetition(&received.heard) {
        return repeated;
    }
    let decided = match received.said.act {
        CommitmentAct::Commit => commit(state, context, received),
        CommitmentAct::Renew => renew(state, context, received),
        CommitmentAct::Release => release(state, received),
    };
    decided.map_or_else(Decision::Reject, Decision::Append)
}

fn commit(
    state: &CommitmentState,
    context: &Context,
    received: &ReceivedCommitment,
) -> Result<CommitmentEvent, Fault> {
    let (said, holder) = (&received.said, &received.heard.agent_id);
    let standing = state.standing(received.case_id.as_ref());
    if standing.contains_key(&said.resource) {
        return renew(state, context, received);
    }
    let until = until(context, received)?;
    let held = standing.values();
    let held = held.filter(|lease| lease.holder == *holder).count();
    if held >= received.bounds.per_agent as usize {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            RESOURCE,
            format!("{holder} has committed to {held} resources here, and can to no more."),
            "Release one first.",
        ));
    }
    if standing.len() >= LEASES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            RESOURCE,
            format!("There are {LEASES_MAX} commitments in this case; there can be no more."),
            "Wait until some have ended.",
        ));
    }
    let lease = Lease {
        resource: said.resource.clone(),
        holder: holder.clone(),
        term: state.granted.saturating_add(1),
        until,
        why: said.why.clone(),
    };
    Ok(CommitmentEvent::Granted(granted(received, lease)))
}

fn renew(
    state: &CommitmentState,
    context: &Context,
    received: &ReceivedCommitment,
) -> Result<CommitmentEvent, Fault> {
    let own = own(state, received, ErrorCode::InvalidRequest)?;
    let until = until(context, received)?.max(own.until);
    let lease = Lease {
        until,
        ..own.clone()
    };
    Ok(CommitmentEvent::Renewed(granted(received, lease)))
}

fn release(
    state: &CommitmentState,
    received: &ReceivedCommitment,
) -> Result<CommitmentEvent, Fault> {
    let own = own(state, received, ErrorCode::Unauthorized)?;
    Ok(CommitmentEvent::Ended(LeasesEnded {
        case_id: received.case_id.clone(),
        leases: vec![ended(own)],
        reason: CommitmentEnd::Released,
        heard: Some(received.heard.clone()),
    }))
}

/// The commitment of the sender; refused with `code` where somebody else has it.
fn own<'a>(
    state: &'a CommitmentState,
    received: &ReceivedCommitment,
    code: ErrorCode,
) -> Result<&'a Lease, Fault> {
    let resource = &received.said.resource;
    match state.standing(received.case_id.as_ref()).get(resource) {
        Some(lease) if lease.holder == received.heard.agent_id => Ok(lease),
        Some(Lease {
            holder,
            until,
            term,
            ..
        }) => Err(Fault::new(
            code,
            RESOURCE,
            format!("{holder} holds {resource:?} until {until} (term {term})."),
            format!("Ask {holder}, or commit when it has ended."),
        )),
        None => Err(Fault::invalid(
            RESOURCE,
            format!("Nobody holds {resource:?}; a lease that was not renewed has ended."),
            "Commit to it first.",
        )),
    }
}

/// When the lease that is asked for ends.
fn until(context: &Context, received: &ReceivedCommitment) -> Result<Timestamp, Fault> {
    let bounds = &received.bounds;
    let lease_ms = received.said.lease_ms;
    let lease_ms = lease_ms.unwrap_or(bounds.lease_ms.min(bounds.lease_max_ms));
    if lease_ms <= bounds.lease_max_ms {
        return Ok(context.now.plus_millis(lease_ms));
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload/lease_ms",
        format!(
            "A lease of {lease_ms} ms is too long; at most {} ms are given.",
            bounds.lease_max_ms
        ),
        "Ask for a shorter one, and renew it while you work.",
    ))
}

fn granted(received: &ReceivedCommitment, lease: Lease) -> LeaseGranted {
    LeaseGranted {
        case_id: received.case_id.clone(),
        lease,
        heard: received.heard.clone(),
    }
}

fn ended(lease: &Lease) -> EndedLease {
    EndedLease {
        resource: lease.resource.clone(),
        holder: lease.holder.clone(),
        term: lease.term,
    }
}

pub(super) fn elapsed(state: &CommitmentState, elapsed: &DeadlineElapsed) -> CommitmentDecision {
    // Of two that have passed the later may be heard of first. It elapses once, so it counts then.
    let is_open = state.next_due().is_some_and(|due| due <= elapsed.due);
    if elapsed.name.as_str() != LEASE || !is_open {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    end(state, CommitmentEnd::Expired, |lease| {
        lease.until <= elapsed.due
    })
}

/// Ends those commitments of which this is true: that outside cases, else those of a case, for an event is about one of the two. Where
/// somebody has given a case the id of a resource, what is gone or done there may last until its lease has passed, or the case is over.
pub(super) fn end(
    state: &CommitmentState,
    reason: CommitmentEnd,
    is_over: impl Fn(&Lease) -> bool,
) -> CommitmentDecision {
    // That a case is over says nothing of what is outside it.
    let outside = (reason != CommitmentEnd::CaseOver).then_some(None);
    let in_case = state.case_id.clone().map(Some);
    for case_id in outside.into_iter().chain(in_case) {
        let standing = state.standing(case_id.as_ref()).values();
        let over = standing.filter(|lease| is_over(lease));
        let leases: Vec<EndedLease> = over.map(ended).collect();
        if !leases.is_empty() {
            return Decision::Append(CommitmentEvent::Ended(LeasesEnded {
                case_id,
                leases,
                reason,
                heard: None,
            }));
        }
    }
    Decision::Ignore(Ignored::AlreadyDone)
}
