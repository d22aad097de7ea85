//! The size budget: how many bytes each part of an event may have, so that every event fits into
//! one message of the broker whatever agents write.
//!
//! There are two rules. Texts that are *compared* (names, values, positions in words) keep their
//! identity: a name that is too long is refused
//! ([`Finding::check`](concord_wire::payload::Finding::check)); a value that is too long is
//! shortened to its beginning and a digest of the whole, and is then compared by the digest. Texts
//! that are only *read* (evidence, reasoning, topics) are shortened, each with a mark, and what is
//! left out is counted. Nothing is shortened while there is room. The whole text is in the message
//! that brought it, and in the event that recorded that message.
//!
//! The arithmetic is in decision record 0011. Sizes are bytes of JSON.

use concord_wire::payload::{Conflict, ConflictOutcome, Position, json_text_bytes};
use concord_wire::{ErrorCode, Fault};
use serde::Serialize;

pub(crate) mod truncate;

use truncate::{Room, shortened_position};

/// Most bytes of a stored event. The broker accepts messages of 1 MiB, with headers, unless it is
/// configured otherwise; the contents of an event are also sent as a message with an envelope of
/// its own.
pub const EVENT_BYTES_MAX: usize = 768 * 1024;
/// Most bytes of a case's task.
pub const TASK_BYTES_MAX: usize = 640 * 1024;
/// Most bytes of a case's task times its participants: each of them is sent the task.
pub const FAN_OUT_BYTES_MAX: usize = 16 << 20;
/// Most bytes of an answer in a debate, whatever its policy says about tokens: events hold it
/// beside the positions.
pub const ANSWER_BYTES_MAX: usize = 128 * 1024;
/// Most bytes of the debated conflicts in the event of a detection.
pub(crate) const DEBATED_BYTES_MAX: usize = 480 * 1024;
/// Most bytes of the deferred conflicts, in that event and in a decision.
pub(crate) const DEFERRED_BYTES_MAX: usize = 112 * 1024;
/// Most bytes of the estimates that cannot be compared, in the event of a detection.
pub(crate) const INCOMPARABLE_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of the names that aliases took for words, in that event.
pub(crate) const NAMES_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of the names that the sentence model took for words, in that event and in those of the
/// case.
pub(crate) const SCORED_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of the debated conflicts in a decision.
const DECIDED_CONFLICTS_BYTES_MAX: usize = 160 * 1024;
/// Most bytes of all outcomes in a decision. Each debate that a policy allows has an equal share.
const OUTCOMES_BYTES_MAX: usize = 224 * 1024;
/// Most bytes of one outcome in the events of a case.
const OUTCOME_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of the clauses in the decision of a case.
pub(crate) const CLAUSES_BYTES_MAX: usize = 48 * 1024;
/// Most bytes of a conflict's subject: two names in the form in which they are compared, escaped as
/// in a JSON pointer.
pub(crate) const SUBJECT_BYTES_MAX: usize = 2 * 1024;

/// Most bytes of an operator's reason, as JSON.
pub const WHY_BYTES_MAX: usize = 1_024;

/// Checks the length of an operator's reason; `pointer` is where it stands, for the fault.
pub(crate) fn check_reason(pointer: &str, why: &str) -> Result<(), Fault> {
    let bytes = json_text_bytes(why);
    if bytes <= WHY_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!("The reason has {bytes} bytes; at most {WHY_BYTES_MAX} are accepted."),
        "Give the reason in a sentence or two.",
    ))
}

/// The size of `value` as JSON, in bytes.
pub fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be written is larger than any budget.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

/// Makes all items with the same room, the largest for which they fit into `bytes_max` together.
/// `None` where they do not fit without any room.
pub(crate) fn fitting<T: Serialize>(
    count: usize,
    bytes_max: usize,
    make: impl Fn(usize, Room) -> Option<T>,
) -> Option<Vec<T>> {
    Room::STEPS.into_iter().find_map(|room| {
        let mut left = bytes_max;
        let mut items = Vec::with_capacity(count);
        for place in 0..count {
            let item = make(place, room)?;
            left = left.checked_sub(json_bytes(&item) + 1)?;
            items.push(item);
        }
        Some(items)
    })
}

/// The positions of a conflict or an outcome, each with no more evidence than `room`.
fn with_room(positions: &[Position], room: Room) -> Vec<Position> {
    positions
        .iter()
        .map(|position| shortened_position(position, room.among(positions.len())))
        .collect()
}

