//! What to do about an input of the review queue. The tables are in the module above.

use concord_events::{
    Assigned, ExpertLeft, ExpertRegistered, OverflowReason, Overflowed, Reassigned, ReleaseReason,
    Released, Returned, ReviewQueueEvent,
};
use concord_wire::payload::{Contact, DebatePriority};
use concord_wire::{AgentId, DebateId, ErrorCode, Fault};
use serde::Serialize;

use super::over_capacity;
use super::state::{QueueState, QueuedDebate};
use super::{EXPERTS_MAX, Enqueue, QueueInput, event_id_of, order, verify};
use crate::aggregates::case::reused_message_id;
use crate::digest;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::check_reason;

type QueueDecision = Decision<ReviewQueueEvent>;

/// The JSON pointer of the parameters of a request.
const PARAMETERS: &str = "/payload/parameters";

pub(super) fn decide(state: &QueueState, context: &Context, input: &QueueInput) -> QueueDecision {
    if let Some(earlier) = state
        .causes
        .get(&event_id_of(context.origin, &context.cause))
    {
        // An event's id follows from its cause, so a second one could not be stored.
        let same = *earlier == digest_of_input(input);
        return if same {
            Decision::Ignore(Ignored::Repetition)
        } else {
            Decision::Reject(reused_message_id())
        };
    }
    match input {
        QueueInput::Register(registered) => register(state, registered),
        QueueInput::Leave {
            agent_id, follows, ..
        } if state.is_past(agent_id, *follows) => Decision::Ignore(Ignored::AlreadyDone),
        QueueInput::Leave { .. } => leave(state, input),
        QueueInput::Enqueue(enqueue) => enqueue_debate(state, enqueue),
        QueueInput::Advance => advance(state, context),
        QueueInput::GiveBack { debate_id, expert } => give_back(state, debate_id, expert),
        QueueInput::Release { debate_id, reason } => release(state, debate_id, *reason),
        QueueInput::Reassign {
            debate_id,
            to,
            by,
            why,
        } => reassign(state, debate_id, to, (by, why)),
    }
}

/// A digest of what an input asks for, to tell a repetition from another request under the same id.
fn digest_of_input(input: &QueueInput) -> String {
    match input {
        QueueInput::Register(registered) => request_digest("register", registered),
        QueueInput::Leave {
            agent_id, by, why, ..
        } => request_digest("leave", (agent_id, by, why)),
        QueueInput::Enqueue(enqueue) => request_digest("enqueue", &enqueue.entry.debate_id),
        QueueInput::Advance => request_digest("advance", ()),
        QueueInput::GiveBack { debate_id, .. } => request_digest("give_back", debate_id),
        QueueInput::Release { debate_id, .. } => request_digest("release", debate_id),
        QueueInput::Reassign {
            debate_id,
            to,
            by,
            why,
        } => request_digest("reassign", (debate_id, to, by, why)),
    }
}

/// The digest of the input that led to this event.
pub(super) fn digest_of_event(event: &ReviewQueueEvent) -> String {
    match event {
        ReviewQueueEvent::ExpertRegistered(registered) => request_digest("register", registered),
        ReviewQueueEvent::ExpertLeft(left) => {
            request_digest("leave", (&left.agent_id, &left.by, &left.why))
        }
        ReviewQueueEvent::Enqueued(entry) => request_digest("enqueue", &entry.debate_id),
        ReviewQueueEvent::Overflowed(overflowed) => {
            request_digest("enqueue", &overflowed.debate_id)
        }
        ReviewQueueEvent::Assigned(_) => request_digest("advance", ()),
        ReviewQueueEvent::Returned(returned) => request_digest("give_back", &returned.debate_id),
        ReviewQueueEvent::Released(released) => request_digest("release", &released.debate_id),
        ReviewQueueEvent::Reassigned(Reassigned {
            debate_id,
            to,
            by,
            why,
            ..
        }) => request_digest("reassign", (debate_id, to, by, why)),
    }
}

fn request_digest(kind: &str, what: impl Serialize) -> String {
    // A value without maps can always be written as JSON.
    digest(&serde_json::to_vec(&(kind, what)).unwrap_or_default())
}

