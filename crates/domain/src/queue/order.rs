//! Which debate is next, and who is given it.

use std::cmp::Ordering;

use concord_protocol::AgentId;

use super::state::{Desk, InQueue, QueueState};

/// The first debate that some expert can take, and the expert.
pub(super) fn next(state: &QueueState) -> Option<(&InQueue, &AgentId)> {
    let with_room = with_room(state);
    if with_room.is_empty() {
        return None;
    }
    state.in_order().find_map(|debate| Some((debate, choose(state, &with_room, debate)?)))
}

/// Whether some expert could take the debate now, were it the first.
pub(super) fn is_room_for(state: &QueueState, debate: &InQueue) -> bool {
    choose(state, &with_room(state), debate).is_some()
}

type Named<'a> = (&'a AgentId, &'a Desk);

fn with_room(state: &QueueState) -> Vec<Named<'_>> {
    state.desks.iter().filter(|(_, desk)| desk.has_room()).collect()
}

/// Who of those with room is given the debate.
fn choose<'a>(state: &QueueState, with_room: &[Named<'a>], debate: &InQueue) -> Option<&'a AgentId> {
    let is_excluded = |expert: &AgentId| debate.entry.excluded.contains(expert);
    let knows_it = |desk: &Desk| debate.domain.as_ref().is_some_and(|domain| desk.domains.contains(domain));
    let can = || with_room.iter().copied().filter(|(expert, _)| !is_excluded(expert));
    let first = |of: &mut dyn Iterator<Item = Named<'a>>| of.min_by(by_turn).map(|(expert, _)| expert);
    if let Some(expert) = first(&mut can().filter(|(_, desk)| knows_it(desk))) {
        return Some(expert);
    }
    // Somebody without room who knows about it is waited for.
    if state.desks.iter().any(|(expert, desk)| knows_it(desk) && !is_excluded(expert)) {
        return None;
    }
    first(&mut can())
}

/// The least loaded, then the one whose last assignment is longest ago, then the lower id.
fn by_turn((a_id, a): &Named<'_>, (b_id, b): &Named<'_>) -> Ordering {
    // a.held / a.capacity to b.held / b.capacity, without division.
    let load = |desk: &Desk, other: &Desk| desk.held.len() as u64 * u64::from(other.expert.capacity);
    load(a, b).cmp(&load(b, a)).then(a.last_assigned.cmp(&b.last_assigned)).then(a_id.cmp(b_id))
}
