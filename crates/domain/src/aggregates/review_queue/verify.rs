//! Checks of the review queue's events after they are stored.

use concord_events::{Origin, OverflowReason, Reassigned, ReviewQueueEvent, StoredEvent};

use super::{Enqueue, QueueInput, QueueState, ReviewQueueMachine, event_id_of};
use crate::machine::{Context, Decision, Machine};

/// What is wrong with an assignment, given the state before it: the expert must have room at that
/// time.
pub fn over_capacity(before: &QueueState, event: &ReviewQueueEvent) -> Option<String> {
    let (debate_id, expert) = match event {
        ReviewQueueEvent::Assigned(assigned) => (&assigned.debate_id, &assigned.expert),
        ReviewQueueEvent::Reassigned(reassigned) => (&reassigned.debate_id, &reassigned.to),
        _ => return None,
    };
    let Some(entry) = before.experts.get(expert) else {
        return Some(format!(
            "It gives {debate_id} to {expert}, who is not registered."
        ));
    };
    let (held, capacity) = (entry.held.len(), entry.expert.capacity);
    (!entry.has_room()).then(|| {
        format!("It gives {debate_id} to {expert}, who has {held} with a capacity of {capacity}.")
    })
}

/// Decides again what led to an event, given the state before it. `false` where the event does not
/// tell its input.
pub fn decide_again(
    before: &QueueState,
    record: &StoredEvent<ReviewQueueEvent>,
) -> Result<bool, String> {
    let Some(input) = input(record) else {
        return overflowed(before, &record.event);
    };
    let (now, cause) = (record.meta.at, record.meta.cause.clone());
    let said = record.meta.event_id == event_id_of(Origin::Message, &cause);
    let origin = if said { Origin::Message } else { Origin::Event };
    let context = Context {
        now,
        cause,
        origin,
        sender: None,
    };
    match ReviewQueueMachine::decide(before, &context, &input) {
        Decision::Append(event) if event == record.event => Ok(true),
        Decision::Append(event) => Err(format!("decided again it is {event:?}")),
        Decision::Ignore(why) => Err(format!(
            "decided again it would not be stored: {}",
            why.as_str()
        )),
        Decision::Reject(fault) => Err(format!("decided again it would be refused: {fault}")),
    }
}

/// Whether as many debates of an opener wait as may.
pub(super) fn is_quota_reached(waiting: usize, waiting_max: u32) -> bool {
    waiting_max > 0 && waiting >= waiting_max as usize
}

/// Checks what an overflow says about its reason. The debate itself is not in the event.
fn overflowed(before: &QueueState, event: &ReviewQueueEvent) -> Result<bool, String> {
    if let ReviewQueueEvent::Overflowed(overflowed) = event
        && let OverflowReason::OpenerQuota {
            opened_by,
            waiting_max,
        } = &overflowed.reason
    {
        let waiting = before.waiting.of_opener(Some(opened_by));
        if !is_quota_reached(waiting, *waiting_max) {
            return Err(format!(
                "it overflows because {waiting_max} debates of {opened_by} waited; {waiting} did"
            ));
        }
    }
    Ok(false)
}

/// The input that must have led to this event.
fn input(record: &StoredEvent<ReviewQueueEvent>) -> Option<QueueInput> {
    Some(match record.event.clone() {
        ReviewQueueEvent::ExpertRegistered(registered) => {
            QueueInput::Register(Box::new(registered))
        }
        ReviewQueueEvent::ExpertLeft(left) => QueueInput::Leave {
            agent_id: left.agent_id,
            by: left.by,
            why: left.why,
            follows: left.follows,
            // Whoever the queue did not know has left because they were one.
            was_expert: left.follows > 0,
        },
        // The limit is not in the event. It was not reached.
        ReviewQueueEvent::Enqueued(entry) => QueueInput::Enqueue(Box::new(Enqueue {
            entry,
            overflow: Default::default(),
            queue_max: u32::MAX,
        })),
        ReviewQueueEvent::Assigned(_) => QueueInput::Advance,
        // The input is not in the event, only its result.
        ReviewQueueEvent::Overflowed(_) => return None,
        ReviewQueueEvent::Returned(returned) => QueueInput::GiveBack {
            debate_id: returned.debate_id,
            expert: returned.expert,
        },
        ReviewQueueEvent::Released(released) => QueueInput::Release {
            debate_id: released.debate_id,
            reason: released.reason,
        },
        ReviewQueueEvent::Reassigned(Reassigned {
            debate_id,
            to,
            by,
            why,
            ..
        }) => QueueInput::Reassign {
            debate_id,
            to,
            by,
            why,
        },
    })
}
