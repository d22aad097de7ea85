//! Who may do what, as the stream's leader knows it.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::person::{Authority, PersonMachine};
use concord_wire::AgentId;
use concord_wire::payload::PersonKind;

use crate::context::ServiceContext;
use crate::event_store::step::{self, Aggregates};
use crate::ports::Ports;

/// The registered people. Cheap to clone. What they may do is read anew each time: somebody who was suspended a moment ago
/// may do nothing any more.
#[derive(Clone)]
pub struct People<P> {
    people: Arc<Aggregates<PersonMachine, P>>,
    agents: Arc<Aggregates<AgentMachine, P>>,
}

impl<P: Ports> People<P> {
    /// The people of the installation.
    pub fn new(context: &ServiceContext<P>) -> Self {
        let (ports, cache) = (&context.ports, &context.cache);
        Self {
            people: Arc::new(Aggregates::new(ports.clone(), cache)),
            agents: Arc::new(Aggregates::new(ports.clone(), cache)),
        }
    }

    /// What a sender may do; the default for somebody who is not registered. A person whose name is that of an agent as well has no role.
    pub async fn authority(&self, name: &AgentId) -> Result<Authority, step::Error> {
        let person = self.people.load(&name.token()).await?;
        let mut known = person.state.authority();
        if let Some(person) = &mut known.person
            && person.kind == PersonKind::Person
            && !person.roles.is_empty()
        {
            // Whoever is registered finds the name free of the other kind, and two who are registered at once both do. So what
            // counts is what stands now.
            let agent = self.agents.load(&name.token()).await?;
            if agent.state.card.is_some() {
                person.roles.clear();
            }
        }
        Ok(known)
    }

    /// The aggregates, for steps on them.
    pub fn aggregates(&self) -> &Arc<Aggregates<PersonMachine, P>> {
        &self.people
    }
}
