//! What the NATS user of somebody may do. `concord permissions` prints it, and credentials are issued with it.

use concord_credentials::Holder;
use concord_domain::aggregates::person::verbs_of;
use concord_events::topology::Layout;
use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::{Permissions, SubjectSpace};

/// Somebody who speaks: an agent, or a person with roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) name: AgentId,
    /// None for an agent.
    pub(crate) roles: Vec<Role>,
}

impl Speaker {
    pub(crate) fn agent(name: &AgentId) -> Self {
        Self {
            name: name.clone(),
            roles: Vec::new(),
        }
    }

    /// What the user may publish.
    pub(crate) fn publish(&self, space: &SubjectSpace) -> Vec<String> {
        match self.roles.as_slice() {
            [] => space.publish_subjects(&self.name),
            roles => space.publish_subjects_of_roles(&self.name, roles, verbs_of(roles).as_deref()),
        }
    }

    /// What the user may do in the account of everybody.
    pub(crate) fn permissions(&self, space: &SubjectSpace) -> Permissions {
        let of_agent = space.permissions(&self.name);
        if self.roles.is_empty() {
            return of_agent;
        }
        Permissions {
            publish: self.publish(space),
            ..of_agent
        }
    }

    /// What the user may do in an account of its own.
    pub(crate) fn permissions_in_own_account(&self, space: &SubjectSpace) -> Permissions {
        Permissions {
            publish: self.publish(space),
            ..space.permissions_in_own_account(&self.name)
        }
    }
}

/// What a holder of credentials may do in the account of everybody; none for everything.
pub(crate) fn permissions_of(holder: &Holder, layout: &Layout) -> Option<Permissions> {
    let speaker = match holder {
        Holder::Operator(_) => return None,
        Holder::Service(service) => return Some(layout.service_permissions(*service)),
        Holder::Agent(name) => Speaker::agent(name),
        Holder::Person { name, roles } => Speaker {
            name: name.clone(),
            roles: roles.clone(),
        },
    };
    Some(speaker.permissions(&layout.subjects))
}

/// The prefix of the inboxes that a holder's client must be told to use; none where any will do.
pub(crate) fn inbox_prefix_of(holder: &Holder) -> Option<String> {
    match holder {
        Holder::Agent(name) | Holder::Person { name, .. } => Some(SubjectSpace::replies(name)),
        Holder::Service(_) | Holder::Operator(_) => None,
    }
}
