//! The order of the review queue: which debate is next, and which expert is assigned.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use concord_wire::AgentId;

use super::state::{QueueState, QueuedDebate, RegisteredExpert};

/// The first debate that some expert can take, and that expert.
pub(super) fn next(state: &QueueState) -> Option<(&QueuedDebate, &AgentId)> {
    let mut candidates = Candidates::of(state);
    if candidates.with_room.is_empty() {
        return None;
    }
    // Where nobody can take the first debate of a line, the line's turn goes to its next one.
    let lines = state.waiting.in_turn().into_iter();
    lines
        .flat_map(|(_, places)| places)
        .filter_map(|place| state.debates.get(&place.debate_id))
        .find_map(|debate| Some((debate, candidates.choose(debate)?)))
}

/// Whether some expert could take the debate now if it were the first.
pub(super) fn is_room_for(state: &QueueState, debate: &QueuedDebate) -> bool {
    Candidates::of(state).choose(debate).is_some()
}

/// Whether somebody else than its expert, and than those who have let it lie, could take the debate
/// now.
pub(super) fn is_room_elsewhere(
    state: &QueueState,
    debate: &QueuedDebate,
    expert: &AgentId,
) -> bool {
    let mut candidates = Candidates::of(state);
    let not = [
        &debate.entry.excluded[..],
        &debate.passed_over,
        std::slice::from_ref(expert),
    ];
    first(candidates.eligible(debate), &not).is_some()
}

type Named<'a> = (&'a AgentId, &'a RegisteredExpert);

/// The experts, with what is looked up once for many debates.
struct Candidates<'a> {
    state: &'a QueueState,
    with_room: Vec<Named<'a>>,
    /// Experts by domain, filled when a debate first asks: thousands of debates may wait for the
    /// same few.
    by_domain: BTreeMap<&'a str, DomainExperts<'a>>,
}

/// The experts of a domain.
struct DomainExperts<'a> {
    all: Vec<&'a AgentId>,
    with_room: Vec<Named<'a>>,
}

impl<'a> Candidates<'a> {
    fn of(state: &'a QueueState) -> Self {
        let with_room = state
            .experts
            .iter()
            .filter(|(_, entry)| entry.has_room())
            .collect();
        Self {
            state,
            with_room,
            by_domain: BTreeMap::new(),
        }
    }

    /// The expert to whom the debate is assigned, of those with room.
    fn choose(&mut self, debate: &'a QueuedDebate) -> Option<&'a AgentId> {
        let excluded = &debate.entry.excluded;
        let eligible = self.eligible(debate);
        self::first(eligible, &[excluded, &debate.passed_over])
            .or_else(|| self::first(eligible, &[excluded]))
    }

    /// The experts with room who may be given the debate, but for those who are excluded.
    fn eligible(&mut self, debate: &'a QueuedDebate) -> &[Named<'a>] {
        let Self {
            state,
            with_room,
            by_domain,
        } = self;
        if let Some(domain) = &debate.domain {
            let by_domain = by_domain
                .entry(domain)
                .or_insert_with(|| DomainExperts::about(state, domain));
            let excluded = &debate.entry.excluded;
            let mut all = by_domain.all.iter();
            if all.any(|expert| !excluded.contains(expert)) {
                // The debate waits for them when they have no room.
                return &by_domain.with_room;
            }
        }
        with_room
    }
}

impl<'a> DomainExperts<'a> {
    fn about(state: &'a QueueState, domain: &str) -> Self {
        let all = || {
            state
                .experts
                .iter()
                .filter(|(_, entry)| entry.domains.contains(domain))
        };
        Self {
            all: all().map(|(expert, _)| expert).collect(),
            with_room: all().filter(|(_, d)| d.has_room()).collect(),
        }
    }
}

/// The first of these experts, in the order of [`by_turn`], who is in none of the lists.
fn first<'a>(of: &[Named<'a>], not: &[&[AgentId]]) -> Option<&'a AgentId> {
    let is_in = |expert: &AgentId| not.iter().any(|list| list.contains(expert));
    let can = of.iter().filter(|(expert, _)| !is_in(expert));
    can.min_by(|a, b| by_turn(a, b)).map(|(expert, _)| *expert)
}

/// The order of experts: the least loaded, then the one whose last assignment is longest ago, then
/// the lower id.
fn by_turn((a_id, a): &Named<'_>, (b_id, b): &Named<'_>) -> Ordering {
    // Compares a.held / a.capacity with b.held / b.capacity, without division.
    let load = |entry: &RegisteredExpert, other: &RegisteredExpert| {
        entry.held.len() as u64 * u64::from(other.expert.capacity)
    };
    load(a, b)
        .cmp(&load(b, a))
        .then(a.last_assigned.cmp(&b.last_assigned))
        .then(a_id.cmp(b_id))
}