fn register(state: &QueueState, registered: &ExpertRegistered) -> QueueDecision {
    let expert = &registered.expert;
    if state.is_past(&expert.agent_id, registered.follows) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    if let Err(fault) = expert.check(PARAMETERS) {
        return Decision::Reject(fault);
    }
    if state.experts.len() >= EXPERTS_MAX && !state.experts.contains_key(&expert.agent_id) {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            PARAMETERS,
            format!("There are {EXPERTS_MAX} experts already."),
            "Remove those who rule no more.",
        ));
    }
    Decision::Append(ReviewQueueEvent::ExpertRegistered(registered.clone()))
}

fn leave(state: &QueueState, input: &QueueInput) -> QueueDecision {
    let QueueInput::Leave {
        agent_id,
        by,
        why,
        follows,
        was_expert,
    } = input
    else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let known = state.experts.get(agent_id);
    if known.is_none() && !was_expert {
        return match follows {
            0 => Decision::Reject(no_such_expert("agent_id", agent_id)),
            _ => Decision::Ignore(Ignored::AlreadyDone),
        };
    }
    if let Err(fault) = check_reason(&format!("{PARAMETERS}/why"), why) {
        return Decision::Reject(fault);
    }
    let held = known.map(|entry| entry.held.iter().cloned());
    Decision::Append(ReviewQueueEvent::ExpertLeft(ExpertLeft {
        agent_id: agent_id.clone(),
        by: by.clone(),
        why: why.clone(),
        returned: held.into_iter().flatten().collect(),
        follows: *follows,
    }))
}

fn no_such_expert(field: &str, agent_id: &AgentId) -> Fault {
    Fault::invalid(
        format!("{PARAMETERS}/{field}"),
        format!("{agent_id} is not registered as an expert."),
        "`concord expert list` shows who is.",
    )
}

