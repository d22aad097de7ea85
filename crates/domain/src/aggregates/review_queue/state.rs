//! What is known of the queue.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{Enqueued, ReviewQueueEvent, StoredEvent};
use concord_wire::payload::{DebatePriority, Expert};
use concord_wire::{AgentId, DebateId, MessageId, Timestamp};

use super::decide::asked_for;
use super::{CAUSES_MAX, FINISHED_MAX, Recent};
use crate::rules::canonical::normalise;

/// What is known of the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueState {
    /// Registered experts.
    pub desks: BTreeMap<AgentId, Desk>,
    /// Debates that wait or are assigned.
    pub debates: BTreeMap<DebateId, InQueue>,
    /// Those that wait, in the order of the queue.
    pub waiting: BTreeSet<Place>,
    /// Those that were released or have overflowed, of late.
    pub finished: Recent<DebateId, ()>,
    /// What was asked for by the causes of late, by the id of the fact that each led to.
    pub causes: Recent<MessageId, String>,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            desks: BTreeMap::new(),
            debates: BTreeMap::new(),
            waiting: BTreeSet::new(),
            finished: Recent::new(FINISHED_MAX),
            causes: Recent::new(CAUSES_MAX),
        }
    }
}

/// An expert at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desk {
    /// The expert.
    pub expert: Expert,
    /// The expert's domains, in the form in which they are compared.
    pub domains: BTreeSet<String>,
    /// Debates that the expert has.
    pub held: BTreeSet<DebateId>,
    /// Sequence of the fact by which the expert was last given one; 0 before the first. Sequences tell what was earlier
    /// where clocks cannot.
    pub last_assigned: u64,
}

impl Desk {
    /// Whether the expert can be given another debate.
    pub fn has_room(&self) -> bool {
        self.held.len() < self.expert.capacity as usize
    }
}

/// A debate in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InQueue {
    /// The debate as it waits, or waited.
    pub entry: Enqueued,
    /// Its domain in the form in which it is compared.
    pub domain: Option<String>,
    /// Who has it; none while it waits.
    pub holder: Option<Holder>,
}

impl InQueue {
    /// A debate that nobody has.
    pub(super) fn waiting(entry: Enqueued) -> Self {
        let domain = entry.domain.as_deref().and_then(comparable);
        Self {
            entry,
            domain,
            holder: None,
        }
    }
}

/// Who has a debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The expert.
    pub expert: AgentId,
    /// Since when.
    pub since: Timestamp,
}

/// A place in the queue; what is less comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The most urgent first.
    pub priority: DebatePriority,
    /// Then what has waited longest.
    pub entered_at: Timestamp,
    /// Then by id.
    pub debate_id: DebateId,
}

impl Place {
    /// The place of a debate.
    pub fn of(entry: &Enqueued) -> Self {
        Self {
            priority: entry.priority,
            entered_at: entry.entered_at,
            debate_id: entry.debate_id.clone(),
        }
    }
}

/// A domain in the form in which it is compared; none where nothing is said.
fn comparable(domain: &str) -> Option<String> {
    Some(normalise(domain)).filter(|domain| !domain.is_empty())
}

impl QueueState {
    /// Debates that wait, in the order of the queue.
    pub fn in_order(&self) -> impl Iterator<Item = &InQueue> {
        self.waiting
            .iter()
            .filter_map(|place| self.debates.get(&place.debate_id))
    }

    /// Debates that an expert has, in the order of the queue.
    pub fn held_by(&self, expert: &AgentId) -> Vec<&InQueue> {
        let held = self
            .desks
            .get(expert)
            .into_iter()
            .flat_map(|desk| &desk.held);
        let mut held: Vec<&InQueue> = held.filter_map(|debate| self.debates.get(debate)).collect();
        held.sort_by_key(|debate| Place::of(&debate.entry));
        held
    }

    pub(super) fn apply(&mut self, record: StoredEvent<ReviewQueueEvent>) {
        let StoredEvent {
            meta,
            sequence,
            event,
        } = record;
        self.causes.insert(meta.event_id, asked_for(&event));
        match event {
            ReviewQueueEvent::ExpertRegistered(registered) => self.register(registered.expert),
            ReviewQueueEvent::ExpertLeft(left) => {
                self.desks.remove(&left.agent_id);
                for id in &left.returned {
                    if let Some(debate) = self.debates.get_mut(id) {
                        debate.holder = None;
                        self.waiting.insert(Place::of(&debate.entry));
                    }
                }
            }
            ReviewQueueEvent::Enqueued(entry) => {
                self.waiting.insert(Place::of(&entry));
                self.debates
                    .insert(entry.debate_id.clone(), InQueue::waiting(entry));
            }
            ReviewQueueEvent::Assigned(given) => {
                self.give(
                    &given.debate_id,
                    Holder {
                        expert: given.expert,
                        since: meta.at,
                    },
                    sequence,
                );
            }
            ReviewQueueEvent::Reassigned(given) => {
                self.give(
                    &given.debate_id,
                    Holder {
                        expert: given.to,
                        since: meta.at,
                    },
                    sequence,
                );
            }
            ReviewQueueEvent::Overflowed(overflowed) => {
                self.finished.insert(overflowed.debate_id, ())
            }
            ReviewQueueEvent::Released(released) => {
                self.take_back(&released.debate_id);
                self.debates.remove(&released.debate_id);
                self.finished.insert(released.debate_id, ());
            }
        }
    }

    fn register(&mut self, expert: Expert) {
        let domains = expert
            .domains
            .iter()
            .filter_map(|domain| comparable(domain))
            .collect();
        let earlier = self.desks.remove(&expert.agent_id);
        let (held, last_assigned) = earlier
            .map(|desk| (desk.held, desk.last_assigned))
            .unwrap_or_default();
        self.desks.insert(
            expert.agent_id.clone(),
            Desk {
                expert,
                domains,
                held,
                last_assigned,
            },
        );
    }

    /// Takes a debate from whoever has it, or out of those that wait.
    fn take_back(&mut self, debate_id: &DebateId) {
        let Some(debate) = self.debates.get_mut(debate_id) else {
            return;
        };
        match debate.holder.take() {
            None => {
                self.waiting.remove(&Place::of(&debate.entry));
            }
            Some(holder) => {
                if let Some(desk) = self.desks.get_mut(&holder.expert) {
                    desk.held.remove(debate_id);
                }
            }
        }
    }

    fn give(&mut self, debate_id: &DebateId, holder: Holder, sequence: u64) {
        self.take_back(debate_id);
        if let Some(desk) = self.desks.get_mut(&holder.expert) {
            desk.held.insert(debate_id.clone());
            desk.last_assigned = sequence;
        }
        if let Some(debate) = self.debates.get_mut(debate_id) {
            debate.holder = Some(holder);
        }
    }
}
