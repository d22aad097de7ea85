//! Who may do what, as the stream's leader knows it.

use std::sync::Arc;

use concord_domain::aggregates::person::{Authority, PersonMachine};
use concord_wire::AgentId;

use crate::context::ServiceContext;
use crate::event_store::step::{self, Aggregates};
use crate::ports::Ports;

/// The registered people. Cheap to clone. What they may do is read anew each time: somebody who was suspended a moment ago
/// may do nothing any more.
#[derive(Clone)]
pub struct People<P>(Arc<Aggregates<PersonMachine, P>>);

impl<P: Ports> People<P> {
    /// The people of the installation.
    pub fn new(context: &ServiceContext<P>) -> Self {
        let aggregates = Aggregates::new(context.ports.clone(), &context.cache);
        Self(Arc::new(aggregates))
    }

    /// What a sender may do; the default for somebody who is not registered.
    pub async fn authority(&self, name: &AgentId) -> Result<Authority, step::Error> {
        let person = self.0.load(&name.token()).await?;
        Ok(person.state.authority())
    }

    /// The aggregates, for steps on them.
    pub fn aggregates(&self) -> &Arc<Aggregates<PersonMachine, P>> {
        &self.0
    }
}
