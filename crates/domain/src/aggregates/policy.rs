//! A policy that operators have stored under a name, with all its versions. Owned by the coordinator; its id is derived from the
//! name, which may have dots and spaces.
//!
//! | state   | Put: as the last version says | Put: something else                  |
//! |---------|-------------------------------|--------------------------------------|
//! | nothing | -                             | put: version 1, or refused [1]       |
//! | stored  | ignored                       | put: the next version, or refused [1]|
//!
//! [1] Without a reason, or with bounds that no field of a policy can have.
//!
//! A version is never changed and none is taken away, because cases name the version that they began with. What stands under the
//! name of a preset replaces the preset for the installation; the preset itself remains version 0.

use std::sync::Arc;

use concord_events::{PolicyEvent, PolicyPut, StoredEvent};
use concord_wire::id::PolicyName;
use concord_wire::policy::{Policy, PolicyBounds};
use concord_wire::{AgentId, Fault, Timestamp, Token};

use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::size_budget::check_reason;

mod opening;

pub use opening::{KnownPolicies, exceeds_bounds};

/// The state machine of a stored policy.
#[derive(Debug, Clone, Copy)]
pub struct PolicyMachine;

/// The state of a stored policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyState {
    /// Its versions, in order, each with the time at which it was stored. Shared: a state is copied whenever a case is opened.
    pub versions: Vec<Arc<(PolicyPut, Timestamp)>>,
}

/// A policy and its bounds, as an opener finds them under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVersion {
    /// The version; 0 for a preset as it is shipped.
    pub version: u32,
    /// The policy.
    pub policy: Policy,
    /// What an opener may change of it.
    pub bounds: PolicyBounds,
}

impl PolicyVersion {
    /// A preset as it is shipped; none for another name.
    pub fn shipped(name: &str) -> Option<Self> {
        Policy::preset(name).map(|policy| Self {
            version: 0,
            policy,
            bounds: PolicyBounds::default(),
        })
    }
}

impl From<&PolicyPut> for PolicyVersion {
    fn from(put: &PolicyPut) -> Self {
        Self {
            version: put.version,
            policy: put.policy.clone(),
            bounds: put.bounds.clone(),
        }
    }
}

impl PolicyState {
    /// What stands under `name`, which is that of the aggregate: the version that is asked for, or the last one. None where there is
    /// no such version.
    pub fn find(&self, name: &str, version: Option<u32>) -> Option<PolicyVersion> {
        let shipped = || PolicyVersion::shipped(name);
        let stored = match version {
            Some(0) => return shipped(),
            None => self.versions.last(),
            Some(number) => self.versions.iter().find(|one| one.0.version == number),
        };
        match (stored, version) {
            (Some(stored), _) => Some(PolicyVersion::from(&stored.0)),
            (None, None) => shipped(),
            (None, Some(_)) => None,
        }
    }
}

/// The id of the policy of this name.
pub fn id_of(name: &PolicyName) -> Token {
    Token::derived(&format!("policy/{name}"))
}

/// One input of a stored policy. Who may ask for it is checked by the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyInput {
    /// Stores a version.
    Put {
        /// The name.
        name: PolicyName,
        /// The policy; its own name is put in.
        policy: Box<Policy>,
        /// What an opener may change of it.
        bounds: PolicyBounds,
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
}

impl Machine for PolicyMachine {
    type State = PolicyState;
    type Event = PolicyEvent;
    type Input = PolicyInput;

    fn decide(state: &PolicyState, _: &Context, input: &PolicyInput) -> Decision<PolicyEvent> {
        let PolicyInput::Put {
            name,
            policy,
            bounds,
            by,
            why,
        } = input;
        let checked = bounds.check_fields("/bounds");
        if let Err(fault) = checked.and_then(|()| check_why(why)) {
            return Decision::Reject(fault);
        }
        let policy = Policy {
            preset: name.as_str().to_owned(),
            ..(**policy).clone()
        };
        let last = state.versions.last().map(|last| &last.0);
        if last.is_some_and(|last| (&last.policy, &last.bounds) == (&policy, bounds)) {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        Decision::Append(PolicyEvent::Put(PolicyPut {
            name: name.clone(),
            version: next_version(state),
            policy,
            bounds: bounds.clone(),
            by: by.clone(),
            why: why.clone(),
        }))
    }

    fn apply(state: &mut PolicyState, record: StoredEvent<PolicyEvent>) {
        let PolicyEvent::Put(put) = record.event;
        state.versions.push(Arc::new((put, record.meta.at)));
    }

    fn misplaced(before: &PolicyState, event: &PolicyEvent) -> Option<String> {
        let PolicyEvent::Put(put) = event;
        let next = next_version(before);
        (put.version != next).then(|| format!("It is version {}, and {next} is due.", put.version))
    }
}

fn next_version(state: &PolicyState) -> u32 {
    let last = state.versions.last();
    last.map_or(1, |last| last.0.version.saturating_add(1))
}

/// Checks that an operator says why the rules are changed.
pub(super) fn check_why(why: &str) -> Result<(), Fault> {
    if why.trim().is_empty() {
        return Err(Fault::invalid(
            "/why",
            "No reason is given.",
            "Say why: whoever asks later what the rules were sees it.",
        ));
    }
    check_reason("/why", why)
}

#[cfg(test)]
mod tests;
