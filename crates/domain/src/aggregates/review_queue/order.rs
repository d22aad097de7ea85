//! The order of the review queue: which debate is next, and which expert is assigned.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use concord_wire::AgentId;

use super::state::{Desk, InQueue, QueueState};

/// The first debate that some expert can take, and that expert.
pub(super) fn next(state: &QueueState) -> Option<(&InQueue, &AgentId)> {
    let mut staff = Staff::of(state);
    if staff.with_room.is_empty() {
        return None;
    }
    state
        .in_order()
        .find_map(|debate| Some((debate, staff.choose(debate)?)))
}

/// Whether some expert could take the debate now if it were the first.
pub(super) fn is_room_for(state: &QueueState, debate: &InQueue) -> bool {
    Staff::of(state).choose(debate).is_some()
}

type Named<'a> = (&'a AgentId, &'a Desk);

/// The experts, with what is looked up once for many debates.
struct Staff<'a> {
    state: &'a QueueState,
    with_room: Vec<Named<'a>>,
    /// Experts by domain, filled when a debate first asks: thousands of debates may wait for the
    /// same few.
    knowing: BTreeMap<&'a str, Knowing<'a>>,
}

/// The experts of a domain.
struct Knowing<'a> {
    all: Vec<&'a AgentId>,
    with_room: Vec<Named<'a>>,
}

impl<'a> Staff<'a> {
    fn of(state: &'a QueueState) -> Self {
        let with_room = state
            .desks
            .iter()
            .filter(|(_, desk)| desk.has_room())
            .collect();
        Self {
            state,
            with_room,
            knowing: BTreeMap::new(),
        }
    }

    /// The expert to whom the debate is assigned, of those with room.
    fn choose(&mut self, debate: &'a InQueue) -> Option<&'a AgentId> {
        let excluded = &debate.entry.excluded;
        if let Some(domain) = &debate.domain {
            let Self { state, knowing, .. } = self;
            let knowing = knowing
                .entry(domain)
                .or_insert_with(|| Knowing::about(state, domain));
            if knowing.all.iter().any(|expert| !excluded.contains(expert)) {
                // The debate waits for them when they have no room.
                return first(&knowing.with_room, excluded);
            }
        }
        first(&self.with_room, excluded)
    }
}

impl<'a> Knowing<'a> {
    fn about(state: &'a QueueState, domain: &str) -> Self {
        let all = || {
            state
                .desks
                .iter()
                .filter(|(_, desk)| desk.domains.contains(domain))
        };
        Self {
            all: all().map(|(expert, _)| expert).collect(),
            with_room: all().filter(|(_, d)| d.has_room()).collect(),
        }
    }
}

/// The first of these experts, in the order of [`by_turn`], who is not excluded.
fn first<'a>(of: &[Named<'a>], excluded: &[AgentId]) -> Option<&'a AgentId> {
    let can = of.iter().filter(|(expert, _)| !excluded.contains(expert));
    can.min_by(|a, b| by_turn(a, b)).map(|(expert, _)| *expert)
}

/// The order of experts: the least loaded, then the one whose last assignment is longest ago, then
/// the lower id.
fn by_turn((a_id, a): &Named<'_>, (b_id, b): &Named<'_>) -> Ordering {
    // Compares a.held / a.capacity with b.held / b.capacity, without division.
    let load =
        |desk: &Desk, other: &Desk| desk.held.len() as u64 * u64::from(other.expert.capacity);
    load(a, b)
        .cmp(&load(b, a))
        .then(a.last_assigned.cmp(&b.last_assigned))
        .then(a_id.cmp(b_id))
}
