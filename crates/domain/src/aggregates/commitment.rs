//! Commitments: who works on what, so that no two do. Owned by the coordinator. There is one such
//! aggregate for each case that has commitments, with the id of the case, and one for each resource
//! outside cases.
//!
//! | the resource is   | commit           | renew            | release          | its lease passes | holder gone, work done, case over |
//! |-------------------|------------------|------------------|------------------|------------------|-----------------------------------|
//! | free              | granted [1]      | refused          | refused          | ignored          | ignored                           |
//! | the sender's      | renewed [1]      | renewed [1]      | ended            | ended            | ended                             |
//! | somebody else's   | refused [2]      | refused [2]      | refused [2]      | ended            | ended                             |
//!
//! [1] Refused for a lease that is longer than the installation allows, and beyond the number that an
//! agent or a case may have. [2] The refusal says who has it, and until when. The same message again
//! is ignored; another one of its sender under the same id is refused.
//!
//! **Until it has ended.** A resource is free when an event says so, never because a clock does: while
//! the deadline is on its way nobody else is granted it, and its holder can still renew. A renewal
//! moves the deadline, so one that was armed before it is not open any more.
//!
//! **Ids.** Whoever opens a case may choose its id, and so the one that a resource outside cases has here. The two have nothing to do with
//! each other: each event says which it is about, and about one of them alone.
//!
//! **Terms.** Each grant has a higher term than the one before. A holder that was away and does not know
//! that its lease has ended can be told from the holder of today by whoever guards the resource.

use std::collections::BTreeMap;

use concord_events::{
    CommitmentEvent, Deadline, DeadlineElapsed, Heard, LeaseBounds, LeaseGranted, LeasesEnded,
    StoredEvent,
};
use concord_wire::payload::{Commitment, CommitmentEnd, Lease};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};
use serde::{Deserialize, Serialize};

use super::heard_before::HeardBefore;
use crate::effect::Effect;
use crate::machine::{Carry, Context, Decision, Machine, forgetting};

mod decide;
mod effects;

/// The name of the deadline of the lease that passes first.
pub const LEASE: &str = "lease";
/// Most commitments of a case at a time: one event can end all of them.
pub const LEASES_MAX: usize = 256;
/// How many messages are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 1_024;

/// The state machine of commitments.
#[derive(Debug, Clone, Copy)]
pub struct CommitmentMachine;

/// The commitments of a case, or about one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommitmentState {
    /// The case; `None` where nobody has committed to anything in one.
    pub case_id: Option<CaseId>,
    /// Those that stand in the case, by resource.
    pub leases: BTreeMap<String, Lease>,
    /// The one that stands outside cases, by resource.
    pub outside: BTreeMap<String, Lease>,
    /// How many were granted: the term of the last.
    pub granted: u64,
    causes: HeardBefore,
}

impl Default for CommitmentState {
    fn default() -> Self {
        Self {
            case_id: None,
            leases: BTreeMap::new(),
            outside: BTreeMap::new(),
            granted: 0,
            causes: HeardBefore::new(CAUSES_MAX),
        }
    }
}

impl CommitmentState {
    /// When the first lease passes.
    fn next_due(&self) -> Option<Timestamp> {
        let all = self.leases.values().chain(self.outside.values());
        all.map(|lease| lease.until).min()
    }

    /// Those that stand in the case, or outside cases.
    pub fn standing(&self, case: Option<&CaseId>) -> &BTreeMap<String, Lease> {
        match case {
            Some(_) => &self.leases,
            None => &self.outside,
        }
    }

    fn standing_mut(&mut self, case: Option<&CaseId>) -> &mut BTreeMap<String, Lease> {
        match case {
            Some(_) => &mut self.leases,
            None => &mut self.outside,
        }
    }
}

/// One input of commitments.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitmentInput {
    /// An agent commits, renews or releases.
    Said(Box<ReceivedCommitment>),
    /// A lease has passed.
    Elapsed(DeadlineElapsed),
    /// An agent has left the register, or is unavailable: it loses what it has.
    Gone(AgentId),
    /// The work of this agent on a resource is done.
    Done(AgentId, String),
    /// The case is over.
    CaseOver,
}

/// A commitment, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedCommitment {
    /// The message that brought it.
    pub heard: Heard,
    /// The case, if in one.
    pub case_id: Option<CaseId>,
    /// What was said. The caller has checked its form.
    pub said: Commitment,
    /// What the installation allows.
    pub bounds: LeaseBounds,
}

/// The id of the commitments of a case, or of those about a resource outside cases.
pub fn id_of(case: Option<&CaseId>, resource: &str) -> Token {
    case.map_or_else(
        || Token::derived(&format!("commitment/{resource}")),
        CaseId::token,
    )
}

