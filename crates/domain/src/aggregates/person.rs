//! A person, or an agent that was given a role, and what they may do. Owned by the coordinator; its
//! id is their name.
//!
//! | state          | Register                    | Suspend                 | Resume                  |
//! |----------------|-----------------------------|-------------------------|-------------------------|
//! | not registered | registered, or refused [1]  | refused: not registered | refused: not registered |
//! | registered     | registered: replaced        | suspended, or refused [2] | ignored               |
//! | suspended      | refused: resume them first  | ignored                 | resumed                 |
//!
//! [1] A record that is not valid is refused in every state. [2] Without a reason.
//!
//! What somebody may do is asked of their [`Authority`], which goes with each input that needs one:
//! the machine that is asked decides with it, and refuses with `UNAUTHORIZED`. Whether a name is
//! free, because no agent bears it, is checked by the caller.

use concord_events::{PersonEvent, PersonRegistered, PersonResumed, PersonSuspended, StoredEvent};
use concord_wire::payload::{PersonRecord, Role};
use concord_wire::{AgentId, Fault, Timestamp};

use crate::machine::{Context, Decision, Ignored, Machine, forgetting};
use crate::rules::size_budget::check_reason;

mod authority;
mod reading;
mod signed;
mod verbs;

pub use authority::{Act, Authority};
pub use reading::{Matter, Reading};
pub(crate) use signed::Signed;
pub use verbs::{check_verb, roles_of, verbs_of};

/// The state machine of a person.
#[derive(Debug, Clone, Copy)]
pub struct PersonMachine;

/// The state of a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonState {
    /// The person; `None` while nobody is registered under the name.
    pub person: Option<PersonRecord>,
    /// Who registered them last.
    pub by: Option<AgentId>,
    /// Since when they are as they are.
    pub since: Option<Timestamp>,
    /// Who has suspended them, and why; `None` for somebody who may act.
    pub suspended: Option<PersonSuspended>,
}

impl PersonState {
    /// What the person may do.
    pub fn authority(&self) -> Authority {
        Authority {
            person: self.person.clone(),
            suspended: self.suspended.as_ref().map(|one| one.why.clone()),
        }
    }
}

/// One input of a person. Who may ask for it is checked by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonInput {
    /// Registers somebody, or replaces their roles and particulars.
    Register {
        /// The person.
        person: Box<PersonRecord>,
        /// The operator.
        by: AgentId,
    },
    /// Lets somebody do nothing until further notice.
    Suspend {
        /// The person.
        name: AgentId,
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
    /// Lets somebody who was suspended act again.
    Resume {
        /// The person.
        name: AgentId,
        /// The operator.
        by: AgentId,
        /// The operator's reason; may be empty.
        why: String,
    },
}

impl Machine for PersonMachine {
    type State = PersonState;
    type Event = PersonEvent;
    type Input = PersonInput;

    fn state_bytes_max(_: &PersonState) -> usize {
        forgetting(0)
    }

    fn decide(state: &PersonState, _: &Context, input: &PersonInput) -> Decision<PersonEvent> {
        match input {
            PersonInput::Register { person, by } => register(state, person, by),
            PersonInput::Suspend { name, by, why } => suspend(state, name, by, why),
            PersonInput::Resume { name, by, why } => resume(state, name, by, why),
        }
    }

    fn apply(state: &mut PersonState, record: StoredEvent<PersonEvent>) {
        state.since = Some(record.meta.at);
        match record.event {
            PersonEvent::Registered(PersonRegistered { person, by, .. }) => {
                (state.person, state.by) = (Some(person), Some(by));
            }
            PersonEvent::Suspended(suspended) => state.suspended = Some(suspended),
            PersonEvent::Resumed(resumed) => {
                state.suspended = None;
                state.person = Some(resumed.person);
            }
        }
    }

    fn misplaced(before: &PersonState, event: &PersonEvent) -> Option<String> {
        match event {
            PersonEvent::Registered(_) if before.suspended.is_some() => {
                Some("It registers somebody who is suspended.".into())
            }
            PersonEvent::Suspended(_) if before.person.is_none() => {
                Some("It suspends somebody who is not registered.".into())
            }
            PersonEvent::Resumed(_) if before.suspended.is_none() => {
                Some("It resumes somebody who is not suspended.".into())
            }
            _ => None,
        }
    }
}

fn register(state: &PersonState, person: &PersonRecord, by: &AgentId) -> Decision<PersonEvent> {
    if let Err(fault) = person.check("/person") {
        return Decision::Reject(fault);
    }
    if state.suspended.is_some() {
        return Decision::Reject(Fault::invalid(
            "/person/name",
            format!("{} is suspended.", person.name),
            format!("Lift that first: concord person resume {}.", person.name),
        ));
    }
    Decision::Append(PersonEvent::Registered(PersonRegistered {
        person: person.clone(),
        by: by.clone(),
        was_arbiter: is_arbiter(state),
    }))
}

fn suspend(state: &PersonState, name: &AgentId, by: &AgentId, why: &str) -> Decision<PersonEvent> {
    if state.person.is_none() {
        return Decision::Reject(not_registered(name));
    }
    if why.trim().is_empty() {
        return Decision::Reject(Fault::invalid(
            "/why",
            "No reason is given.",
            "Say why: whoever is refused because of it is told.",
        ));
    }
    if let Err(fault) = check_reason("/why", why) {
        return Decision::Reject(fault);
    }
    if state.suspended.is_some() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(PersonEvent::Suspended(PersonSuspended {
        name: name.clone(),
        by: by.clone(),
        why: why.to_owned(),
        was_arbiter: is_arbiter(state),
    }))
}

fn resume(state: &PersonState, name: &AgentId, by: &AgentId, why: &str) -> Decision<PersonEvent> {
    let Some(person) = &state.person else {
        return Decision::Reject(not_registered(name));
    };
    if let Err(fault) = check_reason("/why", why) {
        return Decision::Reject(fault);
    }
    if state.suspended.is_none() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let (person, by, why) = (person.clone(), by.clone(), why.to_owned());
    Decision::Append(PersonEvent::Resumed(PersonResumed { person, by, why }))
}

fn is_arbiter(state: &PersonState) -> bool {
    state.authority().holds(Role::Arbiter)
}

fn not_registered(name: &AgentId) -> Fault {
    Fault::invalid(
        "/name",
        format!("Nobody is registered as {name}."),
        "`concord person list` shows who is.",
    )
}

#[cfg(test)]
mod tests;