fn enqueue_debate(state: &QueueState, enqueue: &Enqueue) -> QueueDecision {
    let entry = &enqueue.entry;
    if state.debates.contains_key(&entry.debate_id) || state.finished.contains(&entry.debate_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let debate = QueuedDebate::waiting(entry.clone());
    let must_wait = !state.experts.is_empty() && !order::is_room_for(state, &debate);
    let no_place = if must_wait {
        no_place(state, enqueue)
    } else {
        None
    };
    let Some(reason) = no_place else {
        return Decision::Append(ReviewQueueEvent::Enqueued(debate.entry));
    };
    Decision::Append(ReviewQueueEvent::Overflowed(Overflowed {
        debate_id: entry.debate_id.clone(),
        case_id: entry.case_id.clone(),
        handling: enqueue.overflow,
        reason,
    }))
}

/// Why a debate that must wait may not; `None` if it may.
fn no_place(state: &QueueState, enqueue: &Enqueue) -> Option<OverflowReason> {
    let entry = &enqueue.entry;
    let opener = entry.opened_by.as_ref();
    let waiting = &state.waiting;
    let own = waiting.of_opener(opener);
    let queue_max = enqueue.queue_max as usize;
    // One opener cannot fill the queue for others: each has an equal share of its places.
    let share = queue_max.div_ceil(waiting.openers_with(opener));
    if entry.priority == DebatePriority::Supporting || (waiting.len() >= queue_max && own >= share)
    {
        return Some(OverflowReason::QueueFull);
    }
    opener
        .filter(|_| verify::is_quota_reached(own, entry.opener_waiting_max))
        .map(|opener| OverflowReason::OpenerQuota {
            opened_by: opener.clone(),
            waiting_max: entry.opener_waiting_max,
        })
}

fn advance(state: &QueueState, context: &Context) -> QueueDecision {
    let Some((debate, expert)) = order::next(state) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    debug_assert!(
        debate.holder.is_none() && !debate.entry.excluded.contains(expert),
        "a waiting debate is assigned to an expert who is not excluded"
    );
    let assigned = ReviewQueueEvent::Assigned(Assigned {
        debate_id: debate.entry.debate_id.clone(),
        case_id: debate.entry.case_id.clone(),
        expert: expert.clone(),
        contact: contact_of(state, expert),
        waited_ms: context.now.millis_since(debate.entry.entered_at),
    });
    debug_assert_eq!(over_capacity(state, &assigned), None);
    Decision::Append(assigned)
}

/// Where an expert is notified at present.
fn contact_of(state: &QueueState, expert: &AgentId) -> Contact {
    state
        .experts
        .get(expert)
        .map(|entry| entry.expert.contact.clone())
        .unwrap_or_default()
}

/// An expert has let a debate lie. It stays where it is while nobody else can take it.
fn give_back(state: &QueueState, debate_id: &DebateId, expert: &AgentId) -> QueueDecision {
    let known = state.debates.get(debate_id);
    let held = known.filter(|debate| {
        let holder = debate.holder.as_ref();
        holder.is_some_and(|holder| holder.expert == *expert)
    });
    let Some(debate) = held.filter(|debate| order::is_room_elsewhere(state, debate, expert)) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    Decision::Append(ReviewQueueEvent::Returned(Returned {
        debate_id: debate_id.clone(),
        case_id: debate.entry.case_id.clone(),
        expert: expert.clone(),
    }))
}

fn release(state: &QueueState, debate_id: &DebateId, reason: ReleaseReason) -> QueueDecision {
    if state.finished.contains(debate_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let holder = state
        .debates
        .get(debate_id)
        .and_then(|debate| debate.holder.as_ref());
    let expert = holder.map(|holder| holder.expert.clone());
    Decision::Append(ReviewQueueEvent::Released(Released {
        debate_id: debate_id.clone(),
        expert,
        reason,
    }))
}

fn reassign(
    state: &QueueState,
    debate_id: &DebateId,
    to: &AgentId,
    said: (&AgentId, &str),
) -> QueueDecision {
    let (by, why) = said;
    let Some(debate) = state.debates.get(debate_id) else {
        return Decision::Reject(not_in_queue(debate_id));
    };
    if let Err(fault) = check_why(why).and_then(|()| check_receiver(state, debate, to)) {
        return Decision::Reject(fault);
    }
    Decision::Append(ReviewQueueEvent::Reassigned(Reassigned {
        debate_id: debate_id.clone(),
        case_id: debate.entry.case_id.clone(),
        from: debate.holder.as_ref().map(|holder| holder.expert.clone()),
        to: to.clone(),
        contact: contact_of(state, to),
        by: by.clone(),
        why: why.to_owned(),
    }))
}

fn not_in_queue(debate_id: &DebateId) -> Fault {
    Fault::invalid(
        format!("{PARAMETERS}/debate_id"),
        format!("The debate {debate_id} neither waits for a person nor is with one."),
        "`concord queue` shows those that do.",
    )
}

fn check_why(why: &str) -> Result<(), Fault> {
    if why.trim().is_empty() {
        return Err(Fault::invalid(
            format!("{PARAMETERS}/why"),
            "No reason is given.",
            "Say why: it is kept with the debate.",
        ));
    }
    check_reason(&format!("{PARAMETERS}/why"), why)
}

/// Checks that an operator may assign the debate to this expert.
fn check_receiver(state: &QueueState, debate: &QueuedDebate, to: &AgentId) -> Result<(), Fault> {
    let pointer = || format!("{PARAMETERS}/to");
    let debate_id = &debate.entry.debate_id;
    let Some(entry) = state.experts.get(to) else {
        return Err(no_such_expert("to", to));
    };
    if debate.entry.excluded.contains(to) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            pointer(),
            format!("{to} takes part in {debate_id}, and nobody judges their own case."),
            "Choose an expert who takes no part in it.",
        ));
    }
    if debate
        .holder
        .as_ref()
        .is_some_and(|holder| holder.expert == *to)
    {
        return Err(Fault::invalid(
            pointer(),
            format!("{to} has {debate_id} already."),
            "Choose another expert, or leave it where it is.",
        ));
    }
    if !entry.has_room() {
        let (held, capacity) = (entry.held.len(), entry.expert.capacity);
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            pointer(),
            format!("{to} has {held} debates, and a capacity of {capacity}."),
            "Choose an expert who has room, give one of the debates to another first, or raise the capacity.",
        ));
    }
    Ok(())
}