/// A conflict with no more evidence in each position than `room`.
fn conflict_with_room(conflict: &Conflict, room: Room) -> Conflict {
    Conflict {
        positions: with_room(&conflict.positions, room),
        ..conflict.clone()
    }
}

/// A conflict as a debate takes it. A conflict that comes from a detection stays the same.
pub(crate) fn debated_conflict(conflict: &Conflict) -> Conflict {
    Conflict {
        topic: truncate::topic(&conflict.topic),
        positions: conflict
            .positions
            .iter()
            .map(|held| Position {
                position: truncate::words(&held.position),
                value: held.value.as_ref().map(truncate::value),
                ..shortened_position(held, Room::MOST.among(conflict.positions.len()))
            })
            .collect(),
        ..conflict.clone()
    }
}

/// The debated conflicts as a decision repeats them: in full where there is room, else with less
/// evidence, else without the positions of those that rank lowest, which are counted.
pub(crate) fn decided_conflicts(conflicts: &[Conflict]) -> Vec<Conflict> {
    let make = |place: usize, room| {
        conflicts
            .get(place)
            .map(|conflict| conflict_with_room(conflict, room))
    };
    if let Some(all) = fitting(conflicts.len(), DECIDED_CONFLICTS_BYTES_MAX, make) {
        return all;
    }
    let mut kept: Vec<Conflict> = conflicts.iter().map(without_positions).collect();
    let mut left = DECIDED_CONFLICTS_BYTES_MAX.saturating_sub(json_bytes(&kept));
    for (short, conflict) in kept.iter_mut().zip(conflicts) {
        let lean = conflict_with_room(conflict, Room::NONE);
        let Some(rest) = left.checked_sub(json_bytes(&lean)) else {
            break;
        };
        left = rest;
        *short = lean;
    }
    kept
}

fn without_positions(conflict: &Conflict) -> Conflict {
    let omitted = conflict.positions_omitted + count(conflict.positions.len());
    Conflict {
        positions: Vec::new(),
        positions_omitted: omitted,
        ..conflict.clone()
    }
}

/// The outcomes as a decision repeats them: in full where there is room for all, else each with
/// less evidence, else without positions, tally, rounds, and what rests on it.
pub(crate) fn decided_outcomes(outcomes: &[ConflictOutcome]) -> Vec<ConflictOutcome> {
    let make = |place: usize, room| {
        outcomes
            .get(place)
            .map(|outcome| outcome_with_room(outcome, room))
    };
    let bare = |outcome| ConflictOutcome {
        dependants: Vec::new(),
        ..outcome_without_positions(outcome)
    };
    fitting(outcomes.len(), OUTCOMES_BYTES_MAX, make)
        .unwrap_or_else(|| outcomes.iter().map(bare).collect())
}

fn outcome_with_room(outcome: &ConflictOutcome, room: Room) -> ConflictOutcome {
    ConflictOutcome {
        positions: with_room(&outcome.positions, room),
        ..outcome.clone()
    }
}

/// An outcome without the positions, the tally and the rounds that it rests on, and a person's reason shortened as what is compared is.
fn outcome_without_positions(outcome: &ConflictOutcome) -> ConflictOutcome {
    let mut bare = ConflictOutcome {
        positions: Vec::new(),
        tally: None,
        rounds: Vec::new(),
        mediation: None,
        positions_omitted: outcome.positions_omitted + count(outcome.positions.len()),
        ..outcome.clone()
    };
    if let Some(provisional) = &mut bare.provisional {
        provisional.alternatives.clear();
    }
    if let Some(ruled) = &mut bare.ruled_by {
        ruled.rationale = truncate::words(&ruled.rationale);
        ruled.first_rationale = ruled.first_rationale.as_deref().map(truncate::words);
    }
    bare
}

/// An outcome as a case with this many debates takes it: in full where there is room, else with
/// less evidence, else without positions, tally and rounds. The whole outcome is in the events of
/// the debate.
pub(crate) fn case_outcome(outcome: &ConflictOutcome, debates_max: u32) -> ConflictOutcome {
    let share = OUTCOMES_BYTES_MAX / usize::try_from(debates_max.max(1)).unwrap_or(usize::MAX);
    let bytes_max = share.min(OUTCOME_BYTES_MAX);
    let make = |_, room| Some(outcome_with_room(outcome, room));
    let made = fitting(1, bytes_max, make).and_then(|made| made.into_iter().next());
    made.unwrap_or_else(|| outcome_without_positions(outcome))
}

/// A number of things, as events count them.
pub(crate) fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
