//! The state of the review queue, and how its events change it.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{Enqueued, ReviewQueueEvent, StoredEvent};
use concord_wire::payload::Expert;
use concord_wire::{AgentId, DebateId, MessageId, Timestamp};

use super::decide::digest_of_event;
use super::waiting::{Place, Waiting};
use super::{CAUSES_MAX, FINISHED_MAX, Recent};
use crate::rules::impact::graph::name_of;

/// The state of the review queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueState {
    /// The registered experts.
    pub experts: BTreeMap<AgentId, RegisteredExpert>,
    /// Debates that wait or are assigned.
    pub debates: BTreeMap<DebateId, QueuedDebate>,
    /// The places of the debates that wait.
    pub waiting: Waiting,
    /// Debates that were released or have overflowed; the last of them.
    pub finished: Recent<DebateId, ()>,
    /// The sequence of the last event of each person that was followed.
    pub followed: BTreeMap<AgentId, u64>,
    /// Digests of the last inputs, by the id of the event that each led to.
    pub causes: Recent<MessageId, String>,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            experts: BTreeMap::new(),
            debates: BTreeMap::new(),
            waiting: Waiting::default(),
            finished: Recent::new(FINISHED_MAX),
            followed: BTreeMap::new(),
            causes: Recent::new(CAUSES_MAX),
        }
    }
}

/// A registered expert with the debates they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredExpert {
    /// The expert.
    pub expert: Expert,
    /// The expert's domains, in the form in which domains are compared.
    pub domains: BTreeSet<String>,
    /// The debates that the expert has.
    pub held: BTreeSet<DebateId>,
    /// Sequence of the event by which the expert was last assigned a debate; 0 before the first.
    /// Sequences order events where clocks cannot.
    pub last_assigned: u64,
}

impl RegisteredExpert {
    /// Whether another debate can be assigned to the expert.
    pub fn has_room(&self) -> bool {
        self.held.len() < self.expert.capacity as usize
    }
}

/// A debate in the review queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedDebate {
    /// The debate with its particulars.
    pub entry: Enqueued,
    /// Its domain, in the form in which domains are compared.
    pub domain: Option<String>,
    /// The expert who has it; `None` while it waits.
    pub holder: Option<Holder>,
    /// Experts who have let it lie. It is given to others first.
    pub passed_over: Vec<AgentId>,
}

impl QueuedDebate {
    /// A debate that waits.
    pub(super) fn waiting(entry: Enqueued) -> Self {
        let domain = entry.domain.as_deref().and_then(comparable);
        Self {
            entry,
            domain,
            holder: None,
            passed_over: Vec::new(),
        }
    }
}

/// The expert who has a debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The expert.
    pub expert: AgentId,
    /// The time of the assignment.
    pub since: Timestamp,
}

/// A domain in the form in which domains are compared, here as in what people may do; `None` for an empty one.
fn comparable(domain: &str) -> Option<String> {
    Some(name_of(domain)).filter(|domain| !domain.is_empty())
}

impl QueueState {
    /// The debates that wait, in the order of the queue.
    pub fn in_order(&self) -> impl Iterator<Item = &QueuedDebate> {
        self.waiting
            .in_order()
            .filter_map(|debate_id| self.debates.get(debate_id))
    }

    /// The debates that an expert has, in the order of the queue.
    pub fn held_by(&self, expert: &AgentId) -> Vec<&QueuedDebate> {
        let held = self
            .experts
            .get(expert)
            .into_iter()
            .flat_map(|entry| &entry.held);
        let mut held: Vec<&QueuedDebate> =
            held.filter_map(|debate| self.debates.get(debate)).collect();
        held.sort_by_key(|debate| (debate.entry.priority, Place::of(&debate.entry)));
        held
    }

    pub(super) fn apply(&mut self, record: StoredEvent<ReviewQueueEvent>) {
        let StoredEvent {
            meta,
            sequence,
            event,
        } = record;
        self.causes.insert(meta.event_id, digest_of_event(&event));
        match event {
            ReviewQueueEvent::ExpertRegistered(registered) => {
                self.follow(&registered.expert.agent_id, registered.follows);
                self.register(registered.expert);
            }
            ReviewQueueEvent::ExpertLeft(left) => {
                self.follow(&left.agent_id, left.follows);
                self.experts.remove(&left.agent_id);
                for id in &left.returned {
                    if let Some(debate) = self.debates.get_mut(id) {
                        debate.holder = None;
                        self.waiting.insert(&debate.entry);
                    }
                }
            }
            ReviewQueueEvent::Enqueued(entry) => {
                self.waiting.insert(&entry);
                self.debates
                    .insert(entry.debate_id.clone(), QueuedDebate::waiting(entry));
            }
            ReviewQueueEvent::Assigned(given) => {
                if let Some(debate) = self.debates.get(&given.debate_id) {
                    self.waiting.served(&debate.entry, sequence);
                }
                self.assign(
                    &given.debate_id,
                    Holder {
                        expert: given.expert,
                        since: meta.at,
                    },
                    sequence,
                );
            }
            ReviewQueueEvent::Reassigned(given) => {
                self.assign(
                    &given.debate_id,
                    Holder {
                        expert: given.to,
                        since: meta.at,
                    },
                    sequence,
                );
            }
            ReviewQueueEvent::Returned(returned) => {
                self.take_back(&returned.debate_id);
                if let Some(debate) = self.debates.get_mut(&returned.debate_id) {
                    debate.passed_over.push(returned.expert);
                    self.waiting.insert(&debate.entry);
                }
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

    fn follow(&mut self, person: &AgentId, sequence: u64) {
        if sequence > 0 {
            self.followed.insert(person.clone(), sequence);
        }
    }

    /// Whether a later event of this person was followed already.
    pub(super) fn is_past(&self, person: &AgentId, sequence: u64) -> bool {
        let last = self.followed.get(person).copied().unwrap_or(0);
        sequence > 0 && sequence <= last
    }

    fn register(&mut self, expert: Expert) {
        let domains = expert
            .domains
            .iter()
            .filter_map(|domain| comparable(domain))
            .collect();
        let earlier = self.experts.remove(&expert.agent_id);
        let (held, last_assigned) = earlier
            .map(|entry| (entry.held, entry.last_assigned))
            .unwrap_or_default();
        self.experts.insert(
            expert.agent_id.clone(),
            RegisteredExpert {
                expert,
                domains,
                held,
                last_assigned,
            },
        );
    }

    /// Takes a debate from its expert, or from those that wait.
    fn take_back(&mut self, debate_id: &DebateId) {
        let Some(debate) = self.debates.get_mut(debate_id) else {
            return;
        };
        match debate.holder.take() {
            None => {
                self.waiting.remove(&debate.entry);
            }
            Some(holder) => {
                if let Some(entry) = self.experts.get_mut(&holder.expert) {
                    entry.held.remove(debate_id);
                }
            }
        }
    }

    fn assign(&mut self, debate_id: &DebateId, holder: Holder, sequence: u64) {
        self.take_back(debate_id);
        debug_assert!(
            !self.waiting.has(debate_id),
            "a debate that is assigned does not wait"
        );
        if let Some(entry) = self.experts.get_mut(&holder.expert) {
            entry.held.insert(debate_id.clone());
            entry.last_assigned = sequence;
        }
        if let Some(debate) = self.debates.get_mut(debate_id) {
            debate.holder = Some(holder);
        }
    }
}
