//! The durable inboxes that operators make for an agent when they register it.

use concord_runtime::Broker;
use concord_runtime::delivery::ErrorChain;
use concord_wire::AgentId;

use crate::shared::failure::Failure;

/// Makes the inboxes of an agent, unless they are there. From then on the broker keeps what is said to the agent.
pub(super) async fn make(broker: &Broker, agent: &AgentId) -> Result<(), Failure> {
    broker.make_inboxes(agent).await.map_err(|error| {
        Failure::failed(format!(
            "{agent} is registered, but has no durable inbox: {}; repeat it as an operator",
            ErrorChain(&error)
        ))
    })
}

/// Removes the inboxes of an agent, where it has some, with what it has not taken.
pub(super) async fn remove(broker: &Broker, agent: &AgentId) -> Result<(), Failure> {
    broker.remove_inboxes(agent).await.map_err(|error| {
        Failure::failed(format!(
            "{agent} is on the register no longer, but its durable inbox is there: {}",
            ErrorChain(&error)
        ))
    })
}
