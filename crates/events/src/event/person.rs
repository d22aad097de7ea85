//! Events of a person: who they are, and whether they may act.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::AgentId;
use concord_wire::payload::PersonRecord;

events! {
    /// What can happen to a person, or to an agent that was given a role.
    PersonEvent of Aggregate::Person;
    Registered(PersonRegistered) = "registered", effects: false, deadlines: false,
        "An operator has given somebody roles, or other roles and particulars than before.";
    Suspended(PersonSuspended) = "suspended", effects: false, deadlines: false,
        "Somebody may do nothing until further notice; the debates that an arbiter had wait again.";
    Resumed(PersonResumed) = "resumed", effects: false, deadlines: false,
        "Somebody who was suspended may act again, with the roles that they had.";
}

/// Contents of `registered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonRegistered {
    /// The person, in place of an earlier registration under the same name.
    pub person: PersonRecord,
    /// The operator who registered them.
    pub by: AgentId,
    /// Whether they were an arbiter until now, whom the queue of people may know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_arbiter: bool,
}

/// Contents of `suspended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonSuspended {
    /// The person.
    pub name: AgentId,
    /// The operator who suspended them.
    pub by: AgentId,
    /// The operator's reason.
    pub why: String,
    /// Whether they were an arbiter until now, whom the queue of people may know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_arbiter: bool,
}

/// Contents of `resumed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonResumed {
    /// The person, as registered last.
    pub person: PersonRecord,
    /// The operator who lets them act again.
    pub by: AgentId,
    /// The operator's reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