impl Machine for CommitmentMachine {
    type State = CommitmentState;
    type Event = CommitmentEvent;
    type Input = CommitmentInput;

    // Outside cases a lease is renewed twice a minute, for as long as its holder works.
    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(2));

    fn state_bytes_max(state: &CommitmentState) -> usize {
        let leases = state.leases.len() + state.outside.len();
        forgetting(leases * 1_024 + state.causes.len() * 192)
    }

    fn decide(
        state: &CommitmentState,
        context: &Context,
        input: &CommitmentInput,
    ) -> Decision<CommitmentEvent> {
        match input {
            CommitmentInput::Said(received) => decide::said(state, context, received),
            CommitmentInput::Elapsed(elapsed) => decide::elapsed(state, elapsed),
            CommitmentInput::Gone(agent) => {
                decide::end(state, CommitmentEnd::HolderGone, |one| one.holder == *agent)
            }
            CommitmentInput::Done(agent, resource) => {
                decide::end(state, CommitmentEnd::WorkDone, |one| {
                    one.resource == *resource && one.holder == *agent
                })
            }
            CommitmentInput::CaseOver => decide::end(state, CommitmentEnd::CaseOver, |_| true),
        }
    }

    fn is_taken(state: &CommitmentState, id: &MessageId, sender: &AgentId) -> bool {
        state.causes.is_taken(id, sender)
    }

    fn apply(state: &mut CommitmentState, record: StoredEvent<CommitmentEvent>) {
        let heard = match record.event {
            CommitmentEvent::Granted(granted) => {
                state.granted = granted.lease.term;
                state.keep(granted)
            }
            CommitmentEvent::Renewed(renewed) => state.keep(renewed),
            CommitmentEvent::Ended(ended) => {
                let standing = state.standing_mut(ended.case_id.as_ref());
                for one in &ended.leases {
                    standing.remove(&one.resource);
                }
                ended.heard
            }
        };
        if let Some(heard) = heard {
            state.causes.remember(&heard);
        }
    }

    fn deadlines(state: &CommitmentState) -> Vec<Deadline> {
        let due = state.next_due();
        let deadline = due.map(|due| Deadline {
            name: Token::fixed(LEASE),
            due,
        });
        deadline.into_iter().collect()
    }

    fn effects(record: &StoredEvent<CommitmentEvent>) -> Vec<Effect> {
        effects::effects(&record.event)
    }

    fn case_of(record: &StoredEvent<CommitmentEvent>) -> Option<CaseId> {
        match &record.event {
            CommitmentEvent::Granted(one) | CommitmentEvent::Renewed(one) => one.case_id.clone(),
            CommitmentEvent::Ended(ended) => ended.case_id.clone(),
        }
    }

    fn misplaced(before: &CommitmentState, event: &CommitmentEvent) -> Option<String> {
        match event {
            CommitmentEvent::Granted(granted) => {
                let LeaseGranted { lease, case_id, .. } = granted;
                let held = before.standing(case_id.as_ref()).get(&lease.resource);
                let held = held.map(|one| format!("{} is held by {}.", one.resource, one.holder));
                let is_late = lease.term <= before.granted;
                held.or_else(|| is_late.then(|| format!("Term {} was there before.", lease.term)))
            }
            CommitmentEvent::Renewed(renewed) => {
                let LeaseGranted { lease, case_id, .. } = renewed;
                let standing = before.standing(case_id.as_ref());
                not_held(standing, &lease.resource, &lease.holder, lease.term)
            }
            CommitmentEvent::Ended(LeasesEnded {
                leases, case_id, ..
            }) => {
                let standing = before.standing(case_id.as_ref());
                let mut all = leases.iter();
                all.find_map(|one| not_held(standing, &one.resource, &one.holder, one.term))
            }
        }
    }
}

impl CommitmentState {
    fn keep(&mut self, granted: LeaseGranted) -> Option<Heard> {
        let LeaseGranted { case_id, lease, .. } = granted;
        let standing = self.standing_mut(case_id.as_ref());
        standing.insert(lease.resource.clone(), lease);
        debug_assert!(
            standing.len() <= LEASES_MAX,
            "commitments are bounded in number"
        );
        self.case_id = case_id.or(self.case_id.take());
        Some(granted.heard)
    }
}

/// What is wrong with an event about a commitment that does not stand.
fn not_held(
    standing: &BTreeMap<String, Lease>,
    resource: &str,
    holder: &AgentId,
    term: u64,
) -> Option<String> {
    let held = standing.get(resource);
    let is_so = held.is_some_and(|one| one.holder == *holder && one.term == term);
    (!is_so).then(|| format!("{holder} does not hold {resource} in term {term}."))
}

#[cfg(test)]
mod tests;
